/* From accumulators to D. A wave puts 16 rows at a time into LDS, so that its lanes then have
 * neighbouring columns of a row; each sum is tried, made again in double where it may be wrong, and
 * goes through the epilogue. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_FINISH_H
#define BSMM_AMDGPU_CDNA_GEMM_FINISH_H

#include "amdgpu/cdna/gemm_shape.h"

typedef bsmm_f32x4 gemm_sums[GEMM_MOST_ROW_TILES][GEMM_MOST_COL_TILES];

/* Floats from one row of a strip to the next: four more than columns, for the banks. */
BSMM_DEVICE uint32_t gemm_strip_pitch(gemm_shape s) {
    return s.col_tiles * BSMM_CDNA_EDGE + 4;
}

/* Terms below fp32's range may be missing, or some met NaN or Inf on their way. A sum of 0 is in
 * doubt where scales are so small that terms may have vanished. */
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

/* A lane holds row lane % 16 of a tile and four columns; registers have no index, so the loop over
 * tiles asks for each. `row` and `col` are the wave's first. */
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
