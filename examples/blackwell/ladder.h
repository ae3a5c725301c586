/* What the host tells the kernels of the ladder: extents, layouts of memory, and parameters. */
#ifndef LADDER_H
#define LADDER_H

#include "cuda/runtime/tensor_map.h"

enum {
    TILE_M = 128, /* the extents of the tile of D that a thread block computes */
    TILE_N = 256,
    ROW_BYTES = 128, /* A k block is the part of K that fills 128 bytes of a row of a tile. */
    /* Scales in the layout nv_128x4 lie in scale tiles of 128 rows by 4 blocks along K. A k block
     * has 1, 2 or 4 scale tiles along K for each 128 rows. */
    SCALE_ROWS = 128,
    SCALE_TILE = 512,
    MOST_SCALE_TILES = 4,
    STAGING_BYTES = 16384 /* a piece of D, on its way to memory */
};

/* The bytes of shared memory for a k block of A, and of B if `ctas` thread blocks share it, and
 * for the scales of both. */
#define A_BYTES           (TILE_M * ROW_BYTES)
#define B_BYTES(ctas)     (TILE_N * ROW_BYTES / (ctas))
#define SCALES_BYTES      ((TILE_M + TILE_N) / SCALE_ROWS * MOST_SCALE_TILES * SCALE_TILE)
#define STAGE_BYTES(ctas) (A_BYTES + B_BYTES(ctas) + SCALES_BYTES)
/* The bytes of shared memory of a thread block. The last 256 are for barriers. */
#define SHARED_BYTES(stages, ctas) ((stages)*STAGE_BYTES(ctas) + STAGING_BYTES + 256)

/* the kinds of tcgen05.mma: elements of 8 and 4 bits, of 4 bits, and of 4 bits with e4m3 scales */
typedef enum ladder_kind { KIND_MXF8F6F4, KIND_MXF4, KIND_NVF4 } ladder_kind;

typedef struct ladder_params {
    CUtensorMap elements[2]; /* of A and B */
    CUtensorMap scales[2];   /* of their scales in the layout nv_128x4, in rows of 256 bytes */
    CUtensorMap d;
    const uint8_t *plain_scales[2]; /* the scales, for kernels that read them without TMA */
    uint32_t kind;                  /* a ladder_kind */
    uint32_t form;                  /* the instruction descriptor of tcgen05.mma */
    uint32_t k_blocks;
    uint32_t step_scales; /* the scales of a row that one tcgen05.mma reads */
    uint32_t scale_tiles; /* the scale tiles of a k block along K */
    uint32_t
        element_bytes; /* the bytes that TMA counts for a thread block's elements of a k block */
    uint32_t tiles, tiles_n;
} ladder_params;

#endif
