/* The kernel cuda_sm90a_bf16 computes GEMMs on Hopper's bf16 tensor cores. A and B may be any pair
 * of MXFP8, MXFP6, MXFP4, NVFP4, FP8 with fp32 scales, bf16, f16 and fp32.
 *
 * Packing turns elements into bf16 numbers. It multiplies elements by 8-bit scales, which is exact.
 * It does not apply fp32 scales, which must cover 128 or more columns. The kernel multiplies the
 * sums of each k block (64 elements of K) by fp32 scales, or the sums over all of K if all scales
 * cover whole rows. An f16 element becomes two bf16 numbers (parts) whose sum is the element, and
 * an fp32 element becomes three. Each part of A is multiplied by each part of B, so f16 times mxfp4
 * takes twice as long as bf16 times mxfp4.
 *
 * With parts of elements or with fp32 scales, the kernel may have to compute D a second time. This
 * is impossible for a product with a C, because the first D may have overwritten C. With a C, f16
 * and fp32 elements therefore become one bf16 number each, and fp32 scales are refused.
 *
 * If packing finds a value that bf16 cannot hold, because it is too large, too small or needs too
 * many bits, the generic GEMM (cuda_sm80_bf16.c) computes the product instead. */
#include "cuda/host/wgmma_kernel.h"

static bool is_scaled(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32;
}

static bsmm_pack_route route_of(const bsmm_product *p, const bsmm_operand *o) {
    static const bsmm_pack_route routes[] = {
        [1] = BSMM_PACK_BF16, [2] = BSMM_PACK_TWO_BF16, [3] = BSMM_PACK_THREE_BF16};
    return routes[bsmm_wgmma_parts(p, o)];
}

/* Returns true if an operand has no scales, or fp32 scales each of which covers whole rows. */
static bool has_row_factors(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    return f->scale == BSMM_SCALE_NONE || (is_scaled(o) && f->block_cols >= o->m.cols);
}

static bsmm_wgmma_plan plan_of(const bsmm_product *p) {
    bsmm_wgmma_plan plan = bsmm_wgmma_plan_bf16;
    plan.routes[0] = route_of(p, &p->a);
    plan.routes[1] = route_of(p, &p->b);
    if (!is_scaled(&p->a) && !is_scaled(&p->b)) return plan;
    plan.when = BSMM_WHEN_FITS;
    plan.by_rows = is_scaled(&p->b) && has_row_factors(&p->a) && has_row_factors(&p->b);
    if (!plan.by_rows)
        plan.kind = bsmm_cuda_has_row_groups(&p->b) ? BSMM_WGMMA_BLOCK : BSMM_WGMMA_ROW;
    return plan;
}

static const char *refuse_scales(const bsmm_product *p, char *why, size_t size) {
    static const char rule[] = "the kernel takes f32 scales of multiples of 128 columns";
    if (is_scaled(&p->a) && !bsmm_cuda_has_groups(&p->a))
        return bsmm_gpu_refuse_format(&p->a, 'A', rule, why, size);
    if (is_scaled(&p->b) && !bsmm_cuda_has_groups(&p->b))
        return bsmm_gpu_refuse_format(&p->b, 'B', rule, why, size);
    if (p->has_c && (is_scaled(&p->a) || is_scaled(&p->b)))
        return "beta is not 0 and A or B has f32 scales; the kernel may compute D twice and needs "
               "C "
               "each time";
    return NULL;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    const char *reason = refuse_scales(p, why, size);
    if (reason) return reason;
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_refuse(p, &plan, state, why, size);
}

static double bound(const bsmm_product *p, const void *state) {
    const int64_t parts = (int64_t)bsmm_wgmma_parts(p, &p->a) * bsmm_wgmma_parts(p, &p->b);
    const bsmm_wgmma_plan *plan = &((const bsmm_wgmma_state *)state)->plan;
    /* Scales of rows add two rounding errors to each result: the product of a scale of A and a
     * scale of B is rounded, and so is its product with the sum. */
    return bsmm_wgmma_bound(plan->kind, BSMM_ELEM_BF16, p->a.m.cols * parts) +
           (plan->by_rows ? 0x1p-23 : 0);
}

const bsmm_kernel bsmm_kernel_cuda_sm90a_bf16 = {
    BSMM_WGMMA_KERNEL,
    .name = "cuda_sm90a_bf16",
    .refuse = refuse,
    .bound = bound,
};
