/* The parameter of the small-M kernels (sm90a/small_m.cu), and of the one that prepares A. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_PARAMS_H
#define BSMM_CUDA_SM90A_SMALL_M_PARAMS_H

#include "gpu/epilogue.h"

/* Columns from which on warpgroups multiply. */
#define BSMM_SMALL_M_WGMMA_COLUMNS 32

enum {
    BSMM_SMALL_M_WARPS = 16,
    BSMM_SMALL_M_THREADS = 32 * BSMM_SMALL_M_WARPS,
    BSMM_SMALL_M_PREPARE_THREADS = 256,
    BSMM_SMALL_M_COLUMNS = 32,   /* most of A, with the parts that values are split into */
    BSMM_SMALL_M_K = 128,        /* K of a step */
    BSMM_SMALL_M_OWN_CHUNKS = 4, /* of 8 along K of A that a thread makes, at most */
    BSMM_SMALL_M_AHEAD = 2,      /* steps that a thread's copies of weights are ahead */
    BSMM_SMALL_M_SLOT_BYTES = BSMM_SMALL_M_THREADS * 64, /* of one such step */
};

/* How A's values come into shared memory. */
typedef enum bsmm_small_m_source {
    BSMM_SMALL_M_ANY = 0,  /* value by value */
    BSMM_SMALL_M_BF16 = 1, /* rows of bf16 */
    BSMM_SMALL_M_F16 = 2,  /* rows of f16, each value in two parts */
    BSMM_SMALL_M_E4M3 = 3  /* rows of e4m3, with e8m0 scales for 32 columns each, row-major, or
                             with fp32 scales or none */
} bsmm_small_m_source;

typedef struct bsmm_small_m_params {
    bsmm_gpu_operand a, b;
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k;
    uint32_t steps;          /* of K */
    uint32_t ranges_log2;    /* K is cut in so many pieces of whole steps */
    uint32_t splits_log2;    /* blocks of a cluster: each has whole ranges */
    uint32_t k_warps_log2;   /* warps along K of a block */
    uint32_t a_slots;        /* steps of A that each warp along K has room for; 0: all are there */
    uint8_t *a_image;        /* A as sm90a/small_m_prepare.h makes it, in the workspace; NULL:
                                each block makes it in shared memory */
    uint32_t *a_image_any;   /* [row][blocks_per_row]: whether there is a value other than 0 */
    uint32_t blocks_per_row; /* of the kernel that prepares A */
    float *a_image_scales;   /* its fp32 scales, [step][scale_columns] */
    uint32_t scale_columns;  /* columns, rounded up to 4 */
    uint32_t narrow;         /* weights of 4 bits */
    uint32_t source;         /* bsmm_small_m_source */
    uint32_t row_scaled;     /* A has one fp32 scale for all of a row */
    uint32_t plain;       /* a result is a sum, times a power of two and the row's scale, rounded */
    uint32_t parts;       /* bf16 numbers that make one value of A: 1, 2 (f16), 3 (f32) */
    uint32_t columns;     /* m * parts, or more: what shared memory has room for */
    uint32_t chunk_bytes; /* of 8 along K of all columns in shared memory */
    uint32_t for_wgmma;   /* the image is what warpgroups multiply by */
    uint32_t m_log2;      /* of m, rounded up */
    uint64_t a_pitch;     /* bytes from row to row */
    uint64_t a_scale_pitch;
    uint32_t b_pitch16; /* bytes / 16 */
    uint64_t b_scale_pitch;
    uint32_t b_bytes;      /* of a row */
    uint32_t scale_stride; /* bytes from row to row of the scales in shared memory */
    uint32_t scale_vector; /* bytes of row-major scales that are copied at once: 16, 8, 4 or 1;
                              0: scales of another layout */
    uint32_t scales_at, a_scales_at, ring_at, barriers_at,
        flags_at; /* where they begin in shared memory */
} bsmm_small_m_params;

#endif
