/* Block-scaled products on gfx950: D = A B^T, where each operand is e4m3, e5m2, e2m3, e3m2 or e2m1
 * with an e8m0 scale for 32 elements of K. The elements are multiplied as they are stored. The
 * scales may have any layout.
 *
 *   tile      waves_down * row_tiles * 16 rows, waves_across * col_tiles * 16 columns
 *   LDS       two stages of 128 elements of K (gemm_stage.h); after the main loop, a strip of 16
 *             rows of sums for each wave
 *   registers the sums; a stage's fragments of B and two fragments of A; the scales of this stage
 *             and the next
 *
 * Error bound: 2.1 * (K + 128) * 2^-24 of the sum of magnitudes. Each product of two elements is
 * exact. An instruction adds 128 products to a sum and may truncate each term 23 bits below the
 * largest. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCALED_BODY_H
#define BSMM_AMDGPU_CDNA_GEMM_SCALED_BODY_H

#include "amdgpu/cdna/gemm_scaled.h"

BSMM_DEVICE void gemm_scaled_run(const bsmm_cdna_gemm *p, gemm_shape s) {
    const gemm_place at = gemm_place_of(p, s);
    gemm_scaled now, next;
    gemm_sums sums = {{{0}}};
    gemm_scaled_begin(&next, p, s, at.first);
    gemm_load_stage(&at, s, 0);
    gemm_scaled_load(&next, p, s, 0);
    for (uint32_t step = 0; step < at.steps; step++) {
        bsmm_isa_wait_barrier();
        now = next;
        gemm_scaled_take(&now, s, step);
        if (step + 1 < at.steps) gemm_load_stage(&at, s, step + 1);
        /* Beyond K this loads the scales of the last block again. Nothing uses them. */
        gemm_scaled_load(&next, p, s, step + 1);
        const gemm_lds *stage = gemm_stage(s, step);
        gemm_scaled_multiply(&now, s, stage + at.offsets[0], stage + at.offsets[1], at.readers,
                             sums);
        next.low[0] = now.low[0], next.low[1] = now.low[1];
    }
    gemm_end(&at, s, sums, gemm_scaled_may_vanish(&next));
}

#endif
