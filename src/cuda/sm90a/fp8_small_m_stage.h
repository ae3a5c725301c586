/* The first part of an FP8 small-M kernel: weights, A's rows and A's scales come into shared
 * memory.
 *
 * Four warpgroups take the block's steps of 128 along K by turns, each with a ring of slots of its
 * own: 64 rows of weights, then A's rows, both as they lie in memory but for the swizzle that wgmma
 * reads. */
#ifndef BSMM_CUDA_SM90A_FP8_SMALL_M_STAGE_H
#define BSMM_CUDA_SM90A_FP8_SMALL_M_STAGE_H

#include "cuda/ptx/bulk.h"
#include "cuda/sm90a/fp8_small_m_shape.h"
#include "cuda/sm90a/small_m_stage.h"

/* What a thread copies of a matrix in each step: in every pass 16 bytes of a row, 16 rows further
 * than in the last. */
enum { FP8_SMALL_M_MOST_PASSES = BSMM_FP8_SMALL_M_ROWS / 16 };
typedef struct fp8_small_m_copies {
    const uint8_t *from[FP8_SMALL_M_MOST_PASSES]; /* of the next step */
    uint32_t to;                                  /* in a slot */
    int32_t left;                                 /* bytes of a row from there on */
    int32_t rows;                                 /* from its first one to the matrix's last */
} fp8_small_m_copies;

/* Of a matrix with `rows` rows of `bytes` bytes, from row `first` and step `step` on. */
static __device__ __forceinline__ fp8_small_m_copies
fp8_small_m_find_copies(const uint8_t *data, uint64_t pitch, uint32_t bytes, uint32_t rows,
                        uint32_t first, uint32_t step) {
    const uint32_t thread = threadIdx.x % BSMM_FP8_SMALL_M_GROUP, row = thread / 8,
                   unit = thread % 8;
    fp8_small_m_copies c;
    c.to = row * BSMM_SMALL_M_K + ((unit ^ (row & 7)) << 4);
    c.left = (int32_t)(bytes - step * BSMM_SMALL_M_K - unit * 16);
    c.rows = (int32_t)(rows - first) - (int32_t)row;
#pragma unroll
    for (int i = 0; i < FP8_SMALL_M_MOST_PASSES; i++)
        c.from[i] =
            data + min(first + row + i * 16, rows - 1) * pitch + step * BSMM_SMALL_M_K + unit * 16;
    return c;
}

/* Copies a step and goes on to the warpgroup's next. Behind the ends of rows, and behind the last
 * row, come zeros, for which nothing is read. */
static __device__ __forceinline__ void fp8_small_m_copy(fp8_small_m_copies *c, const int passes,
                                                        uint32_t to) {
#pragma unroll
    for (int i = 0; i < passes; i++) {
        ptx_copy16_once(to + c->to + i * 16 * BSMM_SMALL_M_K, c->from[i],
                        c->left > 0 && c->rows > i * 16 ? 16 : 0);
        c->from[i] += BSMM_FP8_SMALL_M_GROUPS * BSMM_SMALL_M_K;
    }
    c->left -= BSMM_FP8_SMALL_M_GROUPS * BSMM_SMALL_M_K;
}

/* Barriers at which the four warps of each warpgroup meet, in shared memory: beside named ones
 * racecheck loses sight of the block's. By one thread. */
static __device__ __forceinline__ void fp8_small_m_make_meetings(uint32_t barriers) {
    for (uint32_t i = 0; i < BSMM_FP8_SMALL_M_GROUPS; i++)
        ptx_bulk_init(barriers + i * 8, 4);
    ptx_bulk_fence_init();
}

static __device__ __forceinline__ void fp8_small_m_meet(uint32_t barrier, uint32_t parity) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx_bulk_arrive(barrier);
    while (!ptx_bulk_try_wait(barrier, parity)) {
    }
}

/* fp32 scales of A's rows, [step][columns]; 1 where there are none. */
static __device__ __forceinline__ void fp8_small_m_stage_a_scales(const bsmm_small_m_params *p,
                                                                  const small_m_block *block,
                                                                  const uint32_t columns,
                                                                  float *to) {
    const uint32_t steps = block->end - block->begin;
    for (uint32_t i = threadIdx.x; i < steps * columns; i += BSMM_SMALL_M_THREADS) {
        const uint32_t row = i / steps, step = i % steps;
        float scale = 1;
        if (p->a.scale == BSMM_SCALE_F32 && row < p->m)
            scale =
                small_m_tame(bsmm_gpu_scale(&p->a, row, (block->begin + step) * BSMM_SMALL_M_K));
        to[step * columns + row] = scale;
    }
}

#endif
