/* FP8 groupwise products on Hopper's FP8 tensor cores: e4m3 and e5m2 with fp32 scales of 1 x 128 or
 * 128 x 128 on either side. Rows are multiplied as they are stored; columns (ORDER_COL) are
 * transposed into the workspace first, and scales go there when they are not where the engine reads
 * them. */
#include "cuda/wgmma_kernel.h"

static bool takes(const bsmm_operand *o) {
    bsmm_format f = o->m.format;
    bool fp8 = f.elem == BSMM_ELEM_E4M3 || f.elem == BSMM_ELEM_E5M2;
    return fp8 && f.scale == BSMM_SCALE_F32 && f.block_cols == 128 &&
           (f.block_rows == 1 || f.block_rows == 128);
}

static bsmm_wgmma_plan plan_of(const bsmm_product *p) {
    return (bsmm_wgmma_plan){
        .kind = p->b.m.format.block_rows == 128 ? BSMM_WGMMA_BLOCK : BSMM_WGMMA_ROW,
        .routes = {BSMM_PACK_FP8, BSMM_PACK_FP8},
        .elems = {p->a.m.format.elem, p->b.m.format.elem},
        .when = BSMM_WHEN_ALWAYS,
    };
}

static const char *refuse(const bsmm_product *p, char *why, size_t size) {
    if (!takes(&p->a)) return "a is not e4m3 or e5m2 with fp32 scales of 1 x 128 or 128 x 128";
    if (!takes(&p->b)) return "b is not e4m3 or e5m2 with fp32 scales of 1 x 128 or 128 x 128";
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_refuse(p, &plan, why, size);
}

static double bound(const bsmm_product *p) {
    return bsmm_wgmma_bound(plan_of(p).kind, p->a.m.cols);
}

static uint64_t workspace_bytes(const bsmm_product *p) {
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_workspace_bytes(p, &plan);
}

static bsmm_status prepare(const bsmm_product *p) {
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_prepare(p, &plan);
}

static bsmm_status run(const bsmm_product *p, void *workspace) {
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_run(p, &plan, workspace);
}

static uint64_t packed_b_bytes(const bsmm_product *p) {
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_packed_b_bytes(p, &plan);
}

static bsmm_status pack_b(const bsmm_product *p, void *packed) {
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_pack_b(p, &plan, packed);
}

const bsmm_kernel bsmm_kernel_cuda_sm90a_fp8 = {
    .name = "cuda_sm90a_fp8",
    .device = "cuda",
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .prepare = prepare,
    .run = run,
    .packed_b_bytes = packed_b_bytes,
    .pack_b = pack_b,
    .alignment = 16,
};
