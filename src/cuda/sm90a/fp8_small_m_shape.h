/* Shapes of the FP8 small-M kernels (sm90a/fp8_small_m.cu), which their host side places in shared
 * memory. Their parameter is the small-M kernels'. */
#ifndef BSMM_CUDA_SM90A_FP8_SMALL_M_SHAPE_H
#define BSMM_CUDA_SM90A_FP8_SMALL_M_SHAPE_H

#include "cuda/sm90a/small_m_params.h"

enum {
    BSMM_FP8_SMALL_M_GROUPS = 4,  /* warpgroups of a block */
    BSMM_FP8_SMALL_M_GROUP = 128, /* threads of one */
    BSMM_FP8_SMALL_M_ROWS = 64,   /* of B in a block */
    BSMM_FP8_SMALL_M_SLOTS = 4,   /* of a ring: one is multiplied while the others are filled */
    BSMM_FP8_SMALL_M_ALIGNMENT = 1024, /* of the first ring: shared memory may begin anywhere */
    BSMM_FP8_SMALL_M_WEIGHT_BYTES = BSMM_FP8_SMALL_M_ROWS * BSMM_SMALL_M_K, /* of a step */
};

/* A slot of a warpgroup's ring: a step of weights, and of A. */
#define BSMM_FP8_SMALL_M_SLOT_BYTES(columns)                                                       \
    (BSMM_FP8_SMALL_M_WEIGHT_BYTES + (columns)*BSMM_SMALL_M_K)

#endif
