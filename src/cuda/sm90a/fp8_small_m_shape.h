/* The FP8 small-M kernels (sm90a/fp8_small_m_kernels.h) share these sizes with their host code,
 * which lays out shared memory. These kernels take the same parameter struct as the other small-M
 * kernels. */
#ifndef BSMM_CUDA_SM90A_FP8_SMALL_M_SHAPE_H
#define BSMM_CUDA_SM90A_FP8_SMALL_M_SHAPE_H

#include "cuda/sm90a/small_m_params.h"

enum {
    /* BSMM_FP8_SMALL_M_GROUPS is the number of warpgroups per thread block. */
    BSMM_FP8_SMALL_M_GROUPS = 4,
    /* BSMM_FP8_SMALL_M_GROUP is the number of threads per warpgroup. */
    BSMM_FP8_SMALL_M_GROUP = 128,
    /* BSMM_FP8_SMALL_M_ROWS is the number of rows of B per thread block. */
    BSMM_FP8_SMALL_M_ROWS = 64,
    /* A warpgroup's ring buffer has four stages. The warpgroup multiplies one stage while copies
     * fill the other three. */
    BSMM_FP8_SMALL_M_SLOTS = 4,
    /* BSMM_FP8_SMALL_M_ALIGNMENT is the alignment in bytes of the first ring buffer in shared
     * memory. wgmma's 128-byte swizzle depends on address bits and needs this alignment. Dynamic
     * shared memory may begin at any address, so the kernel aligns the ring buffer itself. */
    BSMM_FP8_SMALL_M_ALIGNMENT = 1024,
    /* A warpgroup loads this many bytes of B for one step, i.e. for 128 elements along K. */
    BSMM_FP8_SMALL_M_WEIGHT_BYTES = BSMM_FP8_SMALL_M_ROWS * BSMM_SMALL_M_K,
};

/* Returns the size in bytes of one stage of a warpgroup's ring buffer. A stage holds 64 rows of
 * weights and `columns` rows of A, for one step of 128 elements along K. */
#define BSMM_FP8_SMALL_M_SLOT_BYTES(columns)                                                       \
    (BSMM_FP8_SMALL_M_WEIGHT_BYTES + (columns)*BSMM_SMALL_M_K)

#endif
