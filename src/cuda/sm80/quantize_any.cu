/* The kernel in this file quantizes all matrices that the faster kernels of quantize.cu do not
 * support (gpu/quantize_any.h). */
#include "cuda/sm80/quantize_item.h"
#include "gpu/quantize_any.h"

extern "C" __global__ void __launch_bounds__(QUANTIZE_THREADS, 2)
    quantize_any(const __grid_constant__ bsmm_quantize_job job, uint32_t unit_rows,
                 uint32_t unit_cols) {
    bsmm_any_quantize(&job, unit_rows, unit_cols, blockIdx.x * QUANTIZE_THREADS + threadIdx.x,
                      blockIdx.y, gridDim.y);
}
