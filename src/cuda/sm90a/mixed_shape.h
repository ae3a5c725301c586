/* Defines the sizes of a thread block of the mixed-input kernels (mixed_kernels.h), for host and
 * device. */
#ifndef BSMM_CUDA_SM90A_MIXED_SHAPE_H
#define BSMM_CUDA_SM90A_MIXED_SHAPE_H

#include "cuda/sm90a/small_m_params.h"

enum {
    /* A thread block of the kernel mixed_prepare converts BSMM_MIXED_PREPARE_ROWS rows of A, for
     * BSMM_MIXED_PREPARE_STEPS steps of 128 elements along K. */
    BSMM_MIXED_PREPARE_ROWS = 8,
    BSMM_MIXED_PREPARE_STEPS = 8,
    /* BSMM_MIXED_MOST_GROUPS is the largest number of groups of warpgroups that split K in a thread
     * block. */
    BSMM_MIXED_MOST_GROUPS = 2,
    /* BSMM_MIXED_RUN is the number of adjacent results of a row of D that a thread computes at a
     * time. */
    BSMM_MIXED_RUN = 4,
    /* A thread block has ring buffers of A in shared memory, which together have
     * 2^BSMM_MIXED_SLOTS_LOG2 slots. A slot holds the elements of A of one tile for one step of K
     * (128 elements), or for half a step with tiles of 256 columns. */
    BSMM_MIXED_SLOTS_LOG2 = 2,
    BSMM_MIXED_SLOTS = 1 << BSMM_MIXED_SLOTS_LOG2,
};

/* Returns the number of slots of the ring buffer of weights, for weights of `bits` bits. */
BSMM_SHARED uint32_t bsmm_mixed_ahead(uint32_t bits) {
    return bits == 4 ? 4 : 3;
}

/* BSMM_MIXED_THREADS is the number of threads of a thread block whose tiles have `columns` columns.
 * The tile is one of the transposed result, so each column belongs to one row of A. With 256
 * columns a thread has 128 accumulators. It then needs more than 128 registers, so a thread block
 * has 256 instead of 512 threads. */
#define BSMM_MIXED_THREADS(columns)                                                                \
    ((columns) > 128 ? BSMM_SMALL_M_THREADS / 2 : BSMM_SMALL_M_THREADS)

/* BSMM_MIXED_STEP_SLOTS is the number of slots of A's ring buffers that one step of K (128
 * elements) fills, if tiles have `columns` columns. */
#define BSMM_MIXED_STEP_SLOTS(columns) ((columns) > 128 ? 2 : 1)

/* Returns the number of bytes of a slot of the ring buffer of weights: the weights of one step that
 * `threads` threads multiply. A thread multiplies 64 weights in a step. */
BSMM_SHARED uint32_t bsmm_mixed_slot_bytes(uint32_t threads, uint32_t bits) {
    return threads * 8 * bits;
}

#endif
