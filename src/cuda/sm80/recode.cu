/* These small kernels serve conversions. They find the largest magnitude of a tensor, compute the
 * second-level scale, copy scales to another layout, and copy elements to row-major order. */
#include "cuda/sm80/quantize_item.h"
#include "cuda/sm80/relayout_scales.h"

/* Returns the largest magnitude among the values in the 16 bytes of v. The result has the bits of
 * the value at the top of a uint32. */
static __device__ __forceinline__ uint32_t amax_of(uint32_t elem, uint4 v) {
    uint32_t words[4] = {v.x, v.y, v.z, v.w}, high = 0, low = 0;
    for (int i = 0; i < 4; i++) {
        high = max(high, words[i] & (elem == BSMM_LANE_F32 ? 0x7fffffffu : 0x7fff0000u));
        low = max(low, elem == BSMM_LANE_F32 ? 0 : words[i] << 16 & 0x7fff0000u);
    }
    return max(high, low);
}

/* Finds the largest magnitude of a matrix. A line is a row, or a column of a column-major matrix.
 * Each thread block reads some of the lines, and each thread loads four times 16 bytes at a time.
 * Values are compared as integers without their sign bits, because these integers have the same
 * order as the magnitudes. */
extern "C" __global__ void __launch_bounds__(QUANTIZE_THREADS)
    amax_lines(const __grid_constant__ bsmm_amax_job job) {
    uint32_t bytes = job.src_elem == BSMM_LANE_F32 ? 4 : 2, most = 0;
    uint64_t per_item = 16 / bytes, items = job.aligned ? job.count / per_item : 0;
    uint64_t stride = (uint64_t)gridDim.x * QUANTIZE_THREADS;
    for (uint64_t line = blockIdx.y; line < job.lines; line += gridDim.y) {
        const uint8_t *from = job.src + line * job.line_bytes;
        uint64_t i = (uint64_t)blockIdx.x * QUANTIZE_THREADS + threadIdx.x;
        for (; i + 3 * stride < items; i += 4 * stride) {
            uint4 v[4];
            for (int j = 0; j < 4; j++)
                v[j] = __ldg((const uint4 *)from + i + j * stride);
            for (int j = 0; j < 4; j++)
                most = max(most, amax_of(job.src_elem, v[j]));
        }
        for (; i < items; i += stride)
            most = max(most, amax_of(job.src_elem, __ldg((const uint4 *)from + i)));
        uint64_t e = items * per_item + (uint64_t)blockIdx.x * QUANTIZE_THREADS + threadIdx.x;
        for (; e < job.count; e += stride)
            most = max(most, bsmm_amax_code(job.src_elem, from, e));
    }
    most = __reduce_max_sync(0xffffffffu, most);
    if (job.src_elem == BSMM_LANE_F16) most = __float_as_uint(bsmm_lane_f16(most >> 16));
    if (threadIdx.x % 32 == 0 && most) atomicMax(job.result, most);
}

/* Stores the second-level scale of a tensor. The input job.amax and the result job.level may point
 * to the same float. */
extern "C" __global__ void store_level(const __grid_constant__ bsmm_level_job job) {
    bsmm_level_store(&job);
}

/* Copies scales from one layout to another. */
extern "C" __global__ void __launch_bounds__(QUANTIZE_THREADS)
    move_scales(const __grid_constant__ bsmm_relayout_job job) {
    for (uint32_t down = blockIdx.y; move_block(&job, QUANTIZE_THREADS, blockIdx.x, down);)
        down += gridDim.y;
}

/* Copies the elements of a matrix to row-major order. Each thread copies 8 elements of a row at a
 * time, and adjacent threads have adjacent elements. */
extern "C" __global__ void __launch_bounds__(QUANTIZE_THREADS)
    move_codes(const __grid_constant__ bsmm_codes_job job) {
    const uint32_t item = blockIdx.x * QUANTIZE_THREADS + threadIdx.x;
    for (uint32_t row = blockIdx.y; row < job.rows; row += gridDim.y)
        bsmm_move_codes(&job, row, item);
}
