/* Parameters of the small-M kernels (sm90a/small_m.cu), which multiply few rows of A, and of the
 * kernel small_m_prepare, which converts A for them. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_PARAMS_H
#define BSMM_CUDA_SM90A_SMALL_M_PARAMS_H

#include "gpu/epilogue.h"

/* From this number of columns on, the four warps of a warpgroup multiply together by wgmma. A
 * column is one row of A, or one of the two or three rows of bf16 numbers whose sum is an f16 or
 * f32 row of A. */
#define BSMM_SMALL_M_WGMMA_COLUMNS 32

enum {
    BSMM_SMALL_M_WARPS = 16,
    BSMM_SMALL_M_THREADS = 32 * BSMM_SMALL_M_WARPS,
    BSMM_SMALL_M_PREPARE_THREADS = 256,
    /* The host chooses how K is split as if A had this number of columns, whatever the product's
     * number of columns is. The results then do not depend on the number of rows of A. Shared
     * memory that holds one column also has room for this number of columns. */
    BSMM_SMALL_M_COLUMNS = 32,
    /* the largest number of columns, i.e. of rows of A, or of bf16 parts of rows of A */
    BSMM_SMALL_M_MOST_COLUMNS = 64,
    BSMM_SMALL_M_K = 128, /* the elements of K in one step of the main loop */
    /* The largest number of chunks of A that one thread converts to bf16. A chunk is 8 elements
     * along K of one row. */
    BSMM_SMALL_M_OWN_CHUNKS = 4,
    /* The number of steps of K by which a thread's copies of weights run ahead of its arithmetic.
     * It is also the number of slots of the ring of weights. */
    BSMM_SMALL_M_AHEAD = 2,
    /* the bytes of one slot of the ring of weights: 64 bytes for each thread */
    BSMM_SMALL_M_SLOT_BYTES = BSMM_SMALL_M_THREADS * 64,
};

/* The ways in which the kernels read the values of A. */
typedef enum bsmm_small_m_source {
    BSMM_SMALL_M_ANY = 0,  /* A has any format and order and is read one element at a time */
    BSMM_SMALL_M_BF16 = 1, /* A is read as rows of bf16 */
    /* A is read as rows of f16, and each value is split into two bf16 numbers */
    BSMM_SMALL_M_F16 = 2,
    /* A is read as rows of e4m3, with row-major e8m0 scales of 32 elements, with fp32 scales, or
     * unscaled */
    BSMM_SMALL_M_E4M3 = 3
} bsmm_small_m_source;

typedef struct bsmm_small_m_params {
    bsmm_gpu_operand a, b;
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k;
    uint32_t steps; /* the number of steps of BSMM_SMALL_M_K elements in K */
    /* log2 of the number of ranges into which K is split. A range is a sequence of whole steps of
     * 128 elements. */
    uint32_t ranges_log2;
    /* log2 of the number of thread blocks of a cluster. The thread blocks split K among them, and
     * each computes whole ranges of K. */
    uint32_t splits_log2;
    /* log2 of the number of warps of a thread block that multiply the same rows of B, each in other
     * steps of K */
    uint32_t k_warps_log2;
    /* The number of steps of K (128 elements) for which the ring buffer in shared memory holds A,
     * for each warp along K. 0 means that there is no ring buffer, because shared memory holds all
     * of A that the thread block needs. */
    uint32_t a_slots;
    /* The image of A in the workspace: A converted to bf16, in the layout that the main loop reads
     * (sm90a/small_m_prepare.h). NULL: each thread block makes an image of its part of A in shared
     * memory. */
    uint8_t *a_image;
    /* Flags that say which rows of A are zero, as [row][blocks_per_row]. Each thread block of
     * small_m_prepare converts a part of one row, and it sets its flag to nonzero if an element of
     * this part is nonzero. */
    uint32_t *a_image_any;
    /* the number of thread blocks of small_m_prepare for each row of A */
    uint32_t blocks_per_row;
    /* A's fp32 scales in the workspace, as [step of 128 elements along K][scale_columns] */
    float *a_image_scales;
    /* the number of scales per step in a_image_scales: `columns`, rounded up to a multiple of 4 */
    uint32_t scale_columns;
    uint32_t narrow;     /* nonzero if weights have 4 or 6 bits, 0 if they have 8 */
    uint32_t source;     /* how A is read, a value of the enum bsmm_small_m_source */
    uint32_t row_scaled; /* nonzero if A has one fp32 scale per row */
    /* Nonzero if the epilogue has no alpha, C, bias or other factor. A result is then an
     * accumulator times a power of two and, if row_scaled is set, times the fp32 scale of A's
     * row. */
    uint32_t plain;
    /* zero_block is the smallest number of elements along K that share a block scale, in A or in B.
     * zero_least is the product of the least nonzero elements of A and B. With them the epilogue
     * tests whether an accumulator of 0 has lost products to underflow. If zero_block is 0, the
     * epilogue recomputes every accumulator of 0 in double. */
    uint32_t zero_block;
    float zero_least;
    /* the number of bf16 numbers that represent one value of A: 1, 2 (f16) or 3 (f32) */
    uint32_t parts;
    /* The number of columns of A in shared memory: m * parts or, with padding, more. A column is
     * one row of A, or one bf16 part of a row. */
    uint32_t columns;
    /* The bytes of a chunk of A in shared memory. A chunk is 32 elements along K of all columns: 8
     * elements for each of the 4 threads that share a row of an mma fragment. */
    uint32_t chunk_bytes;
    uint32_t for_wgmma; /* nonzero if A's image has the layout that wgmma reads */
    uint32_t m_log2;    /* log2 of m, rounded up */
    uint64_t a_pitch;   /* the stride of A's rows in bytes */
    uint64_t a_scale_pitch;
    uint32_t b_pitch8; /* the stride of B's rows, in units of 8 bytes */
    uint64_t b_scale_pitch;
    uint32_t b_bytes; /* the bytes of a row of B */
    /* the distance in bytes from the scales of one row of B to those of the next row, in shared
     * memory */
    uint32_t scale_stride;
    /* The bytes of B's scales per row and step (128 elements along K) in shared memory. 0 means
     * that one fp32 scale applies to all of K. */
    uint32_t scale_step;
    /* The number of bytes of B's row-major scales that one instruction copies to shared memory: 16,
     * 8, 4 or 1. 0 means that B's scales are not row-major. */
    uint32_t scale_vector;
    /* Offsets in bytes, from the beginning of shared memory, of B's scales, A's scales, the ring
     * buffer of weights, the mbarriers, and the flags that say which rows of A are nonzero. */
    uint32_t scales_at, a_scales_at, ring_at, barriers_at, flags_at;
} bsmm_small_m_params;

#endif
