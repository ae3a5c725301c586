/* Parameters of the sm_120f kernels for block-scaled products (sm120f/scaled_body.h), which the
 * host fills. */
#ifndef BSMM_CUDA_SM120F_SCALED_PARAMS_H
#define BSMM_CUDA_SM120F_SCALED_PARAMS_H

#include "gpu/epilogue.h"

enum {
    BSMM_SM120_TILE = 128, /* the rows of A and the rows of B of a tile of D */
    BSMM_SM120_THREADS = 256,
    BSMM_SM120_ROW_BYTES = 128, /* the bytes of shared memory of one row of a stage */
    BSMM_SM120_STAGES = 2
};

/* The bytes of dynamic shared memory. In a stage, each row of A and of B has its elements and, for
 * each scale tile of the stage along K, a word of four scales. */
#define BSMM_SM120_SHARED(scale_tiles)                                                             \
    (BSMM_SM120_STAGES * 2 * BSMM_SM120_TILE * (BSMM_SM120_ROW_BYTES + 4 * (scale_tiles)))

typedef struct bsmm_sm120_side {
    bsmm_gpu_operand o;    /* the operand as it is stored */
    const uint8_t *scales; /* the block scales in the layout nv_128x4 */
    uint64_t pitch;        /* the distance of rows in bytes */
    uint32_t rows;
    uint64_t row_bits;   /* the bits of a row's elements */
    uint32_t unit_bytes; /* the bytes in memory of the elements of 16 bytes of a stage: 8, 12, 16 */
    /* nonzero if rows are so aligned that units can be loaded by aligned words of 4 bytes (a unit
     * of 12 bytes), 8 or 16 bytes */
    uint32_t aligned;
    uint32_t magnitudes; /* the bits of a word of a stage that are no signs of elements */
} bsmm_sm120_side;

typedef struct bsmm_sm120_params {
    bsmm_sm120_side sides[2]; /* A and B */
    bsmm_gpu_epilogue epilogue;
    uint32_t k, k_blocks;
    uint32_t row_scales;  /* the scales of a row */
    uint32_t scale_tiles; /* the scale tiles of an operand along K */
    uint32_t tiles_m, tiles_n;
    uint32_t group_m; /* the tiles along M in a band. Tiles of one band run at the same time. */
    /* Only for elements of different types: 4 times the type of A plus the type of B, as numbered
     * by bsmm_sm120_type. */
    uint32_t pair;
} bsmm_sm120_params;

/* The types of elements that take a byte of a stage. A code of e2m1 is stored in bits 2 to 5, where
 * it is a code of e2m3 with the same value. */
typedef enum bsmm_sm120_type {
    BSMM_SM120_E4M3,
    BSMM_SM120_E5M2,
    BSMM_SM120_E2M3,
    BSMM_SM120_E3M2
} bsmm_sm120_type;

#endif
