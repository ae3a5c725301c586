/* Products whose values bf16 holds, on Hopper's bf16 tensor cores: MXFP8, MXFP6, MXFP4, NVFP4,
 * bf16, f16 and fp32 of few bits, in any pair. Scales are multiplied into the elements while
 * packing, which is exact; where a value leaves bf16's range or bits, which packing finds out, the
 * generic kernel does the work instead. */
#include "cuda/wgmma_kernel.h"

static bsmm_wgmma_plan plan_of(const bsmm_product *p) {
    (void)p;
    return bsmm_wgmma_plan_bf16;
}

static const char *refuse(const bsmm_product *p, char *why, size_t size) {
    if (p->a.m.format.scale == BSMM_SCALE_F32) return "a has fp32 scales: its values are no bf16";
    if (p->b.m.format.scale == BSMM_SCALE_F32) return "b has fp32 scales: its values are no bf16";
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_refuse(p, &plan, why, size);
}

static double bound(const bsmm_product *p) {
    return bsmm_wgmma_bound(BSMM_WGMMA_BF16, p->a.m.cols);
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

const bsmm_kernel bsmm_kernel_cuda_sm90a_bf16 = {
    .name = "cuda_sm90a_bf16",
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
