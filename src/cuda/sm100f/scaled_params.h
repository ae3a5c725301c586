/* Parameters of the sm_100f kernels for block-scaled products (sm100f/scaled_body.h), which the
 * host fills. */
#ifndef BSMM_CUDA_SM100F_SCALED_PARAMS_H
#define BSMM_CUDA_SM100F_SCALED_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "gpu/epilogue.h"

enum {
    /* The rows of a tile of D that one thread block computes, and the most columns of a tile.
     * Tensor memory has 512 columns. Two accumulators of 192 columns and the block scales of two k
     * blocks fit into them. */
    BSMM_SCALED_TILE_M = 128,
    BSMM_SCALED_TILE_N = 192,
    /* the bytes that a stage in shared memory has for each row of A or B */
    BSMM_SCALED_ROW_BYTES = 128,
    BSMM_SCALED_CHUNK = 32, /* the number of columns of D that a warp stores at once */
    /* the bytes of the staging buffers in shared memory, from which TMA stores D */
    BSMM_SCALED_STAGING = 16384,
    /* In the layout nv_128x4, a tile of scales is 512 bytes for 128 rows by 4 scale blocks along
     * K. */
    BSMM_SCALED_SCALE_ROWS = 128,
    BSMM_SCALED_SCALE_TILE = 512,
    /* the bytes of a row of the tensor map with which TMA loads scales */
    BSMM_SCALED_SCALE_BOX = 256,
    /* The number of threads of a thread block. Warps 0 to 3 store D, warp 4 loads, and warp 5
     * issues tcgen05.mma. Kernels whose scales may be negative also have warp 6, which looks for
     * negative scales. */
    BSMM_SCALED_THREADS = 192,
    BSMM_SCALED_THREADS_SIGNED = 224,
};

/* The bytes of a stage. It holds the elements of 128 rows of A and of 192 rows of B, of which each
 * thread block of a pair (`ctas` is 2) has half. It also holds `scale_tiles` tiles of scales along
 * K for 128 rows of A and for 256 rows of B. */
#define BSMM_SCALED_STAGE_BYTES(scale_tiles, ctas)                                                 \
    ((BSMM_SCALED_TILE_M + BSMM_SCALED_TILE_N / (ctas)) * BSMM_SCALED_ROW_BYTES +                  \
     3 * (scale_tiles)*BSMM_SCALED_SCALE_TILE)
/* The bytes of dynamic shared memory beside the stages. The first 1024 bytes make room for
 * alignment. */
#define BSMM_SCALED_FIXED_BYTES (1024 + BSMM_SCALED_STAGING)
/* The number of stages: as many as fit beside 1536 bytes of static shared memory. */
#define BSMM_SCALED_STAGES(scale_tiles, ctas)                                                      \
    ((227 * 1024 - 1536 - BSMM_SCALED_FIXED_BYTES) / BSMM_SCALED_STAGE_BYTES(scale_tiles, ctas))
/* The bytes of dynamic shared memory of a kernel. */
#define BSMM_SCALED_SHARED(scale_tiles, ctas)                                                      \
    (BSMM_SCALED_FIXED_BYTES +                                                                     \
     BSMM_SCALED_STAGES(scale_tiles, ctas) * BSMM_SCALED_STAGE_BYTES(scale_tiles, ctas))

/* how a kernel stores D */
typedef enum bsmm_scaled_store {
    BSMM_SCALED_STORE_ANY = 0, /* threads store one element at a time */
    BSMM_SCALED_STORE_F32 = 1, /* TMA stores D through the tensor map d */
    BSMM_SCALED_STORE_BF16 = 2,
    BSMM_SCALED_STORE_F16 = 3
} bsmm_scaled_store;

typedef struct bsmm_scaled_params {
    CUtensorMap a, b, d;
    /* The block scales of A and B in the layout nv_128x4, as rows of BSMM_SCALED_SCALE_BOX bytes.
     */
    CUtensorMap scales[2];
    /* A and B where the caller stores them, for results that are recomputed in double. */
    bsmm_gpu_operand sides[2];
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k;
    uint32_t k_blocks;      /* the number of k blocks of a tile of D; a k block fills one stage */
    uint32_t element_bytes; /* the bytes of elements that TMA counts in a thread block's stage */
    uint32_t scale_tiles;   /* the number of tiles of 4 scales along K that a row of A or B has */
    uint32_t tiles, tiles_m, tiles_n;
    uint32_t
        tile_n; /* the columns of a tile: a multiple of 64, or 32 if there is one column of tiles */
    /* The number of tiles of D along M in a band, i.e. in a horizontal stripe of D. Tiles of one
     * band run at the same time. */
    uint32_t group_m;
    /* The instruction descriptor of tcgen05.mma, i.e. the types of elements and scales, and the
     * extents of the tile. The kernel adds the bits that select the scales of each instruction. */
    uint32_t form;
    uint32_t store; /* how D is stored, a value of the enum bsmm_scaled_store */
} bsmm_scaled_params;

/* The parameters of the kernel that copies the rows of an operand to rows that TMA can read. */
typedef struct bsmm_scaled_pad {
    const uint8_t *from;
    uint8_t *to;
    /* the distances between rows in bytes; to_pitch is a multiple of 16 */
    uint64_t from_pitch, to_pitch;
    uint32_t rows;
    uint64_t row_bits; /* the number of bits of a row's elements; the bits after them become 0 */
} bsmm_scaled_pad;

#endif
