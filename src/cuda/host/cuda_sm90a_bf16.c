/* Products whose values bf16 holds, on Hopper's bf16 tensor cores: MXFP8, MXFP6, MXFP4, NVFP4,
 * bf16, f16 and fp32 of few bits, in any pair. Scales are multiplied into the elements while
 * packing, which is exact; where a value leaves bf16's range or bits, which packing finds out, the
 * generic kernel does the work instead. */
#include "cuda/host/wgmma_kernel.h"

static bsmm_wgmma_plan plan_of(const bsmm_product *p) {
    (void)p;
    return bsmm_wgmma_plan_bf16;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    (void)state;
    if (p->a.m.format.scale == BSMM_SCALE_F32) return "a has fp32 scales: its values are no bf16";
    if (p->b.m.format.scale == BSMM_SCALE_F32) return "b has fp32 scales: its values are no bf16";
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_refuse(p, &plan, why, size);
}

static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return bsmm_wgmma_bound(BSMM_WGMMA_BF16, p->a.m.cols);
}

#define WGMMA_KERNEL cuda_sm90a_bf16
#include "cuda/host/wgmma_row.h"
