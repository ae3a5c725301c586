/* Converts A inside a small-M kernel. With one or two rows of A, each thread block makes an image
 * of its part of A in shared memory (small_m_prepare.h has the layout). That takes less time than
 * waiting for a separate kernel.
 *
 * A chunk is 8 elements along K. A thread of the main loop reads four chunks of A in each step.
 * Four neighboring lanes convert these four chunks, which are adjacent in A. In the image they are
 * 64 bytes per column apart. 16 extra bytes put the four chunks in different banks of shared
 * memory. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_OWN_H
#define BSMM_CUDA_SM90A_SMALL_M_OWN_H

#include "cuda/sm90a/small_m_prepare.h"

/* The place of one chunk of A, i.e. 8 elements along K of one row. Threads handle chunks in the
 * order of their numbers. */
typedef struct small_m_place {
    /* The row of A, the step of K counted from the thread block's first step, and the first element
     * of the chunk along K. */
    uint32_t row, step, k;
    uint32_t to; /* the place in A's image, in bytes from the beginning of the image */
    bool wanted;
} small_m_place;

static __device__ __forceinline__ small_m_place small_m_find_place(const bsmm_small_m_params *p,
                                                                   const bool narrow,
                                                                   const small_m_block *block,
                                                                   uint32_t index) {
    uint32_t fragment = index % 4, group = index >> 2 >> p->m_log2, t = group % 4;
    small_m_place at;
    at.row = index >> 2 & ((1u << p->m_log2) - 1);
    at.step = group / 4;
    at.wanted = at.row < p->m && at.step < block->end - block->begin;
    at.k = (block->begin + at.step) * BSMM_SMALL_M_K +
           (narrow ? t * 32 + fragment * 8 : fragment / 2 * 64 + t * 16 + fragment % 2 * 8);
    at.to = (at.step * 4 + fragment) * p->chunk_bytes + at.row * p->parts * 64 + t * 16;
    return at;
}

/* Loads chunks `first`, first + 512, ... of A into a thread's registers, without converting them.
 */
static __device__ __forceinline__ void small_m_own_load(const bsmm_small_m_params *p,
                                                        const bool narrow,
                                                        const small_m_block *block, uint32_t first,
                                                        small_m_raw raw[BSMM_SMALL_M_OWN_CHUNKS]) {
#pragma unroll
    for (uint32_t i = 0; i < BSMM_SMALL_M_OWN_CHUNKS; i++) {
        small_m_place at = small_m_find_place(p, narrow, block, first + i * BSMM_SMALL_M_THREADS);
        if (at.wanted) small_m_load(p, at.row, at.k, &raw[i]);
    }
}

/* Converts a thread's chunks and stores them in the image. Sets flags[row] to 1 if a value of the
 * row is nonzero. */
static __device__ __forceinline__ void
small_m_own_store(const bsmm_small_m_params *p, const bool narrow, const small_m_block *block,
                  uint32_t first, const small_m_raw raw[BSMM_SMALL_M_OWN_CHUNKS], uint8_t *image,
                  uint32_t *flags) {
#pragma unroll
    for (uint32_t i = 0; i < BSMM_SMALL_M_OWN_CHUNKS; i++) {
        small_m_place at = small_m_find_place(p, narrow, block, first + i * BSMM_SMALL_M_THREADS);
        if (!at.wanted) continue;
        uint4 parts[2];
        small_m_convert(p, &raw[i], parts);
        *(uint4 *)(image + at.to) = small_m_arrange(narrow, parts[0]);
        if (p->parts == 2) *(uint4 *)(image + at.to + 64) = small_m_arrange(narrow, parts[1]);
        if (small_m_magnitude(parts[0]) | small_m_magnitude(parts[1])) flags[at.row] = 1;
    }
}

/* Copies the fp32 scales of A's rows for the thread block's steps of K. All scales are 1 if A is
 * unscaled. */
static __device__ __forceinline__ void small_m_own_scales(const bsmm_small_m_params *p,
                                                          const small_m_block *block, float *to) {
    const uint32_t count = (block->end - block->begin) * p->scale_columns;
    for (uint32_t i = threadIdx.x; i < count; i += BSMM_SMALL_M_THREADS) {
        uint32_t step = i / p->scale_columns, row = i % p->scale_columns / p->parts;
        float scale = 1;
        if (p->a.scale == BSMM_SCALE_F32 && row < p->m)
            scale =
                small_m_tame(bsmm_gpu_scale(&p->a, row, (block->begin + step) * BSMM_SMALL_M_K));
        to[i] = scale;
    }
}

#endif
