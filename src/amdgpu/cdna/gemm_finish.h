/* Writes the fp32 sums of a workgroup's tile to D. Each wave copies 16 rows of its sums at a time
 * into a buffer in LDS, called a strip. The wave reads the strip back with neighbouring lanes on
 * neighbouring columns, so that its stores to D are contiguous. A sum that may be inaccurate is
 * computed again in double. Then the epilogue converts every sum and stores it. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_FINISH_H
#define BSMM_AMDGPU_CDNA_GEMM_FINISH_H

#include "amdgpu/cdna/gemm_shape.h"

typedef bsmm_f32x4 gemm_sums[GEMM_MOST_ROW_TILES][GEMM_MOST_COL_TILES];

/* Returns the floats from one row of a strip to the next. The four floats of padding spread the
 * rows over the LDS banks. */
BSMM_DEVICE uint32_t gemm_strip_pitch(gemm_shape s) {
    return s.col_tiles * BSMM_CDNA_EDGE + 4;
}

/* Returns true if an fp32 sum may be inaccurate and must be computed again. A very small sum may
 * lack terms below fp32's range, and a very large one may have met an Inf or NaN. A sum of 0 is
 * accurate unless `may_vanish`, i.e. unless the scales are so small that products may underflow to
 * 0. */
BSMM_DEVICE bool gemm_doubts(float sum, bool may_vanish) {
    if (sum == 0) return may_vanish;
    const float size = __builtin_fabsf(sum);
    return !(size >= 0x1p-118f && size <= 0x1p127f);
}

BSMM_DEVICE void gemm_finish_strip(gemm_shape s, const BSMM_IN_LDS float *strip, uint32_t row,
                                   uint32_t col, bool may_vanish) {
    const bsmm_cdna_gemm *p = gemm_params_here();
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&p->epilogue);
    const uint32_t cols = s.col_tiles * BSMM_CDNA_EDGE;
#pragma clang loop unroll(disable)
    for (uint32_t i = gemm_lane(); i < BSMM_CDNA_EDGE * cols; i += GEMM_WAVE) {
        const uint32_t r = row + i / cols, c = col + i % cols;
        const bool wanted = r < p->sides[0].rows && c < p->sides[1].rows;
        const float stored = strip[i / cols * gemm_strip_pitch(s) + i % cols];
        double sum = (double)stored;
        uint64_t left = __builtin_amdgcn_ballot_w64(wanted && gemm_doubts(stored, may_vanish));
#pragma clang loop unroll(disable)
        for (; left; left &= left - 1) {
            const int lane = __builtin_ctzll(left);
            const bsmm_cdna_gemm *q = gemm_params_here();
            const double again = bsmm_gpu_epilogue_sum_again(
                &q->sides[0].o, &q->sides[1].o, (uint32_t)__builtin_amdgcn_readlane((int)r, lane),
                (uint32_t)__builtin_amdgcn_readlane((int)c, lane), q->k);
            if ((int)gemm_lane() == lane) sum = again;
        }
        if (wanted) bsmm_gpu_epilogue_store(&p->epilogue, &factors, r, c, sum);
    }
}

/* Stores all sums of a wave, one 16-row strip after the other. The matrix instruction leaves in
 * each lane row lane % 16 of a 16 x 16 tile and four of its columns. Registers cannot be indexed at
 * run time, so the loop over `t` compares t with every constant i. `row` and `col` are the first
 * row and column of the wave's tile in D. */
BSMM_DEVICE void gemm_finish(gemm_shape s, const gemm_sums sums, BSMM_IN_LDS float *strip,
                             uint32_t row, uint32_t col, bool may_vanish) {
    const uint32_t pitch = gemm_strip_pitch(s);
    BSMM_IN_LDS float *mine =
        strip + gemm_lane() % BSMM_CDNA_EDGE * pitch + gemm_lane() / BSMM_CDNA_EDGE * 4;
#pragma clang loop unroll(disable)
    for (uint32_t t = 0; t < s.row_tiles; t++) {
#pragma unroll
        for (uint32_t i = 0; i < s.row_tiles; i++) {
            if (t != i) continue;
#pragma unroll
            for (uint32_t j = 0; j < s.col_tiles; j++)
                *(BSMM_IN_LDS bsmm_f32x4 *)(mine + j * BSMM_CDNA_EDGE) = sums[i][j];
        }
        __builtin_amdgcn_wave_barrier();
        gemm_finish_strip(s, strip, row + t * BSMM_CDNA_EDGE, col, may_vanish);
        __builtin_amdgcn_wave_barrier();
    }
}

#endif
