/* The kernel cuda_sm90a_bf16: GEMMs whose values are exact in bf16, on Hopper's bf16 tensor cores.
 * It takes any pair of MXFP8, MXFP6, MXFP4, NVFP4, bf16, f16 and fp32. Packing multiplies the
 * scales into the elements, which is exact. If packing finds a value outside bf16's range or
 * precision, the generic kernel computes the GEMM instead. */
#include "cuda/host/wgmma_kernel.h"

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (p->a.m.format.scale == BSMM_SCALE_F32) return "a has fp32 scales: its values are no bf16";
    if (p->b.m.format.scale == BSMM_SCALE_F32) return "b has fp32 scales: its values are no bf16";
    return bsmm_wgmma_refuse(p, &bsmm_wgmma_plan_bf16, state, why, size);
}

static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return bsmm_wgmma_bound(BSMM_WGMMA_BF16, p->a.m.cols);
}

const bsmm_kernel bsmm_kernel_cuda_sm90a_bf16 = {
    BSMM_WGMMA_KERNEL,
    .name = "cuda_sm90a_bf16",
    .refuse = refuse,
    .bound = bound,
};
