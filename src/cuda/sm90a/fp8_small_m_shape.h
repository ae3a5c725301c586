/* Sizes that the FP8 small-M kernels (sm90a/fp8_small_m.cu) share with their host code, which lays
 * out shared memory. These kernels take the same parameter struct as the other small-M kernels. */
#ifndef BSMM_CUDA_SM90A_FP8_SMALL_M_SHAPE_H
#define BSMM_CUDA_SM90A_FP8_SMALL_M_SHAPE_H

#include "cuda/sm90a/small_m_params.h"

enum {
    BSMM_FP8_SMALL_M_GROUPS = 4,  /* the warpgroups of a thread block */
    BSMM_FP8_SMALL_M_GROUP = 128, /* the threads of a warpgroup */
    BSMM_FP8_SMALL_M_ROWS = 64,   /* the rows of B that a thread block computes */
    /* The stages of a warpgroup's ring buffer. The warpgroup multiplies one stage while copies fill
     * the other three stages. */
    BSMM_FP8_SMALL_M_SLOTS = 4,
    /* The alignment of the first ring in bytes. wgmma's swizzle needs it, and dynamic shared memory
     * may begin at any address. */
    BSMM_FP8_SMALL_M_ALIGNMENT = 1024,
    /* the bytes of B that a warpgroup loads for one step, i.e. 128 elements along K */
    BSMM_FP8_SMALL_M_WEIGHT_BYTES = BSMM_FP8_SMALL_M_ROWS * BSMM_SMALL_M_K,
};

/* The bytes of one stage of a warpgroup's ring buffer: 64 rows of weights and the rows of A, for
 * one step of 128 elements along K. `columns` is the number of rows of A. */
#define BSMM_FP8_SMALL_M_SLOT_BYTES(columns)                                                       \
    (BSMM_FP8_SMALL_M_WEIGHT_BYTES + (columns)*BSMM_SMALL_M_K)

#endif
