/* This is the prologue of a small-M kernel (few rows of A). It copies B's scales to shared memory.
 *
 * A small-M kernel reads A from shared memory as bf16 columns. A column is one row of A. If A is
 * f16 or f32, each row is split into two or three rows of bf16 numbers, and each of them is a
 * column. K is divided into steps of 128 elements, and a step into 4 chunks. For mma.sync, a chunk
 * has 64 bytes for each column: 16 bytes for each of the 4 threads that share a row of an mma
 * fragment. For wgmma, a chunk is divided into 4 parts, and a part has 16 bytes for each column: 4
 * bytes for each of the 4 threads.
 *
 * A value of A that bf16 cannot hold is stored as NaN. All results of that row of A then become
 * NaN, and the epilogue recomputes them in double. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_STAGE_H
#define BSMM_CUDA_SM90A_SMALL_M_STAGE_H

#include "cuda/ptx/halves.h"
#include "cuda/ptx/stream.h"
#include "cuda/sm90a/small_m_params.h"
#include "gpu/small_m_weights.h"

static __device__ __forceinline__ bool small_m_is_4bit(const int format) {
    return format <= SMALL_M_NVFP4;
}

static __device__ __forceinline__ bool small_m_is_6bit(const int format) {
    return format >= SMALL_M_MXFP6_E2M3;
}

static __device__ __forceinline__ bool small_m_has_e8m0(const int format) {
    return format == SMALL_M_MXFP4 || format == SMALL_M_MXFP8 || small_m_is_6bit(format);
}

static __device__ __forceinline__ bool small_m_has_floats(const int format) {
    return format == SMALL_M_FP8_F32 || format == SMALL_M_FP8_ROWS;
}

/* Returns the factor by which the epilogue multiplies accumulators. Decoding does not give the
 * exact weights and scales, but the weights times one power of two and the scales times another.
 * These powers of two are chosen so that both fit in bf16 and decoding takes few instructions. The
 * returned factor is the inverse of their product. */
static __device__ __forceinline__ double small_m_unfold(const int format) {
    if (format == SMALL_M_MXFP4 || format == SMALL_M_MXFP6_E2M3) return 0x1p27;
    if (format == SMALL_M_MXFP6_E3M2) return 0x1p25;
    return format == SMALL_M_MXFP8 ? 0x1p21 : format == SMALL_M_NVFP4 ? 0x1p8 : 1;
}

/* Describes the part of the GEMM that one thread block computes: rows [row, row + rows) of B, and
 * steps [begin, end) of K (128 elements each). K is divided into ranges of whole steps, all of
 * about the same length. The thread block has `ranges` adjacent ranges, and first_range is the
 * number of the first one. */
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

/* Returns NaN for an fp32 scale whose magnitude is neither 0 nor between 2^-62 and 2^62, and other
 * scales unchanged. The product of two unchanged scales neither overflows nor underflows. A NaN
 * makes the epilogue recompute the results in double. */
static __device__ __forceinline__ float small_m_tame(float scale) {
    float magnitude = fabsf(scale);
    bool tame = magnitude == 0 || (magnitude >= 0x1p-62f && magnitude <= 0x1p62f);
    return tame ? scale : __uint_as_float(0x7fc00000u);
}

/* Tells which scale codes of B a thread copies from global to shared memory. 2^p->scale_lanes_log2
 * adjacent threads together copy the codes of one row of B, each of them 16 aligned bytes at a
 * time. The thread takes part in the copies of the rows `row`, row + rows_each, row + 2 rows_each
 * and so on, counted from the first row of the thread block. */
typedef struct small_m_codes {
    uint32_t row, rows_each;
    /* A row's first code usually does not lie at a multiple of 16 bytes. `from` is the address in
     * global memory of the 16 aligned bytes in which the codes of row number `row` begin, and `to`
     * is their address in shared memory. The first code is byte number `before` of these 16 bytes.
     * `before` is the same for all rows of the thread, because they are rows_each rows apart and
     * rows_each is a multiple of 16. */
    const uint8_t *from;
    uint32_t to, before;
    /* A thread copies 16 bytes of a row of codes at a time. `first` is the offset of its first 16
     * bytes from `from`, and `stride` is the distance from these to the next 16 bytes that it
     * copies. Both are in bytes. */
    uint32_t first, stride;
    /* `end` and `all` are offsets in bytes from `from` on. The codes that exist end at `end`, which
     * is the end of K or of the thread block's part of K. The main loop reads codes up to `all`,
     * i.e. for whole steps of 128 elements along K, and the last step may extend past the end of K.
     */
    uint32_t end, all;
} small_m_codes;

/* Returns the offset of the thread block's first scale code, counted from p->scales_at in shared
 * memory. cp.async copies aligned units of 16 bytes to aligned addresses. A code therefore has the
 * same position in its unit of 16 bytes in shared memory as in global memory, and the first code
 * need not be at the beginning of a unit. */
static __device__ __forceinline__ uint32_t small_m_code_shift(const bsmm_small_m_params *p,
                                                              const small_m_block *block,
                                                              const uint32_t per_step) {
    return p->scale_vector ? block->begin * per_step % 16 : 0;
}

/* Finds the scale codes that the calling thread copies. The stride between two rows of scales in
 * shared memory (p->scale_stride) and the stride in global memory are equal modulo 16. */
static __device__ __forceinline__ small_m_codes small_m_find_codes(const bsmm_small_m_params *p,
                                                                   const small_m_block *block,
                                                                   const uint32_t per_step,
                                                                   const uint8_t *to) {
    const uint32_t first = block->begin * per_step, lanes = 1u << p->scale_lanes_log2;
    small_m_codes codes;
    codes.row = threadIdx.x >> p->scale_lanes_log2;
    codes.rows_each = BSMM_SMALL_M_THREADS >> p->scale_lanes_log2;
    codes.from = p->b.scales + (block->row + codes.row) * p->b_scale_pitch + first;
    codes.before = (uint32_t)(uint64_t)codes.from % 16;
    codes.from -= codes.before;
    codes.to = small_m_address(to) + codes.row * p->scale_stride +
               small_m_code_shift(p, block, per_step) - codes.before;
    codes.first = (threadIdx.x & (lanes - 1)) * 16;
    codes.stride = lanes * 16;
    codes.end = codes.before + min(block->end * per_step, p->scale_count) - first;
    codes.all = codes.before + (block->end - block->begin) * per_step;
    return codes;
}

static __device__ __forceinline__ void small_m_enter_row(const bsmm_small_m_params *p,
                                                         small_m_codes *codes) {
    codes->row += codes->rows_each;
    codes->from += codes->rows_each * p->b_scale_pitch;
    codes->to += codes->rows_each * p->scale_stride;
}

/* SMALL_M_FINITE is a scale code that means a finite number in both e8m0 and e4m3. It is stored
 * where there is no scale, e.g. past the end of K. SMALL_M_FINITES has it in all four bytes. */
enum { SMALL_M_FINITE = 0x38, SMALL_M_FINITES = 0x38383838 };

/* Copies B's row-major scale codes to shared memory. Each row has `per_step` bytes for each step of
 * K. */
static __device__ __forceinline__ void small_m_copy_scales(const bsmm_small_m_params *p,
                                                           const small_m_block *block,
                                                           const uint32_t per_step, uint8_t *to) {
    small_m_codes codes = small_m_find_codes(p, block, per_step, to);
    const uint32_t rows = min(block->rows, p->n - block->row);
#pragma unroll 1
    for (; codes.row < rows; small_m_enter_row(p, &codes))
#pragma unroll 1
        for (uint32_t i = codes.first; i < codes.end; i += codes.stride)
            ptx_copy16_once(codes.to + i, codes.from + i, min(16u, codes.end - i));
}

/* small_m_copy_scales copies no scale codes past the end of K and past the last row of B. This
 * function stores finite codes in shared memory in their place. Codes past the end of K multiply
 * zeros, and codes past the last row multiply weights whose results are not stored. They must still
 * not be NaN, because a NaN would turn these zeros, and the results of other rows, into NaN. A
 * row's last code is copied together with the bytes after it, which the copy sets to zeros. The
 * thread that has made this copy replaces these zeros by finite codes. Each calling thread must
 * have waited for its own copies. */
static __device__ __noinline__ void small_m_fill_scales(const bsmm_small_m_params *p,
                                                        const small_m_block block,
                                                        const uint32_t per_step, uint8_t *to) {
    small_m_codes codes = small_m_find_codes(p, &block, per_step, to);
    const bool last = ((codes.end - 1) / 16 * 16 & (codes.stride - 1)) == codes.first;
#pragma unroll 1
    for (; codes.row < block.rows; small_m_enter_row(p, &codes)) {
        if (block.row + codes.row >= p->n)
            for (uint32_t i = codes.first; i < codes.all; i += codes.stride)
                *(uint4 *)__cvta_shared_to_generic(codes.to + i) =
                    make_uint4(SMALL_M_FINITES, SMALL_M_FINITES, SMALL_M_FINITES, SMALL_M_FINITES);
        else if (last)
            for (uint32_t i = codes.end; i < codes.all; i++)
                *(uint8_t *)__cvta_shared_to_generic(codes.to + i) = SMALL_M_FINITE;
    }
}

static __device__ __forceinline__ void small_m_end_scales(const bsmm_small_m_params *p,
                                                          const small_m_block *block,
                                                          const uint32_t per_step, uint8_t *to) {
    const bool whole = block->end * per_step <= p->scale_count && block->row + block->rows <= p->n;
    if (p->scale_vector && !whole) small_m_fill_scales(p, *block, per_step, to);
}

/* Returns the scale code at `from`, or a finite code past the end of K (if `inside` is false).
 * Elements past the end of K are zeros, and a zero times a scale of NaN would be NaN. */
static __device__ __forceinline__ uint8_t small_m_scale_or_one(const uint8_t *from, bool inside) {
    return inside ? *from : SMALL_M_FINITE;
}

/* Copies B's scale codes to shared memory one by one if their layout is not row-major. */
static __device__ __noinline__ void small_m_gather_scales(const bsmm_small_m_params *p,
                                                          const small_m_block block,
                                                          const uint32_t per_step, uint8_t *to) {
    uint32_t count = (block.end - block.begin) * per_step, width = BSMM_SMALL_M_K / per_step;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < count * block.rows; i += BSMM_SMALL_M_THREADS) {
        uint32_t row = min(block.row + i / count, p->n - 1);
        uint32_t k = block.begin * BSMM_SMALL_M_K + i % count * width;
        uint64_t at = bsmm_axis_at(&p->b.row_map, row) + bsmm_axis_at(&p->b.col_map, k);
        to[i / count * p->scale_stride + i % count] =
            small_m_scale_or_one(p->b.scales + at, k < p->k);
    }
}

/* Returns the number of fp32 scales that a thread block needs of a row of B: one for each step of
 * 128 elements along K, or one for all of K. */
static __device__ __forceinline__ uint32_t small_m_row_floats(const bsmm_small_m_params *p,
                                                              const small_m_block *block,
                                                              const uint32_t rows_each) {
    return rows_each == 1 && p->scale_step == 0 ? 1 : block->end - block->begin;
}

/* Returns fp32 scale number i of the scales of B that this thread block needs, or 0 if there is no
 * such scale. Each `rows_each` rows of B share their scales. They have one scale for each step of
 * 128 elements along K, or one scale for all of K. The numbers begin with the scales of the first
 * `rows_each` rows, in the order of K. */
static __device__ __forceinline__ float small_m_load_float(const bsmm_small_m_params *p,
                                                           const small_m_block *block,
                                                           const uint32_t rows_each, uint32_t i) {
    uint32_t steps = small_m_row_floats(p, block, rows_each);
    if (i >= steps * (block->rows / rows_each)) return 0;
    uint32_t tile = i / steps, step = i % steps;
    uint32_t row = min(block->row + tile * rows_each, p->n - 1);
    return bsmm_gpu_scale(&p->b, row, (block->begin + step) * BSMM_SMALL_M_K);
}

/* Copies the fp32 scales of B that the thread block needs to shared memory. The calling thread has
 * already loaded scale number threadIdx.x, to hide the latency of the load, and passes it as
 * `scale`. */
static __device__ __forceinline__ void small_m_stage_floats(const bsmm_small_m_params *p,
                                                            const small_m_block *block,
                                                            const uint32_t rows_each, float scale,
                                                            uint8_t *to) {
    uint32_t steps = small_m_row_floats(p, block, rows_each);
    for (uint32_t i = threadIdx.x; i < steps * (block->rows / rows_each);
         i += BSMM_SMALL_M_THREADS) {
        if (i != threadIdx.x) scale = small_m_load_float(p, block, rows_each, i);
        *(float *)(to + i / steps * p->scale_stride + i % steps * 4) = small_m_tame(scale);
    }
}

/* Copies all scales of B that the thread block needs to shared memory. If the scales are fp32,
 * `mine` is scale number threadIdx.x, which the calling thread has already loaded. Otherwise `mine`
 * is unused. */
static __device__ __forceinline__ void small_m_stage_scales(const int format,
                                                            const bsmm_small_m_params *p,
                                                            const small_m_block *block, float mine,
                                                            uint8_t *to) {
    const uint32_t per_step = format == SMALL_M_NVFP4 ? 8 : 4;
    if (small_m_has_floats(format))
        small_m_stage_floats(p, block, format == SMALL_M_FP8_ROWS ? 1 : 16, mine, to);
    else if (p->scale_vector)
        small_m_copy_scales(p, block, per_step, to);
    else
        small_m_gather_scales(p, *block, per_step, to);
}

#endif
