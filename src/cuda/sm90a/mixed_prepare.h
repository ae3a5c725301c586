/* Prepares A for the mixed-input kernels (mixed_kernels.h). An f16 A stays f16, and any other A
 * is converted to bf16. The result is an image of A, i.e. 16-bit values in the layout that wgmma
 * reads from shared memory, and in the order along K in which the kernels decode weights.
 *
 * A column is one row of A. The image is an array [tile][step][fragment][part][column][8] of bf16
 * or f16. A tile is p->columns columns. A step is 128 elements along K. A step consists of 4
 * fragments of 32 elements, and a fragment of 4 parts of 8 elements. small_m_prepare.h explains the
 * order of the elements.
 *
 * The kernel small_m_prepare makes the same image in bf16, but stores 4 bytes at a time. With many
 * rows of A these stores would take longer than the kernel here, which stores 16 bytes at a
 * time. */
#ifndef BSMM_CUDA_SM90A_MIXED_PREPARE_H
#define BSMM_CUDA_SM90A_MIXED_PREPARE_H

#include "cuda/ptx/prefetch.h"
#include "cuda/sm90a/mixed_shape.h"
#include "cuda/sm90a/small_m_prepare.h"

/* A step of K has 16 chunks of 8 elements. They are stored in A's image as 4 fragments of 4 chunks,
 * one chunk for each of four threads. Returns the number along K of the chunk that thread `thread`
 * reads from fragment `fragment`. The order matches that in which the thread decodes weights, which
 * depends on whether they have 4 or 6 bits (`narrow`) or 8. */
static __device__ __forceinline__ uint32_t mixed_inner(uint32_t narrow, uint32_t fragment,
                                                       uint32_t thread) {
    return narrow ? thread * 4 + fragment : fragment / 2 * 8 + thread * 2 + fragment % 2;
}

/* Returns an address in A's image for column `column`, i.e. for one row of A. A fragment is 32
 * elements along K. A fragment of this row has four parts of 16 bytes, and the function returns the
 * address of the first part. The address of each further part is p->columns * 16 bytes higher. */
static __device__ __forceinline__ uint8_t *mixed_part(const bsmm_small_m_params *p, uint32_t column,
                                                      uint32_t step, uint32_t fragment) {
    const uint32_t tile = column / p->columns;
    return p->a_image + (((uint64_t)tile * p->steps + step) * 4 + fragment) * p->columns * 64 +
           (column - tile * p->columns) * 16;
}

/* Stores a fragment, i.e. 32 elements along K, of one row of A, which is a column of the kernel's
 * tile. v[t] holds the 8 elements that thread t of four decodes, in their order along K. */
static __device__ __forceinline__ void mixed_store(const bsmm_small_m_params *p, uint32_t column,
                                                   uint32_t step, uint32_t fragment, uint4 v[4]) {
    uint8_t *to = mixed_part(p, column, step, fragment);
#pragma unroll
    for (int t = 0; t < 4; t++)
        if (p->pair_distance > 1) v[t] = small_m_arrange(p->pair_distance == 4, v[t]);
    const uint32_t part_bytes = p->columns * 16;
    *(uint4 *)to = make_uint4(v[0].x, v[1].x, v[2].x, v[3].x);
    *(uint4 *)(to + part_bytes) = make_uint4(v[0].y, v[1].y, v[2].y, v[3].y);
    *(uint4 *)(to + 2 * part_bytes) = make_uint4(v[0].z, v[1].z, v[2].z, v[3].z);
    *(uint4 *)(to + 3 * part_bytes) = make_uint4(v[0].w, v[1].w, v[2].w, v[3].w);
}

/* Returns the smaller one of `least` and the smallest nonzero magnitude among the eight bf16 or f16
 * numbers in `v`. A magnitude is given as the number's 16-bit code without the sign bit, minus 1,
 * both in `least` and in the result. A magnitude of 0 then wraps around to the largest number, so
 * that zeros are ignored. */
static __device__ __forceinline__ uint32_t mixed_least(uint32_t least, uint4 v) {
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        /* For a magnitude of 0, the subtraction wraps around to the largest number, so the minimum
         * ignores zeros. */
        least = min(least, (words[i] & 0x7fff) - 1);
        least = min(least, (words[i] >> 16 & 0x7fff) - 1);
    }
    return least;
}

/* Prefetches fragment number `fragment` (32 elements along K) of a row of A into L2. */
static __device__ __forceinline__ void mixed_prefetch_fragment(const bsmm_small_m_params *p,
                                                               const uint32_t source, uint32_t row,
                                                               uint32_t fragment) {
    if (source == BSMM_SMALL_M_ANY || fragment * 32 >= p->k) return;
    const uint32_t bytes = source == BSMM_SMALL_M_E4M3 ? 32 : source == BSMM_SMALL_M_E2M1 ? 16 : 64;
    ptx_prefetch_l2(p->a.data + row * p->a_pitch + fragment * bytes);
}

/* Rounds a magnitude in f16 down to bf16. The argument is the magnitude's f16 code minus 1, and the
 * result is a bf16 code minus 1. The argument ~0 stands for a row without nonzero numbers, and the
 * result is then ~0 too. */
static __device__ __forceinline__ uint32_t mixed_half_least(uint32_t least) {
    return least == ~0u ? ~0u : (__float_as_uint(ptx_f32_of_f16(least + 1)) >> 16) - 1;
}

static __device__ __forceinline__ uint32_t mixed_read_half(const bsmm_small_m_params *p,
                                                           uint32_t row, uint32_t k) {
    return k < p->k ? bsmm_gpu_code(&p->a, row, k) : 0;
}

/* Reads eight f16 elements of a row of A, from element k on. A may have any strides. */
static __device__ __forceinline__ uint4 mixed_read_halves(const bsmm_small_m_params *p,
                                                          uint32_t row, uint32_t k) {
    uint32_t words[4];
    for (uint32_t i = 0; i < 4; i++)
        words[i] = mixed_read_half(p, row, k + 2 * i) | mixed_read_half(p, row, k + 2 * i + 1)
                                                            << 16;
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* Converts a fragment (32 elements along K) of a row of A in any format. Returns the smallest
 * magnitude of a nonzero number of the fragment, as its code minus 1, or ~0 if all are zeros. */
static __device__ __noinline__ uint32_t mixed_prepare_slowly(const bsmm_small_m_params *p,
                                                             uint32_t row, uint32_t step,
                                                             uint32_t fragment) {
    uint32_t least = ~0u;
    uint4 v[4];
#pragma unroll
    for (uint32_t t = 0; t < 4; t++) {
        const uint32_t k = (step * 16 + mixed_inner(p->narrow, fragment, t)) * 8;
        v[t] = p->half ? mixed_read_halves(p, row, k) : small_m_read_any(p, row, k, 0);
        least = mixed_least(least, v[t]);
    }
    mixed_store(p, row, step, fragment, v);
    return least;
}

/* Converts a fragment (32 elements along K) of a row of A to bf16 or f16, and stores it. Elements
 * past the end of K become zeros. Returns the smallest magnitude of a nonzero number of the
 * fragment, as its 16-bit code minus 1, or ~0 if all numbers are zeros. */
static __device__ __forceinline__ uint32_t mixed_prepare_fragment(const bsmm_small_m_params *p,
                                                                  const uint32_t source,
                                                                  uint32_t row, uint32_t step,
                                                                  uint32_t fragment) {
    if (source == BSMM_SMALL_M_ANY) return mixed_prepare_slowly(p, row, step, fragment);
    small_m_raw raw[4];
    uint4 v[4];
    uint32_t least = ~0u;
#pragma unroll
    for (int t = 0; t < 4; t++)
        small_m_load(p, source, true, row, (step * 16 + mixed_inner(p->narrow, fragment, t)) * 8,
                     &raw[t]);
#pragma unroll
    for (int t = 0; t < 4; t++) {
        uint4 parts[2] = {raw[t].codes};
        if (source != BSMM_SMALL_M_F16) small_m_convert(p, source, true, &raw[t], parts);
        v[t] = parts[0];
        least = mixed_least(least, v[t]);
    }
    mixed_store(p, row, step, fragment, v);
    return least;
}

#endif
