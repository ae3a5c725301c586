/* The kernel cuda_sm90a_fp8 computes scaled FP8 GEMMs on Hopper's FP8 tensor cores. A and B are
 * e4m3 or e5m2 with fp32 scales. A scale may cover 1 x 128 elements, 128 x 128 elements, a whole
 * row (per token, per channel) or the whole matrix. In general, the kernel takes any scale blocks
 * that change only at multiples of 128 columns of K. It reads row-major operands where the caller
 * stores them. Each run first transposes column-major operands (ORDER_COL) into the workspace. It
 * also copies scales there if the kernel cannot read their layout. */
#include "cuda/host/wgmma_kernel.h"

static bool takes(const bsmm_operand *o) {
    return bsmm_cuda_is_fp8(o->m.format.elem) && bsmm_cuda_has_groups(o);
}

static bool has_stored_rows(const bsmm_operand *o) {
    return o->m.format.elem == BSMM_ELEM_E4M3 && bsmm_wgmma_has_row_scales(o) &&
           bsmm_wgmma_is_stored_fp8(o);
}

/* Returns true if the GEMM kernel can multiply only the complete sums over K by B's scales. (It
 * multiplies the sum of each k block by A's scales.) This requires that A and B are e4m3, that each
 * of their rows has one scale, and that the kernel can read all elements and scales where the
 * caller stores them. The kernel loads B's scales in pairs, so B must have an even number of rows.
 */
static bool scales_by_rows(const bsmm_product *p) {
    return has_stored_rows(&p->a) && has_stored_rows(&p->b) && p->b.m.rows % 2 == 0;
}

static bsmm_wgmma_plan plan_of(const bsmm_product *p) {
    const bool by_rows = !bsmm_cuda_has_row_groups(&p->b) && scales_by_rows(p);
    return (bsmm_wgmma_plan){
        .kind = by_rows || bsmm_cuda_has_row_groups(&p->b) ? BSMM_WGMMA_BLOCK : BSMM_WGMMA_ROW,
        .by_rows = by_rows,
        .routes = {BSMM_PACK_FP8, BSMM_PACK_FP8},
        .elems = {p->a.m.format.elem, p->b.m.format.elem},
        .when = BSMM_WHEN_ALWAYS,
    };
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (!takes(&p->a)) return bsmm_gpu_refuse_format(&p->a, 'A', BSMM_CUDA_FP8_RULE, why, size);
    if (!takes(&p->b)) return bsmm_gpu_refuse_format(&p->b, 'B', BSMM_CUDA_FP8_RULE, why, size);
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_refuse(p, &plan, state, why, size);
}

static double bound(const bsmm_product *p, const void *state) {
    return bsmm_wgmma_bound(((const bsmm_wgmma_state *)state)->plan.kind, BSMM_ELEM_E4M3,
                            p->a.m.cols);
}

const bsmm_kernel bsmm_kernel_cuda_sm90a_fp8 = {
    BSMM_WGMMA_KERNEL,
    .name = "cuda_sm90a_fp8",
    .refuse = refuse,
    .bound = bound,
};
