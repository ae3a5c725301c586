/* The parameter of the bf16 kernels (sm80/bf16.cu). */
#ifndef BSMM_CUDA_SM80_BF16_PARAMS_H
#define BSMM_CUDA_SM80_BF16_PARAMS_H

#include "cuda/sm80/gate.h"
#include "gpu/epilogue.h"

enum {
    BSMM_BF16_TILE = 128,   /* rows of A and rows of B of a block */
    BSMM_BF16_K = 32,       /* of a step */
    BSMM_BF16_THREADS = 512 /* an eighth of a row of each tile a step */
};

/* How an operand is read. */
typedef struct bsmm_bf16_side {
    bsmm_gpu_operand o;
    uint32_t rows;
    uint32_t by_rows;  /* K is contiguous */
    uint32_t together; /* 8 elements along K may be loaded at once */
    uint32_t one;      /* 8 elements along K, from a multiple of 8 on, have one scale */
    uint32_t outside;  /* fp32 scales, one for each row and step, are applied to sums */
} bsmm_bf16_side;

/* A product. */
typedef struct bsmm_bf16_job {
    bsmm_bf16_side sides[2]; /* A, B */
    bsmm_gpu_epilogue epilogue;
    uint32_t k;
    uint32_t b_tiles; /* tiles of B; a tile's number is A's tile * b_tiles + B's tile */
    uint32_t tiles;   /* in all; blocks take them in turn */
} bsmm_bf16_job;

typedef struct bsmm_bf16_params {
    bsmm_bf16_job job;
    bsmm_cuda_gate gate;
} bsmm_bf16_params;

#endif
