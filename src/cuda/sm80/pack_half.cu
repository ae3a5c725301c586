/* The kernel in this file converts a packed operand in place from bf16 to f16 (gpu/pack.h explains
 * packing). */
#include "cuda/ptx/convert.h"
#include "cuda/sm80/pack_memory.h"

/* Multiplies two bf16 numbers by `factor` and converts the products to f16. */
static __device__ __forceinline__ uint32_t to_halves(uint32_t pair, float factor) {
    const float low = __uint_as_float(pair << 16), high = __uint_as_float(pair & 0xffff0000u);
    return bsmm_ptx_cvt_f16x2(high * factor, low * factor);
}

extern "C" __global__ void __launch_bounds__(PACK_THREADS)
    pack_half(const __grid_constant__ bsmm_pack_half_job job) {
    const uint64_t step = (uint64_t)gridDim.x * PACK_THREADS;
    const float factor = __uint_as_float((127 + job.shift) << 23);
    uint4 *quads = (uint4 *)job.words;
    bsmm_cuda_await_kernel_before();
    if (job.header && !bsmm_pack_is_half(job.header, job.shift)) return;
    for (uint64_t i = (uint64_t)blockIdx.x * PACK_THREADS + threadIdx.x; i < job.quads; i += step) {
        uint4 w = quads[i];
        w.x = to_halves(w.x, factor);
        w.y = to_halves(w.y, factor);
        w.z = to_halves(w.z, factor);
        w.w = to_halves(w.w, factor);
        quads[i] = w;
    }
}
