/* These kernels compute FP8 groupwise GEMMs on gfx942 and gfx950: D = A B^T with e4m3 operands (on
 * gfx942 also e4m3fnuz) and fp32 scales for 1 x 128 or 128 x 128 elements, in any scale layout.
 *
 * The tile of a workgroup has waves_down * row_tiles * 16 rows and waves_across * col_tiles * 16
 * columns. LDS holds two stages of 128 elements of K (gemm_stage.h). The registers of a wave hold
 * the fp32 totals over K, the unscaled sums of one stage for two rows of tiles, the operands of one
 * stage, and the scales of this stage and the next.
 *
 * The FP8 instructions of gfx942 take e4m3fnuz. The bits of an e4m3 number mean half its value in
 * e4m3fnuz, so a product of two e4m3 operands comes out as a quarter. The kernel therefore
 * multiplies sums of such products by 4, which is exact. The bits of -0 and NaN have another
 * meaning in e4m3fnuz and are recoded on their way to LDS.
 *
 * Error bound: (2.1 * (128 + 16) + K / 128 + 4) * 2^-24 of the sum of the magnitudes of all
 * products. Each product of two elements is exact. An instruction adds 32 products (128 on gfx950)
 * to a sum and may truncate each term 23 bits below the leading bit of the largest term. The bound
 * also allows two roundings for the product of a scale of A and a scale of B, and one rounding of
 * the total over K for each 128 elements of K. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_PROMOTED_BODY_H
#define BSMM_AMDGPU_CDNA_GEMM_PROMOTED_BODY_H

#include "amdgpu/cdna/gemm_promoted.h"
#include "amdgpu/cdna/gemm_relay.h"

BSMM_DEVICE void gemm_promoted_run(const bsmm_cdna_gemm *p, gemm_shape s) {
    const gemm_position at = gemm_position_of(p, s, bsmm_group_x());
    gemm_promoted now, next;
    const uint32_t relayed = gemm_relay_steps(p, s);
    gemm_relay relay;
    gemm_sums totals = {{{0}}};
    gemm_promoted_begin(&next, p, s, &at);
    if (relayed) {
        gemm_relay_load(&at, s, 0, &relay);
        gemm_relay_store(s, &relay, gemm_stage(s, 0));
    } else {
        gemm_load_stage(&at, s, 0, gemm_stage(s, 0));
    }
    gemm_promoted_load(&next, p, s, 0);
    for (uint32_t step = 0; step < at.steps; step++) {
        bsmm_isa_wait_barrier();
        now = next;
        gemm_promoted_take(&now, s);
        gemm_lds *loading = gemm_stage(s, (step + 1) % 2);
        if (step + 1 < relayed)
            gemm_relay_load(&at, s, step + 1, &relay);
        else if (step + 1 < at.steps)
            gemm_load_stage(&at, s, step + 1, loading);
        gemm_promoted_load(&next, p, s, step + 1 < at.steps ? step + 1 : step);
        const gemm_lds *stage = gemm_stage(s, step % 2);
        gemm_promoted_multiply(&now, s, stage + at.offsets[0], stage + at.offsets[1], at.readers,
                               p->factor, totals);
        if (step + 1 < relayed) gemm_relay_store(s, &relay, loading);
        for (int side = 0; side < 2; side++)
            next.low[side] = now.low[side], next.high[side] = now.high[side];
    }
    gemm_promoted_distrust(&next, s, totals);
    gemm_end(&at, s, totals);
}

#endif
