/* Parameters of the sm_100f kernels for block-scaled products (sm100f/scaled_body.h), which the
 * host fills. */
#ifndef BSMM_CUDA_SM100F_SCALED_PARAMS_H
#define BSMM_CUDA_SM100F_SCALED_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "gpu/epilogue.h"

enum {
    /* the extents of a tile of D. Two accumulators of 192 columns and the block scales fit in the
     * 512 columns of tensor memory. */
    BSMM_SCALED_TILE_M = 128,
    BSMM_SCALED_TILE_N = 192,
    BSMM_SCALED_ROW_BYTES = 128, /* the bytes of shared memory of one row of a stage */
    BSMM_SCALED_CHUNK = 32,      /* the columns of D that a warp stores at once */
    BSMM_SCALED_STAGING = 16384, /* the bytes of the staging buffers for D */
    /* Scales in the layout nv_128x4 lie in tiles of 128 rows by 4 blocks, of 512 bytes. */
    BSMM_SCALED_SCALE_ROWS = 128,
    BSMM_SCALED_SCALE_TILE = 512,
    /* Warps 0 to 3 store D, warp 4 loads, warp 5 issues products, and warp 6 tests scales. Only
     * kernels whose scales may have a sign have warp 6. */
    BSMM_SCALED_THREADS = 192,
    BSMM_SCALED_THREADS_SIGNED = 224,
};

/* The bytes of dynamic shared memory for `stages` stages with `scale_tiles` tiles of scales along K
 * for each 128 rows: 128 rows of A and 256 rows of B. The first 1024 bytes are for alignment. */
#define BSMM_SCALED_SHARED(stages, scale_tiles)                                                    \
    (1024 + BSMM_SCALED_STAGING +                                                                  \
     (stages) * ((BSMM_SCALED_TILE_M + BSMM_SCALED_TILE_N) * BSMM_SCALED_ROW_BYTES +               \
                 3 * (scale_tiles)*BSMM_SCALED_SCALE_TILE))

/* how a kernel stores D */
typedef enum bsmm_scaled_store {
    BSMM_SCALED_STORE_ANY = 0, /* threads store one element at a time */
    BSMM_SCALED_STORE_F32 = 1, /* TMA stores D through the tensor map d */
    BSMM_SCALED_STORE_BF16 = 2,
    BSMM_SCALED_STORE_F16 = 3
} bsmm_scaled_store;

typedef struct bsmm_scaled_params {
    CUtensorMap a, b, d;
    const uint8_t *scales[2]; /* the block scales of A and B in the layout nv_128x4 */
    /* the operands as they are stored, for results that are recomputed in double */
    bsmm_gpu_operand sides[2];
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k;
    uint32_t k_blocks;      /* the number of stages that one tile of D takes */
    uint32_t element_bytes; /* the bytes of A's and B's elements that TMA counts for a stage */
    uint32_t scale_tiles;   /* the tiles of scales along K of the whole operand */
    uint32_t b_row_blocks;  /* the tiles of B's scales along its rows */
    uint32_t tiles, tiles_m, tiles_n;
    uint32_t group_m; /* the tiles along M in a band. Tiles of one band run at the same time. */
    /* The instruction descriptor of tcgen05.mma without the numbers of the scales: the types of
     * elements and scales, and the extents. */
    uint32_t form;
    uint32_t store; /* how D is stored, a value of the enum bsmm_scaled_store */
} bsmm_scaled_params;

/* The parameters of the kernel that copies the rows of an operand to rows that TMA can read. */
typedef struct bsmm_scaled_pad {
    const uint8_t *from;
    uint8_t *to;
    uint64_t from_pitch, to_pitch; /* the distances of rows in bytes; to_pitch: a multiple of 16 */
    uint32_t rows;
    uint64_t row_bits; /* the bits of a row's elements. The bits after them become 0. */
} bsmm_scaled_pad;

#endif
