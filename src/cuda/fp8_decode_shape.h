/* Shapes of the FP8 decode kernels (sm90a/fp8_decode.cu), which their host side places in shared
 * memory. Their parameter is the decode kernels'. */
#ifndef BSMM_CUDA_FP8_DECODE_SHAPE_H
#define BSMM_CUDA_FP8_DECODE_SHAPE_H

#include "cuda/decode_params.h"

enum {
    BSMM_FP8_DECODE_GROUPS = 4,       /* warpgroups of a block */
    BSMM_FP8_DECODE_GROUP = 128,      /* threads of one */
    BSMM_FP8_DECODE_ROWS = 64,        /* of B in a block */
    BSMM_FP8_DECODE_SLOTS = 4,        /* of a ring: one is multiplied while the others are filled */
    BSMM_FP8_DECODE_ALIGNMENT = 1024, /* of the first ring: shared memory may begin anywhere */
    BSMM_FP8_DECODE_WEIGHT_BYTES = BSMM_FP8_DECODE_ROWS * BSMM_DECODE_K, /* of a step */
};

/* A slot of a warpgroup's ring: a step of weights, and of A. */
#define BSMM_FP8_DECODE_SLOT_BYTES(columns) (BSMM_FP8_DECODE_WEIGHT_BYTES + (columns)*BSMM_DECODE_K)

#endif
