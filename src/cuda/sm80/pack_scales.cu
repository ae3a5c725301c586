/* This file has two kernels that prepare the memory of a GEMM. The first copies fp32 block scales
 * from any layout to the layout that a GEMM kernel reads (gpu/pack.h). The second sets the headers
 * of packed operands to zero before packing kernels update them. */
#include "cuda/sm80/pack_memory.h"

extern "C" __global__ void __launch_bounds__(PACK_THREADS)
    pack_scales(const __grid_constant__ bsmm_pack_scales_job job) {
    uint32_t row = blockIdx.x * PACK_THREADS + threadIdx.x, column = blockIdx.y;
    if (row >= job.rows) return;
    float value = 0;
    if (row < job.known_rows && column < job.known_cols) {
        uint64_t at = bsmm_axis_at(&job.row_map, row) + bsmm_axis_at(&job.col_map, column);
        value = __ldg(job.scales + at);
    }
    job.to[row * job.row_pitch + column * job.col_pitch] = value;
}

/* Sets `count` words of 4 bytes at `to` to 0. A single thread block runs, so `count` must not
 * exceed its number of threads. */
extern "C" __global__ void __launch_bounds__(PACK_THREADS)
    clear_words(uint32_t *to, uint32_t count) {
    bsmm_cuda_admit_next_kernel();
    if (threadIdx.x < count) to[threadIdx.x] = 0;
}
