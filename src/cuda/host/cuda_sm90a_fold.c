/* The kernel cuda_sm90a_fold multiplies MXFP4 and MXFP6 operands by each other, or by FP8 with fp32
 * scales, on Hopper's FP8 tensor cores. A group is 128 elements along K in one row, i.e. four scale
 * blocks. Packing converts the elements to e4m3 with one scale for each group. It multiplies each
 * element by its block scale divided by the group's scale. This quotient is a power of two, so e4m3
 * usually holds the product exactly.
 *
 * If the block scales within a group differ too much, e4m3 cannot hold the result. The packing
 * kernel finds this out on the device. The bf16 tensor cores then compute the GEMM instead, or, if
 * one operand is FP8 with fp32 scales, the generic GEMM (cuda_sm80_bf16.c) computes it. With
 * BSMM_COMPUTE_FAST the kernel also takes MXFP8, whose elements lose bits if the block scales
 * within a group differ much (docs/NUMERICS.md). */
#include "cuda/host/wgmma_kernel.h"

static bool is_mx(const bsmm_operand *o) {
    bsmm_format f = o->m.format;
    return f.scale == BSMM_SCALE_E8M0 && f.block_rows == 1 && f.block_cols == 32;
}

static bool is_narrow(const bsmm_operand *o) {
    return bsmm_elem_row(o->m.format.elem)->bits < 8;
}

static bool is_fast(const bsmm_product *p, const bsmm_operand *o) {
    return p->compute == BSMM_COMPUTE_FAST && bsmm_cuda_is_fp8(o->m.format.elem);
}

/* Returns true for an FP8 operand with fp32 scales. The tensor cores multiply its elements without
 * packing. */
static bool is_scaled_fp8(const bsmm_operand *o) {
    return bsmm_cuda_is_fp8(o->m.format.elem) && bsmm_cuda_has_groups(o);
}

static bool folds(const bsmm_product *p, const bsmm_operand *o) {
    return is_mx(o) && (is_narrow(o) || is_fast(p, o));
}

static bool takes(const bsmm_product *p, const bsmm_operand *o) {
    return folds(p, o) || is_scaled_fp8(o);
}

/* MOST_ROOM is an upper bound for the number of binades by which the largest element of a scale
 * block may lie below the largest number of the 8-bit format. The bound is 32, because the nonzero
 * magnitudes of every 8-bit format span at most 32 binades. */
enum { MOST_ROOM = 32 };

/* Chooses the formats to which the kernel packs A and B, and the fallback that runs if packing
 * would not be exact. The fallback is usually the bf16 plan, which packs A and B to bf16 without
 * scales. bf16 cannot hold the product of an element and an fp32 scale. If an operand is FP8 with
 * fp32 scales, the fallback is therefore the generic GEMM (`otherwise` is NULL). */
static bsmm_wgmma_plan plan_of(const bsmm_product *p) {
    bsmm_wgmma_plan plan = {
        .kind = BSMM_WGMMA_POW2, .when = BSMM_WHEN_FITS, .otherwise = &bsmm_wgmma_plan_bf16};
    if (is_scaled_fp8(&p->a) || is_scaled_fp8(&p->b)) {
        plan.kind = BSMM_WGMMA_ROW;
        plan.otherwise = NULL;
    } else if (!is_narrow(&p->a) || !is_narrow(&p->b)) {
        plan.slack = MOST_ROOM;
    }
    const bsmm_operand *sides[] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        const bool eaten = is_narrow(sides[i]) || is_scaled_fp8(sides[i]);
        plan.routes[i] = eaten ? BSMM_PACK_FP8 : BSMM_PACK_FAST;
        plan.elems[i] = is_narrow(sides[i]) ? BSMM_ELEM_E4M3 : sides[i]->m.format.elem;
    }
    return plan;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    static const char rule[] = "the kernel takes mxfp4, mxfp6, FP8 with f32 scales and, with "
                               "compute FAST, mxfp8";
    if (!takes(p, &p->a)) return bsmm_gpu_refuse_format(&p->a, 'A', rule, why, size);
    if (!takes(p, &p->b)) return bsmm_gpu_refuse_format(&p->b, 'B', rule, why, size);
    if (!folds(p, &p->a) && !folds(p, &p->b))
        return bsmm_gpu_refuse_formats(p, "one of them must have e8m0 scales", why, size);
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_refuse(p, &plan, state, why, size);
}

static bool rounds(const bsmm_product *p, const bsmm_operand *o) {
    return is_mx(o) && is_fast(p, o);
}

/* Returns the error bound of a result, as a multiple of S = sum |a||b| over its terms. With
 * BSMM_COMPUTE_FAST, packing rounds an element to a number whose magnitude is at most twice as
 * large. If n operands are rounded (n = 0, 1 or 2), the sum of the magnitudes of the packed
 * products is therefore at most 2^n S, and rounding changes the exact result by at most (2^n - 1)
 * S. Let x be the relative bound of the kernel's sum without this rounding. The error is then at
 * most 2^n x S from summing plus (2^n - 1) S from rounding, i.e. (2^n (1 + x) - 1) S. With
 * rounding, any such multiple of S is at least 1, because an element may be rounded to 0. Relative
 * to the largest element of a group, the error is far smaller (docs/NUMERICS.md). */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    double sides = (rounds(p, &p->a) ? 2 : 1) * (rounds(p, &p->b) ? 2 : 1);
    return sides * (1 + bsmm_wgmma_bound(BSMM_WGMMA_POW2, BSMM_ELEM_E4M3, p->a.m.cols)) - 1;
}

const bsmm_kernel bsmm_kernel_cuda_sm90a_fold = {
    BSMM_WGMMA_KERNEL,
    .name = "cuda_sm90a_fold",
    .refuse = refuse,
    .bound = bound,
};
