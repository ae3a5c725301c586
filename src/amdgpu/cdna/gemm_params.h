/* The parameters of the MFMA engine, which the host fills for a product. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_PARAMS_H
#define BSMM_AMDGPU_CDNA_GEMM_PARAMS_H

#include "gpu/epilogue.h"

enum {
    BSMM_CDNA_EDGE = 16,     /* rows and columns of the matrix instructions */
    BSMM_CDNA_K = 128,       /* of a stage */
    BSMM_CDNA_XCDS = 8,      /* dies that workgroups go to in turn, each with an L2 of its own */
    BSMM_CDNA_BAND_ROWS = 8, /* rows of tiles that neighbours in time share */
};

/* An operand. */
typedef struct bsmm_cdna_side {
    bsmm_gpu_operand o;
    uint64_t pitch;  /* bytes from one row to the next; by columns: from one column */
    uint32_t rows;   /* of A: M; of B: N */
    uint32_t direct; /* 1: data and pitch are aligned for loads from memory to LDS */
} bsmm_cdna_side;

typedef struct bsmm_cdna_gemm {
    bsmm_cdna_side sides[2]; /* A and B */
    bsmm_gpu_epilogue epilogue;
    uint32_t k, row_tiles, col_tiles; /* K; tiles of workgroups down and across D */
    float factor;                     /* of every sum: 4 where e4m3 is read as e4m3fnuz */
} bsmm_cdna_gemm;

#endif
