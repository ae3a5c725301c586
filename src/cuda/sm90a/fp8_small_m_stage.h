/* The prologue and the loads of an FP8 small-M kernel. They copy weights, rows of A and scales of A
 * to shared memory.
 *
 * A step is 128 elements along K. Four warpgroups take the steps of a block round-robin. Each has
 * its own ring of slots in shared memory. A slot holds 64 rows of weights followed by the rows of
 * A, as they lie in memory except for the swizzle that wgmma reads. */
#ifndef BSMM_CUDA_SM90A_FP8_SMALL_M_STAGE_H
#define BSMM_CUDA_SM90A_FP8_SMALL_M_STAGE_H

#include "cuda/ptx/bulk.h"
#include "cuda/sm90a/fp8_small_m_shape.h"
#include "cuda/sm90a/small_m_stage.h"

/* The copies that one thread makes of a matrix in each step. It copies 16 bytes in each pass, from
 * a row that is 16 rows below the row of the last pass. */
enum { FP8_SMALL_M_MOST_PASSES = BSMM_FP8_SMALL_M_ROWS / 16 };
typedef struct fp8_small_m_copies {
    /* The addresses in global memory that the thread copies from in the next step of K. */
    const uint8_t *from[FP8_SMALL_M_MOST_PASSES];
    uint32_t to;  /* the destination of the copies, in bytes from the beginning of a slot */
    int32_t left; /* the bytes from the source address to the end of the row */
    int32_t rows; /* the number of rows from this thread's first row to the end of the matrix */
} fp8_small_m_copies;

/* Prepares the copies of a matrix that has `rows` rows of `bytes` bytes, beginning at row `first`
 * and step `step`. */
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

/* Copies one step and advances to the warpgroup's next step. Past the end of a row and past the
 * last row it writes zeros and reads nothing. */
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

/* Makes the barriers that synchronize the four warps of each warpgroup. They are mbarriers in
 * shared memory, because racecheck mishandles __syncthreads() in a kernel that also uses named
 * barriers. One thread calls this. */
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

/* Copies the fp32 scales of A's rows to shared memory as [step][columns]. Scales are 1 if A is
 * unscaled, and past the last row. */
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
