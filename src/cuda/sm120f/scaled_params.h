/* Defines the parameters of the sm_120f kernels for block-scaled products (sm120f/scaled_body.h),
 * which the host fills. */
#ifndef BSMM_CUDA_SM120F_SCALED_PARAMS_H
#define BSMM_CUDA_SM120F_SCALED_PARAMS_H

#include "gpu/epilogue.h"

enum {
    /* BSMM_SM120_TILE is the number of rows of A and rows of B in a tile of D. */
    BSMM_SM120_TILE = 128,
    BSMM_SM120_THREADS = 256,
    /* BSMM_SM120_ROW_BYTES is the number of bytes of shared memory for one row of a stage. */
    BSMM_SM120_ROW_BYTES = 128,
    BSMM_SM120_STAGES = 2
};

/* The arguments `block` and `packed` of these macros are columns of tiles.def.
 *
 * BSMM_SM120_SCALE_TILES returns the number of scale tiles along K for the elements in a row of a
 * stage. A scale tile has 4 scales along K, and each scale covers `block` elements. `packed` is 1
 * if elements have 4 bits and shared memory holds them without gaps, and 0 if an element takes a
 * byte.
 *
 * BSMM_SM120_SHARED returns the bytes of dynamic shared memory. In a stage, each row of A and of B
 * has its elements and, for each scale tile of the stage along K, a 4-byte word of four scales. */
#define BSMM_SM120_SCALE_TILES(block, packed) (BSMM_SM120_ROW_BYTES * (1 + (packed)) / 4 / (block))
#define BSMM_SM120_SHARED(block, packed)                                                           \
    (BSMM_SM120_STAGES * 2 * BSMM_SM120_TILE *                                                     \
     (BSMM_SM120_ROW_BYTES + 4 * BSMM_SM120_SCALE_TILES(block, packed)))

typedef struct bsmm_sm120_side {
    bsmm_gpu_operand o;    /* `o` describes the operand as the caller stores it. */
    const uint8_t *scales; /* `scales` holds the block scales in the layout nv_128x4. */
    uint64_t pitch;        /* `pitch` is the distance between rows in bytes. */
    uint32_t rows;
    uint64_t row_bits; /* `row_bits` is the number of bits of a row's elements. */
    /* `unit_bytes` is the number of bytes in global memory of the elements that fill 16 bytes of a
     * stage: 8, 12 or 16. */
    uint32_t unit_bytes;
    /* A unit is the elements that fill 16 bytes of a stage. In global memory it has 8, 12 or 16
     * bytes. `aligned` is nonzero if the alignment of rows allows aligned loads of every unit: one
     * load of 8 or 16 bytes, or three loads of 4 bytes. */
    uint32_t aligned;
    /* `magnitudes` is a mask of the bits of a 32-bit word of a stage that are not sign bits of
     * elements. With it, the kernel finds out which rows have nonzero elements. */
    uint32_t magnitudes;
} bsmm_sm120_side;

typedef struct bsmm_sm120_params {
    bsmm_sm120_side sides[2]; /* `sides` describes A (index 0) and B (index 1). */
    bsmm_gpu_epilogue epilogue;
    uint32_t k, k_blocks;
    uint32_t row_scales; /* `row_scales` is the number of scales in a row. */
    /* `scale_tiles` is the number of scale tiles (of 4 scales along K) in a row. */
    uint32_t scale_tiles;
    uint32_t tiles_m, tiles_n;
    /* `group_m` is the number of tiles along M in a band, i.e. in a horizontal stripe of D. Tiles
     * of one band run at the same time. */
    uint32_t group_m;
    /* `pair` is 4 times the type of A plus the type of B, as numbered by bsmm_sm120_type. Only
     * kernels for elements of different types use it. */
    uint32_t pair;
} bsmm_sm120_params;

/* These are the types of elements that take one byte each in a stage. e2m1 needs no type of its
 * own: an e2m1 code in bits 2 to 5 of a byte is the e2m3 code of the same value. */
typedef enum bsmm_sm120_type {
    BSMM_SM120_E4M3,
    BSMM_SM120_E5M2,
    BSMM_SM120_E2M3,
    BSMM_SM120_E3M2
} bsmm_sm120_type;

#endif
