/* The first part of a small-M kernel: A's values and the scales come into shared memory.
 *
 * A: for each step of 128 along K, chunk of 8 and column (a row of A, or one of the parts that its
 * values are split into), 4 times 16 bytes: what the 4 threads that share a row of a fragment read.
 * For warpgroups 4 bytes of each thread lie together: for each chunk 4 parts of 16 bytes a column.
 * Values that bf16 cannot hold are stored as NaN: their row's results are NaN then, and summed
 * again. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_STAGE_H
#define BSMM_CUDA_SM90A_SMALL_M_STAGE_H

#include "cuda/ptx/halves.h"
#include "cuda/ptx/stream.h"
#include "cuda/sm90a/small_m_params.h"
#include "gpu/small_m_weights.h"

/* Formats of weights, which kernels are made for. */
enum { SMALL_M_MXFP4 = 1, SMALL_M_NVFP4 = 2, SMALL_M_MXFP8 = 3, SMALL_M_FP8_F32 = 4 };

/* What a block multiplies: ranges of K and their steps [begin, end), rows [row, row + rows) of B.
 */
typedef struct small_m_block {
    uint32_t first_range, ranges;
    uint32_t begin, end;
    uint32_t row, rows;
} small_m_block;

static __device__ __forceinline__ uint32_t small_m_begin(const bsmm_small_m_params *p,
                                                         uint32_t range) {
    return p->steps * range >> p->ranges_log2;
}

static __device__ __forceinline__ uint32_t small_m_address(const void *shared) {
    return (uint32_t)__cvta_generic_to_shared(shared);
}

static __device__ __forceinline__ float small_m_shared_f32(uint32_t address) {
    return *(const float *)__cvta_shared_to_generic(address);
}

/* ---- scales ---- */

/* fp32 factors outside this range become NaN, so that a product of two neither overflows nor loses
 * bits. */
static __device__ __forceinline__ float small_m_tame(float scale) {
    float magnitude = fabsf(scale);
    bool tame = magnitude == 0 || (magnitude >= 0x1p-62f && magnitude <= 0x1p62f);
    return tame ? scale : __uint_as_float(0x7fc00000u);
}

/* Scale codes, `per_step` bytes for each row and step, whole vectors; a warp takes a row at a time.
 */
static __device__ __forceinline__ void small_m_copy_scales(const bsmm_small_m_params *p,
                                                           const small_m_block *block,
                                                           const uint32_t per_step, uint8_t *to) {
    const uint32_t log2 = __ffs((int)p->scale_vector) - 1;
    uint32_t vectors = (block->end - block->begin) * per_step >> log2;
    for (uint32_t row = threadIdx.x / 32; row < block->rows; row += BSMM_SMALL_M_WARPS) {
        const uint8_t *from = p->b.scales + min(block->row + row, p->n - 1) * p->b_scale_pitch +
                              block->begin * per_step;
        uint32_t target = small_m_address(to + row * p->scale_stride);
        for (uint32_t i = threadIdx.x % 32; i < vectors; i += 32) {
            uint32_t at = i << log2;
            if (p->scale_vector == 16)
                ptx_copy16(target + at, from + at);
            else if (p->scale_vector == 8)
                ptx_copy8(target + at, from + at);
            else
                ptx_copy4(target + at, from + at);
        }
    }
}

/* Past the end of K a scale code must be an ordinary number, for zeros times NaN are NaN; 0x38 is
 * one in either format. */
static __device__ __forceinline__ uint8_t small_m_scale_or_one(const uint8_t *from, bool inside) {
    return inside ? *from : 0x38;
}

/* Row-major codes, byte by byte: rows need not be aligned. A warp takes a row at a time. */
static __device__ __forceinline__ void small_m_load_scales(const bsmm_small_m_params *p,
                                                           const small_m_block *block,
                                                           const uint32_t per_step, uint8_t *to) {
    const uint32_t count = (block->end - block->begin) * per_step,
                   width = BSMM_SMALL_M_K / per_step;
    const uint32_t first = block->begin * per_step;
    for (uint32_t row = threadIdx.x / 32; row < block->rows; row += BSMM_SMALL_M_WARPS) {
        const uint8_t *from =
            p->b.scales + min(block->row + row, p->n - 1) * p->b_scale_pitch + first;
#pragma unroll 4
        for (uint32_t i = threadIdx.x % 32; i < count; i += 32)
            to[row * p->scale_stride + i] =
                small_m_scale_or_one(from + i, (first + i) * width < p->k);
    }
}

/* Codes that cannot be copied as vectors: row-major ones, or ones of any layout. */
static __device__ __noinline__ void small_m_gather_scales(const bsmm_small_m_params *p,
                                                          const small_m_block block,
                                                          const uint32_t per_step, uint8_t *to) {
    if (p->scale_vector) {
        small_m_load_scales(p, &block, per_step, to);
        return;
    }
    uint32_t count = (block.end - block.begin) * per_step, width = BSMM_SMALL_M_K / per_step;
    for (uint32_t i = threadIdx.x; i < count * block.rows; i += BSMM_SMALL_M_THREADS) {
        uint32_t row = min(block.row + i / count, p->n - 1);
        uint32_t k = block.begin * BSMM_SMALL_M_K + i % count * width;
        uint64_t at = bsmm_axis_at(&p->b.row_map, row) + bsmm_axis_at(&p->b.col_map, k);
        to[i / count * p->scale_stride + i % count] =
            small_m_scale_or_one(p->b.scales + at, k < p->k);
    }
}

/* fp32 scales of B, one for each 16 rows and step: number i, 0 behind the last. */
static __device__ __forceinline__ float small_m_load_float(const bsmm_small_m_params *p,
                                                           const small_m_block *block, uint32_t i) {
    uint32_t steps = block->end - block->begin;
    if (i >= steps * (block->rows / 16)) return 0;
    uint32_t tile = i / steps, step = i % steps;
    uint32_t row = min(block->row + tile * 16, p->n - 1);
    return bsmm_gpu_scale(&p->b, row, (block->begin + step) * BSMM_SMALL_M_K);
}

/* All of them; scale: of number threadIdx.x. */
static __device__ __forceinline__ void small_m_stage_floats(const bsmm_small_m_params *p,
                                                            const small_m_block *block, float scale,
                                                            uint8_t *to) {
    uint32_t steps = block->end - block->begin;
    for (uint32_t i = threadIdx.x; i < steps * (block->rows / 16); i += BSMM_SMALL_M_THREADS) {
        if (i != threadIdx.x) scale = small_m_load_float(p, block, i);
        *(float *)(to + i / steps * p->scale_stride + i % steps * 4) = small_m_tame(scale);
    }
}

/* mine: of fp32 scales, this thread's first. */
static __device__ __forceinline__ void small_m_stage_scales(const int format,
                                                            const bsmm_small_m_params *p,
                                                            const small_m_block *block, float mine,
                                                            uint8_t *to) {
    const uint32_t per_step = format == SMALL_M_NVFP4 ? 8 : 4;
    if (format == SMALL_M_FP8_F32)
        small_m_stage_floats(p, block, mine, to);
    else if (p->scale_vector > 1)
        small_m_copy_scales(p, block, per_step, to);
    else
        small_m_gather_scales(p, *block, per_step, to);
}

#endif
