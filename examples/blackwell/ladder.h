/* Declares sizes, memory layouts and parameters that the host and the kernels of the ladder share.
 * The ladder is a sequence of seven kernels, which compute the same product and differ in how they
 * move operands and block scales. */
#ifndef LADDER_H
#define LADDER_H

#include "cuda/runtime/tensor_map.h"

enum {
    /* A thread block computes a tile of D with TILE_M rows and TILE_N columns. */
    TILE_M = 128,
    TILE_N = 256,
    ROW_BYTES = 128, /* A k block is the part of K that fills 128 bytes of a row of a tile. */
    /* Scales in the layout nv_128x4 form scale tiles of 128 rows by 4 blocks along K. A k block
     * has 1, 2 or 4 scale tiles along K for each 128 rows. */
    SCALE_ROWS = 128,
    SCALE_TILE = 512,
    MOST_SCALE_TILES = 4,
    STAGING_BYTES = 16384 /* Holds a part of D in shared memory before TMA stores it. */
};

/* These macros give the bytes of shared memory for one stage, i.e. for a k block of A, of B and of
 * their scales. Each of `ctas` thread blocks has an equal part of the rows of B. */
#define A_BYTES           (TILE_M * ROW_BYTES)
#define B_BYTES(ctas)     (TILE_N * ROW_BYTES / (ctas))
#define SCALES_BYTES      ((TILE_M + TILE_N) / SCALE_ROWS * MOST_SCALE_TILES * SCALE_TILE)
#define STAGE_BYTES(ctas) (A_BYTES + B_BYTES(ctas) + SCALES_BYTES)
/* Gives the number of bytes of shared memory that a thread block needs. The last 256 bytes are for
 * barriers. */
#define SHARED_BYTES(stages, ctas) ((stages)*STAGE_BYTES(ctas) + STAGING_BYTES + 256)

/* Names the kinds of tcgen05.mma. KIND_MXF8F6F4 multiplies elements of 8 or 4 bits, KIND_MXF4
 * multiplies elements of 4 bits, and KIND_NVF4 multiplies elements of 4 bits with e4m3 scales. */
typedef enum ladder_kind { KIND_MXF8F6F4, KIND_MXF4, KIND_NVF4 } ladder_kind;

typedef struct ladder_params {
    CUtensorMap elements[2]; /* `elements` holds the tensor maps of the elements of A and B. */
    /* `scales` holds the tensor maps of the scales of A and B in the layout nv_128x4, as rows of
     * 256 bytes. */
    CUtensorMap scales[2];
    CUtensorMap d;
    /* `plain_scales` holds the scales of A and B, for kernels that read them without TMA. */
    const uint8_t *plain_scales[2];
    uint32_t kind; /* `kind` is one of the values of ladder_kind. */
    uint32_t form; /* `form` is the instruction descriptor of tcgen05.mma. */
    uint32_t k_blocks;
    /* `step_scales` is the number of scales of a row that one tcgen05.mma reads. */
    uint32_t step_scales;
    uint32_t scale_tiles; /* `scale_tiles` is the number of scale tiles along K in a k block. */
    /* `element_bytes` is the number of bytes that TMA counts for the elements of a k block that one
     * thread block loads. */
    uint32_t element_bytes;
    uint32_t tiles, tiles_n;
} ladder_params;

#endif
