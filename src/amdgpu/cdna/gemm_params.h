/* The parameters of the MFMA kernels, which multiply with the matrix instructions of CDNA. The host
 * fills them for each product. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_PARAMS_H
#define BSMM_AMDGPU_CDNA_GEMM_PARAMS_H

#include "gpu/epilogue.h"

enum {
    BSMM_CDNA_EDGE = 16, /* rows and columns of a matrix instruction's tile */
    BSMM_CDNA_K = 128,   /* elements along K in a stage */
    BSMM_CDNA_XCDS = 8,  /* dies with their own L2; consecutive workgroups go to different dies */
    BSMM_CDNA_BAND_ROWS = 8,   /* rows of tiles in a band (gemm_schedule.h) */
    BSMM_CDNA_SCALES = 8,      /* blocks along K after which the offsets of scales repeat at most */
    BSMM_CDNA_SCALE_UNITS = 8, /* units of K whose e8m0 scales are in LDS (gemm_scales.h) */
    BSMM_CDNA_LDS_950 = 160 * 1024, /* bytes of LDS of a compute unit of gfx950 */
};

/* The number of stages in LDS of a product with e8m0 scales: three, or two if three do not fit.
 * `stage` is the bytes of a stage, `rows` the rows of A and B in a tile, and `k` the elements of K
 * in a stage. The expressions are constant, because tables of the host contain them. */
#define BSMM_CDNA_SCALE_BYTES(rows, k)                                                             \
    ((BSMM_CDNA_SCALE_UNITS * 4 + (k) / BSMM_CDNA_K * 16) * (rows))
#define BSMM_CDNA_STAGES(stage, rows, k)                                                           \
    (3 * (stage) + BSMM_CDNA_SCALE_BYTES(rows, k) <= BSMM_CDNA_LDS_950 ? 3 : 2)

/* One of the two operands. */
typedef struct bsmm_cdna_side {
    bsmm_gpu_operand o;
    uint64_t pitch;  /* bytes from one row to the next, or between columns if column-major */
    uint32_t rows;   /* M for A, N for B */
    uint32_t direct; /* 1: data and pitch are aligned for direct loads from memory to LDS */
    /* The offsets of the scales of the first blocks along K. Those of the next blocks are larger by
     * `scale_period`, and so on. */
    uint32_t scale_at[BSMM_CDNA_SCALES], scale_period;
    uint32_t scales_in_row; /* 1: the scales of a row of the operand lie side by side */
} bsmm_cdna_side;

typedef struct bsmm_cdna_gemm {
    bsmm_cdna_side sides[2]; /* A and B */
    bsmm_gpu_epilogue epilogue;
    uint32_t k, row_tiles, col_tiles; /* K; the rows and columns of workgroup tiles in D */
    /* This factor multiplies every sum. It is 4 if the GPU reads e4m3 codes as e4m3fnuz, which
     * halves the values of both operands. Otherwise it is 1. */
    float factor;
} bsmm_cdna_gemm;

#endif
