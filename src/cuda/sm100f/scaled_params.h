/* Defines the parameters that the host passes to the sm_100f kernels of sm100f/scaled_body.h. These
 * kernels compute block-scaled products, products of bf16 and f16, and products with fp32 scales.
 */
#ifndef BSMM_CUDA_SM100F_SCALED_PARAMS_H
#define BSMM_CUDA_SM100F_SCALED_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "gpu/epilogue.h"
#include "gpu/pack.h"

enum {
    /* BSMM_SCALED_TILE_M is the number of rows of a tile of D that a thread block computes. */
    BSMM_SCALED_TILE_M = 128,
    /* BSMM_SCALED_ROW_BYTES is the number of bytes of each row of A or B in a stage in shared
     * memory. */
    BSMM_SCALED_ROW_BYTES = 128,
    /* BSMM_SCALED_LOAD_ROWS is the number of rows of A or B that one TMA copy loads. A stage with
     * more rows is loaded by several copies. TMA then writes to shared memory in short bursts, and
     * the tensor cores can read shared memory between two bursts. */
    BSMM_SCALED_LOAD_ROWS = 32,
    /* BSMM_SCALED_CHUNK is the number of columns of D that a warp stores at once. */
    BSMM_SCALED_CHUNK = 32,
    /* BSMM_SCALED_STAGING is the number of bytes of shared memory for the staging buffers from
     * which TMA stores D. */
    BSMM_SCALED_STAGING = 16384,
    /* In the scale layout nv_128x4, a scale tile has 512 bytes. They are the scales of 128 rows by
     * 4 scale blocks along K. */
    BSMM_SCALED_SCALE_ROWS = 128,
    BSMM_SCALED_SCALE_TILE = 512,
    /* BSMM_SCALED_SCALE_BOX is the number of bytes of a row of the tensor map with which TMA loads
     * scales. */
    BSMM_SCALED_SCALE_BOX = 256,
    /* BSMM_SCALED_THREADS is the number of threads of a thread block. Warps 0 to 3 store D, warp 4
     * loads A, B and their scales, and warp 5 issues tcgen05.mma. Kernels whose scales may be
     * negative also have warp 6, which looks for negative scales. */
    BSMM_SCALED_THREADS = 192,
    BSMM_SCALED_THREADS_SIGNED = 224,
    /* In kernels for fp32 scales, warps 0 to 7 multiply sums by scales and store D, warp 8 loads,
     * and warp 9 issues tcgen05.mma. Warps 10 and 11 do nothing. They exist because setmaxnreg,
     * which moves registers from warps 8 to 11 to the other warps, works on groups of four
     * warps. */
    BSMM_SCALED_THREADS_GROUPS = 384,
    /* Each fp32 scale covers a multiple of this number of elements of K. */
    BSMM_SCALED_GROUP_K = 128,
    /* These are limits of the kernels for few rows of A: the number of rows of A, and the number of
     * thread blocks of a cluster that split the K of one tile of D. */
    BSMM_SCALED_SMALL_M = 64,
    BSMM_SCALED_SMALL_M_PARTS = 8,
};

/* Returns the number of rows that one TMA copy loads, if a thread block's stage holds `rows` rows
 * of the operand (A or B). */
#define BSMM_SCALED_BOX_ROWS(rows) ((rows) < BSMM_SCALED_LOAD_ROWS ? (rows) : BSMM_SCALED_LOAD_ROWS)
/* Returns the number of scale tiles along K in a stage, which has 128 bytes of each row. A scale
 * tile has 4 scales along K, and each scale covers `block` elements. `packed` is 1 if elements have
 * 4 bits and lie in shared memory without gaps, so that 128 bytes are 256 elements. It is 0 if each
 * element takes a byte. If `block` is 0, there are no scales, and the result is 0. The divisor is
 * then 1, because compilers warn of a constant divisor of 0 even where they do not evaluate it. */
#define BSMM_SCALED_SCALE_TILES(block, packed)                                                     \
    ((block) ? BSMM_SCALED_ROW_BYTES * (1 + (packed)) / 4 / ((block) ? (block) : 1) : 0)
/* Returns the largest number of columns that a tile of D can have. `scales` is nonzero if the
 * kernel has block scales, and `ctas` is the number of thread blocks that compute a tile. With
 * block scales, a single thread block has tiles of up to 192 columns. Two accumulators of 192
 * columns and the block scales of two k blocks then fit in the 512 columns of tensor memory. A pair
 * of thread blocks has tiles of up to 256 columns. Its two accumulators share some columns of
 * tensor memory. Without block scales, two accumulators of 256 columns fit. */
#define BSMM_SCALED_TILE_N(scales, ctas) ((scales) && (ctas) == 1 ? 192 : 256)
/* Returns the size in bytes of a stage in the shared memory of one thread block. A stage has 128
 * bytes of each of these rows: 128 rows of A, and as many rows of B as the widest tile has columns.
 * In a pair of thread blocks (`ctas` is 2), each block has only half of these rows of B. A stage
 * also has the scales: for 128 rows of A and 256 rows of B, `scale_tiles` scale tiles along K for
 * each 128 rows. */
#define BSMM_SCALED_STAGE_BYTES(scale_tiles, ctas)                                                 \
    ((BSMM_SCALED_TILE_M + BSMM_SCALED_TILE_N(scale_tiles, ctas) / (ctas)) *                       \
         BSMM_SCALED_ROW_BYTES +                                                                   \
     3 * (scale_tiles)*BSMM_SCALED_SCALE_TILE)
/* BSMM_SCALED_FIXED_BYTES is the number of bytes of dynamic shared memory that are not part of a
 * stage. 1024 of them are for alignment: the stages must begin at a multiple of 1024 bytes, but
 * dynamic shared memory may begin at any address. */
#define BSMM_SCALED_FIXED_BYTES (1024 + BSMM_SCALED_STAGING)
/* Returns the number of stages. It is the largest number that fits in 227 KiB together with 1536
 * bytes of static shared memory. */
#define BSMM_SCALED_STAGES(scale_tiles, ctas)                                                      \
    ((227 * 1024 - 1536 - BSMM_SCALED_FIXED_BYTES) / BSMM_SCALED_STAGE_BYTES(scale_tiles, ctas))
/* Returns the number of bytes of dynamic shared memory that a kernel needs. */
#define BSMM_SCALED_SHARED(scale_tiles, ctas)                                                      \
    (BSMM_SCALED_FIXED_BYTES +                                                                     \
     BSMM_SCALED_STAGES(scale_tiles, ctas) * BSMM_SCALED_STAGE_BYTES(scale_tiles, ctas))

/* These macros are for the kernels for fp32 scales. FIXED is the number of bytes of dynamic shared
 * memory outside the stages, STAGES is the largest number of stages that fits, and SHARED is the
 * number of all bytes of dynamic shared memory. Such a kernel has twice as many warps that store D
 * as other kernels, hence twice the bytes of staging buffers. It also has 5120 bytes of static
 * shared memory. */
#define BSMM_SCALED_GROUPS_FIXED (1024 + 2 * BSMM_SCALED_STAGING)
#define BSMM_SCALED_GROUPS_STAGES(ctas)                                                            \
    ((227 * 1024 - 5120 - BSMM_SCALED_GROUPS_FIXED) / BSMM_SCALED_STAGE_BYTES(0, ctas))
#define BSMM_SCALED_GROUPS_SHARED(ctas)                                                            \
    (BSMM_SCALED_GROUPS_FIXED + BSMM_SCALED_GROUPS_STAGES(ctas) * BSMM_SCALED_STAGE_BYTES(0, ctas))

/* These are the bytes of a stage, the number of stages, and the bytes of dynamic shared memory in a
 * kernel for few rows of A. A stage has 128 rows of weights, up to 64 rows of A, and the scales of
 * both. A thread block uses at most half of an SM's shared memory, so that two thread blocks fit on
 * the SM. The thread blocks of the next product in the stream can then begin while those of this
 * product end. */
#define BSMM_SCALED_SMALL_M_STAGE_BYTES(scale_tiles)                                               \
    ((BSMM_SCALED_TILE_M + BSMM_SCALED_SMALL_M) * BSMM_SCALED_ROW_BYTES +                          \
     2 * (scale_tiles)*BSMM_SCALED_SCALE_TILE)
#define BSMM_SCALED_SMALL_M_STAGES(scale_tiles)                                                    \
    ((113 * 1024 - 1024 - 1024) / BSMM_SCALED_SMALL_M_STAGE_BYTES(scale_tiles))
#define BSMM_SCALED_SMALL_M_SHARED(scale_tiles)                                                    \
    (1024 + BSMM_SCALED_SMALL_M_STAGES(scale_tiles) * BSMM_SCALED_SMALL_M_STAGE_BYTES(scale_tiles))

/* These are the number of threads and the bytes of dynamic shared memory of a kernel. The arguments
 * are columns of tiles.def. */
#define BSMM_SCALED_KERNEL_THREADS(is_signed, groups)                                              \
    ((is_signed) ? BSMM_SCALED_THREADS_SIGNED                                                      \
     : (groups)  ? BSMM_SCALED_THREADS_GROUPS                                                      \
                 : BSMM_SCALED_THREADS)
#define BSMM_SCALED_KERNEL_SHARED(block, packed, ctas, small_m, groups)                            \
    ((small_m)  ? BSMM_SCALED_SMALL_M_SHARED(BSMM_SCALED_SCALE_TILES(block, packed))               \
     : (groups) ? BSMM_SCALED_GROUPS_SHARED(ctas)                                                  \
                : BSMM_SCALED_SHARED(BSMM_SCALED_SCALE_TILES(block, packed), ctas))

/* A bsmm_scaled_store says how a kernel stores D. */
typedef enum bsmm_scaled_store {
    BSMM_SCALED_STORE_ANY = 0, /* BSMM_SCALED_STORE_ANY: threads store one element at a time. */
    BSMM_SCALED_STORE_F32 = 1, /* From BSMM_SCALED_STORE_F32 on, TMA stores D. */
    BSMM_SCALED_STORE_BF16 = 2,
    BSMM_SCALED_STORE_F16 = 3,
    BSMM_SCALED_STORE_E4M3 = 4,
    BSMM_SCALED_STORE_E5M2 = 5
} bsmm_scaled_store;

typedef struct bsmm_scaled_params {
    CUtensorMap a, b, d;
    /* `scales` holds the tensor maps of the block scales of A and B. The scales have the layout
     * nv_128x4, which TMA reads as rows of BSMM_SCALED_SCALE_BOX bytes. */
    CUtensorMap scales[2];
    /* `sides` describes A and B as the caller stores them, for results that are recomputed in
     * double. */
    bsmm_gpu_operand sides[2];
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k;
    /* `k_blocks` is the number of k blocks per tile of D. A k block fills one stage. */
    uint32_t k_blocks;
    /* `element_bytes` is the number of bytes of elements that TMA writes to a thread block's
     * stage. */
    uint32_t element_bytes;
    /* `spreads` is nonzero if TMA spreads the elements of A or of B, which have 4 or 6 bits, to one
     * byte each. */
    uint32_t spreads;
    /* `scale_tiles` is the number of scale tiles (of 4 scales along K) in a row of A or B. */
    uint32_t scale_tiles;
    uint32_t tiles, tiles_m, tiles_n;
    /* `tile_n` is the number of columns of a tile: a multiple of 64, or 32 if there is only one
     * column of tiles. */
    uint32_t tile_n;
    /* `group_m` is the number of tiles along M in a band, i.e. in a horizontal stripe of D. Tiles
     * of one band run at the same time. */
    uint32_t group_m;
    /* `form` is the instruction descriptor of tcgen05.mma, which gives the types of elements and
     * scales and the extents of the tile. The kernel adds the bits that select the scales of each
     * instruction. */
    uint32_t form;
    uint32_t store; /* `store` tells how D is stored, by a value of the enum bsmm_scaled_store. */
    /* `parts` is the number of groups (one thread block or a pair) that divide the K of each tile
     * of D among them. These groups form one cluster. Kernels without block scales require that it
     * is 1. */
    uint32_t parts;
    /* Only kernels without block scales use these parameters. Such a kernel multiplies bf16
     * numbers. An element of A is the sum of a_parts bf16 numbers, and an element of B is the sum
     * of b_parts. headers[0] and headers[1] point to the headers of packed A and B, or are NULL for
     * an operand that is not packed. A header says whether packing was exact. If it was not, the
     * kernel computes nothing and sets *refused, so that the generic kernel computes the product.
     */
    uint32_t a_parts, b_parts;
    const bsmm_pack_header *headers[2];
    uint32_t *refused;
    /* Only kernels for fp32 scales use these parameters. `has_factors` tells for A and for B
     * whether fp32 scales multiply the sums of each BSMM_SCALED_GROUP_K elements of K. Such a sum
     * takes `sum_blocks` k blocks, i.e. stages. `shares_factors` is nonzero if each 128 rows of B
     * have the same scales, or if B has no fp32 scales. */
    uint32_t has_factors[2];
    uint32_t sum_blocks, shares_factors;
} bsmm_scaled_params;

/* Holds the parameters of the kernel pad_rows, which copies the rows of an operand to rows that TMA
 * can read. */
typedef struct bsmm_scaled_pad {
    const uint8_t *from;
    uint8_t *to;
    /* `from_pitch` and `to_pitch` are the distances in bytes between rows of the source and of the
     * copy. to_pitch is a multiple of 16. */
    uint64_t from_pitch, to_pitch;
    uint32_t rows;
    /* `row_bits` is the number of bits of the elements of a row. In the copy, all later bits of the
     * row are 0. */
    uint64_t row_bits;
} bsmm_scaled_pad;

#endif
