/* With split-K, the MFMA kernels store a sum for each part of K in memory. The kernel of this file
 * adds these sums in the order of the parts and stores D. A wave computes 16 x 32 results. Each
 * lane loads the sums that it would have after a matrix instruction, so that the epilogue of the
 * MFMA kernels (gemm_finish.h) can store the results. */
#include "amdgpu/cdna/gemm_finish.h"

extern BSMM_IN_LDS float strips[];

enum { ROWS = BSMM_CDNA_EDGE, COLS = BSMM_CDNA_PART_COLS, COL_TILES = COLS / BSMM_CDNA_EDGE };

BSMM_KERNEL(64 * BSMM_CDNA_PART_WAVES)
add_parts(bsmm_cdna_gemm p, uint32_t stored_rows, uint32_t stored_cols) {
    const gemm_shape s = {.waves_down = 1, 1, .row_tiles = 1, .col_tiles = COL_TILES};
    const uint32_t number = bsmm_group_x() * BSMM_CDNA_PART_WAVES + gemm_wave();
    const uint32_t across = (p.sides[1].rows + COLS - 1) / COLS;
    const uint32_t row = number / across * ROWS, col = number % across * COLS;
    if (row >= p.sides[0].rows) return;
    const uint64_t first = (uint64_t)(row + gemm_lane() % ROWS) * stored_cols + col +
                           gemm_lane() / ROWS * 4 * COL_TILES;
    const BSMM_GLOBAL float *from = (const BSMM_GLOBAL float *)p.sums + first;
    gemm_sums sums = {{{0}}};
#pragma unroll
    for (uint32_t j = 0; j < COL_TILES; j++)
        sums[0][j] = ((const BSMM_GLOBAL bsmm_f32x4 *)from)[j];
#pragma clang loop unroll_count(4)
    for (uint32_t part = 1; part < p.parts; part++) {
        from += (uint64_t)stored_rows * stored_cols;
#pragma unroll
        for (uint32_t j = 0; j < COL_TILES; j++)
            sums[0][j] += ((const BSMM_GLOBAL bsmm_f32x4 *)from)[j];
    }
    gemm_epilogue_store(gemm_params_here(), s, sums,
                        strips + gemm_wave() * ROWS * gemm_strip_pitch(s), row, col,
                        GEMM_TRUST_ZERO, false, NULL);
}
