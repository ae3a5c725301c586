/* These functions are the loads of an FP8 small-M kernel (few rows of A). They copy weights, rows
 * of A and scales of A to shared memory.
 *
 * A step is 128 elements along K. The four warpgroups of a thread block take the steps round-robin.
 * Each warpgroup has its own ring of stages in shared memory. A stage holds 64 rows of weights,
 * followed by the rows of A. Both have the 128-byte swizzle that wgmma expects. */
#ifndef BSMM_CUDA_SM90A_FP8_SMALL_M_STAGE_H
#define BSMM_CUDA_SM90A_FP8_SMALL_M_STAGE_H

#include "cuda/ptx/bulk.h"
#include "cuda/sm90a/fp8_small_m_shape.h"
#include "cuda/sm90a/small_m_stage.h"

/* FP8_SMALL_M_MOST_PASSES is the largest number of copies of 16 bytes that one thread makes from A,
 * or from B, in a step (128 elements of K). */
enum { FP8_SMALL_M_MOST_PASSES = BSMM_FP8_SMALL_M_ROWS / 16 };
/* Describes the copies that one thread makes from A or B to shared memory. Copy number i of a step
 * reads row r + 16 * i of the matrix, where r is the thread's first row. All copies of a step read
 * the same 16 elements of K. */
typedef struct fp8_small_m_copies {
    /* `from` holds the addresses in global memory from which the thread copies in the next step
     * (128 elements of K). */
    const uint8_t *from[FP8_SMALL_M_MOST_PASSES];
    /* `to` is the destination of the first copy, in bytes from the matrix's first row in a
     * stage. */
    uint32_t to;
    /* `left` is the number of bytes from a source address to the end of its row of the matrix, i.e.
     * to the end of K. It is the same for all copies of a step. If it is 0 or less, the 16 bytes of
     * a copy lie past the end of K, and the copy writes zeros. */
    int32_t left;
    /* `rows` is the number of rows of the matrix from the thread's first row to the end of the
     * matrix. For later rows, the copies write zeros. */
    int32_t rows;
} fp8_small_m_copies;

/* Prepares a thread's copies from a matrix of `rows` rows of `bytes` bytes each. The copies begin
 * at row `first` and at step `step`, i.e. at element 128 * `step` along K. */
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

/* Starts a thread's copies of one step of K (128 elements) to shared memory, and advances `c` to
 * the warpgroup's next step. Bytes past the end of a row and rows past the last row become zeros,
 * without a read from global memory. */
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

/* Initializes four mbarriers, one for each warpgroup. The four warps of a warpgroup use its
 * mbarrier to wait for each other. Named barriers would do the same, but the racecheck of
 * compute-sanitizer gives wrong reports for kernels that use both named barriers and
 * __syncthreads(). One thread calls this function. */
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

/* Copies the fp32 scales of A to shared memory, as an array [step of 128 elements along K][row of
 * A] with `columns` rows per step. The scale is 1 if A is unscaled, and in rows past the last row
 * of A. */
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
