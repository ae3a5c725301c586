/* The parameters of the MFMA kernels, which multiply with the matrix instructions of CDNA. The host
 * fills them for each product. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_PARAMS_H
#define BSMM_AMDGPU_CDNA_GEMM_PARAMS_H

#include "gpu/epilogue.h"

enum {
    BSMM_CDNA_EDGE = 16, /* rows and columns of a matrix instruction's tile */
    BSMM_CDNA_K = 128,   /* elements along K in a stage */
    BSMM_CDNA_XCDS = 8,  /* dies with their own L2; consecutive workgroups go to different dies */
    BSMM_CDNA_BAND_ROWS = 8, /* rows of tiles in a band (gemm_schedule.h) */
};

/* One of the two operands. */
typedef struct bsmm_cdna_side {
    bsmm_gpu_operand o;
    uint64_t pitch;  /* bytes from one row to the next, or between columns if column-major */
    uint32_t rows;   /* M for A, N for B */
    uint32_t direct; /* 1: data and pitch are aligned for direct loads from memory to LDS */
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
