/* Parameters of the small-M kernels (sm90a/small_m.cu), which multiply few rows of A, and of the
 * kernel that prepares A for them. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_PARAMS_H
#define BSMM_CUDA_SM90A_SMALL_M_PARAMS_H

#include "gpu/epilogue.h"

/* The number of columns from which on four warps multiply together by wgmma. A column is a row of
 * A, or a part of one. */
#define BSMM_SMALL_M_WGMMA_COLUMNS 32

enum {
    BSMM_SMALL_M_WARPS = 16,
    BSMM_SMALL_M_THREADS = 32 * BSMM_SMALL_M_WARPS,
    BSMM_SMALL_M_PREPARE_THREADS = 256,
    BSMM_SMALL_M_COLUMNS = 32, /* the largest number of columns (rows of A or parts of rows) */
    BSMM_SMALL_M_K = 128,      /* The elements of K in a step of the main loop. */
    /* The largest number of chunks of A (8 elements along K) that a thread prepares. */
    BSMM_SMALL_M_OWN_CHUNKS = 4,
    /* The number of steps by which a thread's copies of weights run ahead. */
    BSMM_SMALL_M_AHEAD = 2,
    /* the bytes of weights of one step in the ring */
    BSMM_SMALL_M_SLOT_BYTES = BSMM_SMALL_M_THREADS * 64,
};

/* Says how a kernel reads the values of A. */
typedef enum bsmm_small_m_source {
    BSMM_SMALL_M_ANY = 0,  /* A is read one element at a time, in any format. */
    BSMM_SMALL_M_BF16 = 1, /* A's elements are rows of bf16. */
    BSMM_SMALL_M_F16 = 2,  /* A's elements are rows of f16. Each value is split into two parts. */
    /* A's elements are rows of e4m3, with row-major e8m0 scales of 32 elements, with fp32 scales,
     * or unscaled. */
    BSMM_SMALL_M_E4M3 = 3
} bsmm_small_m_source;

typedef struct bsmm_small_m_params {
    bsmm_gpu_operand a, b;
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k;
    uint32_t steps; /* The number of steps of K. */
    /* log2 of the number of ranges into which K is split, at multiples of a step */
    uint32_t ranges_log2;
    /* log2 of the number of thread blocks of a cluster, each of which computes whole ranges of K */
    uint32_t splits_log2;
    uint32_t k_warps_log2; /* log2 of the number of warps along K in a thread block */
    /* Number of steps of A for which each warp along K has slots in shared memory. 0: shared memory
     * holds all steps. */
    uint32_t a_slots;
    /* The image of A that sm90a/small_m_prepare.h makes, in the workspace. NULL: each block makes
     * its own image in shared memory. */
    uint8_t *a_image;
    /* Nonzero at [row][blocks_per_row] if a part of that row of A has a nonzero value. */
    uint32_t *a_image_any;
    /* the number of thread blocks per row of A in the kernel that prepares A */
    uint32_t blocks_per_row;
    float *a_image_scales;  /* The fp32 scales of A's image, stored as [step][scale_columns]. */
    uint32_t scale_columns; /* `columns`, rounded up to a multiple of 4 */
    uint32_t narrow;        /* Nonzero if weights have 4 bits, 0 if they have 8. */
    uint32_t source;     /* The form in which A is read, a value of the enum bsmm_small_m_source. */
    uint32_t row_scaled; /* Nonzero if A has one fp32 scale per row. */
    /* Nonzero if a result is an accumulator times a power of two and times the row's scale,
     * rounded; there is no C, bias or other factor. */
    uint32_t plain;
    /* The number of bf16 numbers that represent one value of A: 1, 2 (f16) or 3 (f32). */
    uint32_t parts;
    uint32_t columns; /* The number of columns in shared memory: m * parts, or more for padding. */
    /* the bytes of a chunk (8 elements along K of all columns) in shared memory */
    uint32_t chunk_bytes;
    uint32_t for_wgmma; /* Nonzero if A's image has the layout that wgmma reads. */
    uint32_t m_log2;    /* The logarithm of m to base 2, rounded up. */
    uint64_t a_pitch;   /* The stride of A's rows, in bytes. */
    uint64_t a_scale_pitch;
    uint32_t b_pitch16; /* the stride of B's rows, in units of 16 bytes */
    uint64_t b_scale_pitch;
    uint32_t b_bytes;      /* The bytes of a row of B. */
    uint32_t scale_stride; /* the stride of rows of B's scales in shared memory, in bytes */
    /* Bytes of row-major scales that one instruction copies: 16, 8, 4 or 1. 0: scales have another
     * layout. */
    uint32_t scale_vector;
    uint32_t scales_at, a_scales_at, ring_at, barriers_at,
        flags_at; /* offsets of scales, rings, barriers and flags in shared memory, in bytes */
} bsmm_small_m_params;

#endif
