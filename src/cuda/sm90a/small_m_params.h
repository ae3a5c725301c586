/* Defines the parameters of the small-M kernels (sm90a/small_m_body.h), which multiply few rows of
 * A, and of the kernel small_m_prepare, which converts A for them. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_PARAMS_H
#define BSMM_CUDA_SM90A_SMALL_M_PARAMS_H

#include "gpu/epilogue.h"

/* The kernels compute the transpose of D. B is the first operand of the matrix instruction and
 * gives the rows of the transpose. A is the second operand and gives its columns. A row of A is one
 * column. If a row of f16 or f32 is split into two or three rows of bf16 numbers, each of these is
 * one column. Kernels for at least BSMM_SMALL_M_WGMMA_COLUMNS columns multiply by wgmma, which the
 * four warps of a warpgroup execute together. Kernels for fewer columns multiply by mma.sync. */
#define BSMM_SMALL_M_WGMMA_COLUMNS 32

enum {
    BSMM_SMALL_M_WARPS = 16,
    BSMM_SMALL_M_THREADS = 32 * BSMM_SMALL_M_WARPS,
    BSMM_SMALL_M_PREPARE_THREADS = 256,
    /* The kernels compute the transpose of D, so rows of A are columns of their tile. A row whose
     * elements are split into several bf16 numbers takes one column for each of these numbers. How
     * K is split must not depend on the number of rows of A, because results would then depend on
     * it too. The host therefore splits K as if there were always BSMM_SMALL_M_COLUMNS columns.
     * Shared memory has room for at least this number of columns. */
    BSMM_SMALL_M_COLUMNS = 32,
    /* BSMM_SMALL_M_MOST_COLUMNS is the largest number of columns of a kernel's tile. A kernel
     * computes the transpose of D, so a row of A is a column of the tile. If A is f16 or f32, each
     * element is split into 2 or 3 bf16 numbers, and a row of A takes 2 or 3 columns. */
    BSMM_SMALL_M_MOST_COLUMNS = 64,
    /* BSMM_SMALL_M_K is the number of elements of K in one step of the main loop. */
    BSMM_SMALL_M_K = 128,
    /* BSMM_SMALL_M_OWN_CHUNKS is the largest number of chunks of A that one thread converts to
     * bf16. A chunk is 8 elements along K of one row. */
    BSMM_SMALL_M_OWN_CHUNKS = 4,
    /* A thread copies weights BSMM_SMALL_M_AHEAD steps of K before it multiplies them. The ring
     * buffer of weights has as many slots. */
    BSMM_SMALL_M_AHEAD = 2,
    /* BSMM_SMALL_M_SLOT_BYTES is the size in bytes of one slot of the ring buffer of weights. Each
     * thread has 64 bytes in a slot. */
    BSMM_SMALL_M_SLOT_BYTES = BSMM_SMALL_M_THREADS * 64,
};

/* The small-M kernels support these formats of weights. */
enum {
    SMALL_M_MXFP4 = 1,
    SMALL_M_NVFP4 = 2,
    SMALL_M_MXFP8 = 3,
    SMALL_M_FP8_F32 = 4, /* SMALL_M_FP8_F32: weights are fp8, and 16 rows share an fp32 scale. */
    SMALL_M_FP8_ROWS =
        5, /* SMALL_M_FP8_ROWS: weights are fp8, and each row may have its own fp32 scale. */
    SMALL_M_MXFP6_E2M3 = 6,
    SMALL_M_MXFP6_E3M2 = 7,
    SMALL_M_FORMATS /* SMALL_M_FORMATS is one more than the largest of these values. */
};

/* The kernels read the values of A in one of these ways. */
typedef enum bsmm_small_m_source {
    BSMM_SMALL_M_ANY =
        0, /* BSMM_SMALL_M_ANY: A has any format and order and is read one element at a time. */
    BSMM_SMALL_M_BF16 = 1, /* BSMM_SMALL_M_BF16: A is read as rows of bf16. */
    /* A is read as rows of f16, and each value is split into two bf16 numbers. */
    BSMM_SMALL_M_F16 = 2,
    /* A is read as rows of e4m3 with row-major e8m0 scales of 32 elements, with fp32 scales, or
     * without scales. */
    BSMM_SMALL_M_E4M3 = 3,
    /* A is read as rows of e2m1 with row-major scales: e8m0 for 32 elements, or e4m3 for 16. */
    BSMM_SMALL_M_E2M1 = 4
} bsmm_small_m_source;

/* These values say which factors the epilogue of a kernel may have. */
typedef enum bsmm_small_m_plain {
    BSMM_SMALL_M_GENERAL =
        0, /* BSMM_SMALL_M_GENERAL: the epilogue may have alpha, C, bias and other factors. */
    /* BSMM_SMALL_M_PLAIN: the epilogue has no alpha, C, bias or other factor. It multiplies an
     * accumulator only by a power of two (decoded weights are smaller than the true weights) and,
     * if row_scaled is set, by the fp32 scale of A's row. */
    BSMM_SMALL_M_PLAIN = 1,
    /* The kind of epilogue depends on the second-level (global) scales of A and B, which the host
     * does not know. The kernel reads them when it runs. If their product is 1, its epilogue is
     * BSMM_SMALL_M_PLAIN, and otherwise BSMM_SMALL_M_GENERAL. This value is usual with packed
     * weights: they always have a global scale, which is 1 for most formats. */
    BSMM_SMALL_M_PLAIN_IF_ONE = 2
} bsmm_small_m_plain;

typedef struct bsmm_small_m_params {
    bsmm_gpu_operand a, b;
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k;
    uint32_t steps; /* `steps` is the number of steps of BSMM_SMALL_M_K elements in K. */
    /* K is split into 2^ranges_log2 ranges. A range is a sequence of whole steps of 128 elements.
     */
    uint32_t ranges_log2;
    /* A cluster has 2^splits_log2 thread blocks, which divide the 2^ranges_log2 ranges of K among
     * them. A range is never divided between thread blocks. In the mixed-input kernels a cluster
     * has `splits` thread blocks, and splits_log2 is rounded up. */
    uint32_t splits_log2;
    /* In a thread block, 2^k_warps_log2 warps multiply the same rows of B. Each of these warps
     * takes different steps (128 elements) of K. */
    uint32_t k_warps_log2;
    /* Each warp that has its own part of K reads A through a ring buffer in shared memory.
     * `a_slots` is the number of steps of K (128 elements each) for which a ring buffer has room.
     * It is 0 if there is no ring buffer, because shared memory holds all of A that the thread
     * block needs. */
    uint32_t a_slots;
    /* `a_image` is the image of A in the workspace, i.e. A in the order in which the main loop
     * reads it (sm90a/small_m_prepare.h). Its elements are bf16, or f16 if `half` is nonzero. If
     * a_image is NULL, the workspace has no image, and each thread block makes an image of its part
     * of A in shared memory. */
    uint8_t *a_image;
    /* `a_image_any` tells the epilogue which rows of A are nonzero. A row is divided into
     * blocks_per_row parts, and entry [row][i] is for part i. The meaning of an entry depends on
     * the kernel that makes A's image:
     * - small_m_prepare: the entry is nonzero if the part has a nonzero element.
     * - mixed_prepare: the entry gives the smallest nonzero magnitude in the part, rounded down to
     *   bf16. It is the bf16 code of this magnitude minus 1, or ~0 if all elements are zeros. */
    uint32_t *a_image_any;
    /* `blocks_per_row` is the number of parts into which a row of A is divided. Each part has one
     * element in a_image_any. */
    uint32_t blocks_per_row;
    /* `a_image_scales` points to the fp32 scales of A in the workspace. In the kernels for few rows
     * of A, they are an array [step][scale_columns]: each step (128 elements of K) has one scale
     * for each column, i.e. for each row of A or bf16 part of it. In the mixed-input kernels there
     * is one scale for each row of A, and only if `row_scaled` is nonzero. */
    float *a_image_scales;
    /* `scale_columns` is the number of scales per step in a_image_scales: `columns`, rounded up to
     * a multiple of 4. */
    uint32_t scale_columns;
    uint32_t narrow; /* `narrow` is nonzero if weights have 4 or 6 bits, 0 if they have 8. */
    /* `half` is nonzero if a mixed-input kernel multiplies an f16 A without splitting it into bf16
     * numbers. The image of A (A in the order in which the kernel reads it) then has f16
     * elements. */
    uint32_t half;
    /* The mixed-input kernels read A from its image, in which A's elements have the order of the
     * main loop. Each 32-bit word of the image holds two 16-bit elements. `pair_distance` (1, 2 or
     * 4) is the distance along K of these two elements. It is chosen so that the weights for both
     * take the fewest instructions to decode. */
    uint32_t pair_distance;
    /* `source` tells how A is read, by a value of the enum bsmm_small_m_source. */
    uint32_t source;
    uint32_t row_scaled; /* `row_scaled` is nonzero if A has one fp32 scale per row. */
    /* `plain` tells which factors the epilogue has, by a value of the enum bsmm_small_m_plain. */
    uint32_t plain;
    /* An accumulator of 0 is wrong if a product of nonzero numbers has become 0 in fp32. With
     * zero_block and zero_least the epilogue tests whether this is possible. zero_least is the
     * product of the smallest nonzero magnitudes of A's and B's element formats. It is multiplied
     * by the smallest scales of the row of A and of the row of B. zero_block is the number of
     * elements along K for which the scales stay the same: the smaller one of the block lengths of
     * A and B. If it is 0, the epilogue makes no test and recomputes every accumulator of 0 in
     * double. In the mixed-input kernels, zero_least and zero_block are for B alone. */
    uint32_t zero_block;
    float zero_least;
    /* The epilogue tests whether an accumulator of 0 has lost products to underflow. For this test
     * it reads the 8-bit scales of the result's row of A and of its row of B. zero_a_scales and
     * zero_b_scales are the numbers of scales in such a row. A number is 0 if the operand has no
     * such scales, or if the scales of a row are not adjacent in memory. */
    uint32_t zero_a_scales, zero_b_scales;
    /* `parts` is the number of bf16 numbers whose sum is a value of A: 2 for f16, 3 for f32, and 1
     * for all other types. In the mixed-input kernels it is always 1. */
    uint32_t parts;
    /* `columns` is the number of columns of A's image in shared memory: m * parts or, with padding,
     * more. A column is one row of A, or one bf16 part of a row. */
    uint32_t columns;
    /* `chunk_bytes` is the size in bytes of a chunk of A in shared memory. A chunk holds 32
     * elements along K of every column, where a column is a row of A or one bf16 part of it. In an
     * mma fragment, 4 threads share a column of the chunk, and each of them reads 8 of its 32
     * elements. */
    uint32_t chunk_bytes;
    /* The kernels compute the transpose of D, so that the rows of A are the columns of their
     * product. `column_tiles` is the number of tiles into which the mixed-input kernels divide
     * these columns. */
    uint32_t column_tiles;
    /* `splits` is the number of thread blocks of a cluster of the mixed-input kernels. These thread
     * blocks split K into splits * 2^k_warps_log2 ranges. range_inverse is 2^31 divided by the
     * number of ranges, rounded up. */
    uint32_t splits, range_inverse;
    /* In the mixed-input kernels, the thread blocks of a cluster divide the columns of their tile
     * of D for storing. Each thread block stores `run_width` runs in each row, where a run is
     * BSMM_MIXED_RUN adjacent results. Its threads store one run each, so they store `run_step`
     * rows at a time. Threads divide their number by run_width with a multiplication by
     * `run_inverse` (2^16 / run_width, rounded down, plus 1) and a shift. */
    uint32_t run_width, run_step, run_inverse;
    /* A mixed-input kernel may compute D by two launches. A launch multiplies the rows of B from
     * first_row on. If first_row is not 0, the launch before it multiplies the rows before. */
    uint32_t first_row;
    /* `scale_count` is the number of scales of a row of B, if B's scales are codes of one byte. */
    uint32_t scale_count;
    uint32_t for_wgmma; /* `for_wgmma` is nonzero if A's image has the layout that wgmma reads. */
    uint32_t m_log2;    /* `m_log2` is the log2 of m, rounded up. */
    uint64_t a_pitch;   /* `a_pitch` is the stride of A's rows in bytes. */
    uint64_t a_scale_pitch;
    uint32_t b_pitch8; /* `b_pitch8` is the stride of B's rows, in units of 8 bytes. */
    uint64_t b_scale_pitch;
    uint32_t b_bytes; /* `b_bytes` is the number of bytes of a row of B. */
    /* `scale_stride` is the distance in bytes between the scales of adjacent rows of B in shared
     * memory. */
    uint32_t scale_stride;
    /* In shared memory, a row of B has `scale_step` bytes of scales for each step (128 elements
     * along K). If it is 0, the row has only one fp32 scale, which applies to all of K. */
    uint32_t scale_step;
    /* `scale_vector` is nonzero if B's scales are row-major codes of one byte
     * (bsmm_small_m_has_row_codes). In this case the codes are copied to shared memory 16 bytes at
     * a time, and 2^scale_lanes_log2 threads copy a row. */
    uint32_t scale_vector, scale_lanes_log2;
    /* These are offsets in bytes, from the beginning of shared memory, of B's scales, A's scales,
     * the ring buffer of weights, the mbarriers, and the flags that say which rows of A are
     * nonzero. */
    uint32_t scales_at, a_scales_at, ring_at, barriers_at, flags_at;
} bsmm_small_m_params;

#endif
