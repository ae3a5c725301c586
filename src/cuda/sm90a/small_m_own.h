/* Converts A to bf16 inside a small-M kernel. With more than two rows of A, a separate kernel does
 * this. With one or two rows, each thread block converts the part of A that it needs and keeps it
 * in shared memory, which takes less time than waiting for a separate kernel. The converted A is
 * called A's image. It has the order in which the main loop reads it (small_m_prepare.h).
 *
 * A chunk is 8 elements along K. In each step of 128 elements, a thread of the main loop reads four
 * chunks of A. Four adjacent lanes convert these chunks. In the image, the distance from one of the
 * four chunks to the next is 64 bytes for each column, plus 16 bytes of padding that put the chunks
 * in different banks of shared memory. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_OWN_H
#define BSMM_CUDA_SM90A_SMALL_M_OWN_H

#include "cuda/sm90a/small_m_prepare.h"

/* Holds the positions of one chunk of A, i.e. of 8 elements along K of one row, in A and in A's
 * image. The image is A converted to bf16, in the order in which the main loop reads it. */
typedef struct small_m_chunk_position {
    /* A chunk is 8 elements of a row of A. `row` is the chunk's row of A, and `k` is the index
     * along K of its first element. `step` is the chunk's step of K (128 elements), counted from
     * the thread block's first step. */
    uint32_t row, step, k;
    /* A chunk is 8 elements along K of a row of A. `to` is the offset in bytes at which shared
     * memory holds the converted chunk, counted from the beginning of A's image. The image is A in
     * the order in which the kernel reads it. */
    uint32_t to;
    bool wanted;
} small_m_chunk_position;

static __device__ __forceinline__ small_m_chunk_position small_m_find_chunk(
    const bsmm_small_m_params *p, const bool narrow, const small_m_block *block, uint32_t index) {
    uint32_t fragment = index % 4, group = index >> 2 >> p->m_log2, t = group % 4;
    small_m_chunk_position at;
    at.row = index >> 2 & ((1u << p->m_log2) - 1);
    at.step = group / 4;
    at.wanted = at.row < p->m && at.step < block->end - block->begin;
    at.k = (block->begin + at.step) * BSMM_SMALL_M_K +
           (narrow ? t * 32 + fragment * 8 : fragment / 2 * 64 + t * 16 + fragment % 2 * 8);
    at.to = (at.step * 4 + fragment) * p->chunk_bytes + at.row * p->parts * 64 + t * 16;
    return at;
}

/* Loads this thread's chunks of A into registers, without converting them. A chunk is 8 elements
 * along K. The 512 threads of the thread block take the chunks in turn, so this thread gets the
 * chunks number `first`, first + 512, first + 1024 and so on. */
static __device__ __forceinline__ void small_m_own_load(const bsmm_small_m_params *p,
                                                        const bool narrow, const bool e2m1,
                                                        const small_m_block *block, uint32_t first,
                                                        small_m_raw raw[BSMM_SMALL_M_OWN_CHUNKS]) {
#pragma unroll
    for (uint32_t i = 0; i < BSMM_SMALL_M_OWN_CHUNKS; i++) {
        small_m_chunk_position at =
            small_m_find_chunk(p, narrow, block, first + i * BSMM_SMALL_M_THREADS);
        if (at.wanted) small_m_load(p, p->source, e2m1, at.row, at.k, &raw[i]);
    }
}

/* A chunk is 8 elements along K of a row of A. Converts the chunks that this thread has loaded to
 * bf16, and stores them in shared memory in the order in which the main loop reads A. Sets
 * flags[row] to 1 if an element of this row of A is not 0. */
static __device__ __forceinline__ void
small_m_own_store(const bsmm_small_m_params *p, const bool narrow, const bool e2m1,
                  const small_m_block *block, uint32_t first,
                  const small_m_raw raw[BSMM_SMALL_M_OWN_CHUNKS], uint8_t *image, uint32_t *flags) {
#pragma unroll
    for (uint32_t i = 0; i < BSMM_SMALL_M_OWN_CHUNKS; i++) {
        small_m_chunk_position at =
            small_m_find_chunk(p, narrow, block, first + i * BSMM_SMALL_M_THREADS);
        if (!at.wanted) continue;
        uint4 parts[2];
        small_m_convert(p, p->source, e2m1, &raw[i], parts);
        *(uint4 *)(image + at.to) = small_m_arrange(narrow, parts[0]);
        if (p->parts == 2) *(uint4 *)(image + at.to + 64) = small_m_arrange(narrow, parts[1]);
        if (small_m_magnitude(parts[0]) | small_m_magnitude(parts[1])) flags[at.row] = 1;
    }
}

/* Copies the fp32 scales of A that the thread block needs to shared memory: one scale for each row
 * of A and each of the thread block's steps of K (128 elements). If A has no scales, the function
 * writes 1 instead. */
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
