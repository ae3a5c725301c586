/* The prologue of a small-M kernel, which copies scales of B to shared memory.
 *
 * Layout of A, which a small-M kernel reads: A column is a row of A, or one of the parts into which
 * its values are split. A step is 128 elements along K, and a chunk is 8. For each step, chunk and
 * column there are 4 x 16 bytes, one for each of the 4 threads that share a row of a fragment. For
 * wgmma, 4 bytes of each of these threads are adjacent, so a chunk consists of 4 parts with 16
 * bytes for each column. A value that does not fit in bf16 is stored as NaN; its row's results
 * become NaN and are then recomputed in double. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_STAGE_H
#define BSMM_CUDA_SM90A_SMALL_M_STAGE_H

#include "cuda/ptx/halves.h"
#include "cuda/ptx/stream.h"
#include "cuda/sm90a/small_m_params.h"
#include "gpu/small_m_weights.h"

/* Formats of weights for which small-M kernels exist. */
enum { SMALL_M_MXFP4 = 1, SMALL_M_NVFP4 = 2, SMALL_M_MXFP8 = 3, SMALL_M_FP8_F32 = 4 };

/* The part of the GEMM that a block computes: ranges and steps [begin, end) of K, and rows [row,
 * row + rows) of B. */
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

/* Replaces an fp32 scale outside a moderate range by NaN, so that the product of two scales neither
 * overflows nor underflows. */
static __device__ __forceinline__ float small_m_tame(float scale) {
    float magnitude = fabsf(scale);
    bool tame = magnitude == 0 || (magnitude >= 0x1p-62f && magnitude <= 0x1p62f);
    return tame ? scale : __uint_as_float(0x7fc00000u);
}

/* Copies scale codes, `per_step` bytes for each row and step, as whole vectors. Each warp copies
 * one row at a time. */
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

/* Returns a scale code, or past the end of K the code 0x38. That is a finite number in both e8m0
 * and e4m3. The elements there are zeros, and zero times NaN would be NaN. */
static __device__ __forceinline__ uint8_t small_m_scale_or_one(const uint8_t *from, bool inside) {
    return inside ? *from : 0x38;
}

/* Copies row-major scale codes byte by byte, because rows may be unaligned. Each warp copies one
 * row at a time. */
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

/* Copies scale codes that cannot be copied as vectors: unaligned row-major codes, or codes of any
 * other layout. */
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

/* Returns fp32 scale number i of B, or 0 past the last one. There is one scale for each 16 rows and
 * step. */
static __device__ __forceinline__ float small_m_load_float(const bsmm_small_m_params *p,
                                                           const small_m_block *block, uint32_t i) {
    uint32_t steps = block->end - block->begin;
    if (i >= steps * (block->rows / 16)) return 0;
    uint32_t tile = i / steps, step = i % steps;
    uint32_t row = min(block->row + tile * 16, p->n - 1);
    return bsmm_gpu_scale(&p->b, row, (block->begin + step) * BSMM_SMALL_M_K);
}

/* Stores all fp32 scales of the block in shared memory. `scale` is the one with number threadIdx.x,
 * which the caller has already loaded. */
static __device__ __forceinline__ void small_m_stage_floats(const bsmm_small_m_params *p,
                                                            const small_m_block *block, float scale,
                                                            uint8_t *to) {
    uint32_t steps = block->end - block->begin;
    for (uint32_t i = threadIdx.x; i < steps * (block->rows / 16); i += BSMM_SMALL_M_THREADS) {
        if (i != threadIdx.x) scale = small_m_load_float(p, block, i);
        *(float *)(to + i / steps * p->scale_stride + i % steps * 4) = small_m_tame(scale);
    }
}

/* Copies all scales of the block to shared memory. `mine` is this thread's first scale, if scales
 * are fp32. */
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
