/* Parameters of the bf16 GEMM kernels (sm80/bf16.cu). */
#ifndef BSMM_CUDA_SM80_BF16_PARAMS_H
#define BSMM_CUDA_SM80_BF16_PARAMS_H

#include "cuda/sm80/gate.h"
#include "gpu/epilogue.h"

enum {
    BSMM_BF16_TILE = 128, /* rows of A, and also of B, in a thread block's tile */
    BSMM_BF16_K = 32,     /* the elements of K in a step of the main loop */
    /* The threads of a block. Each decodes 8 elements of A and 8 of B per step. */
    BSMM_BF16_THREADS = 512
};

/* Says where an operand lies in memory and how a thread decodes its elements to bf16. */
typedef struct bsmm_bf16_side {
    bsmm_gpu_operand o;
    uint32_t rows;
    uint32_t by_rows;  /* Nonzero if the operand's elements are contiguous along K. */
    uint32_t together; /* Nonzero if 8 elements along K can be loaded at once. */
    /* Nonzero if 8 elements along K, beginning at a multiple of 8, have the same scale. */
    uint32_t one;
    /* Nonzero if the scales are fp32, one per row and step, and are applied to accumulators. */
    uint32_t outside;
} bsmm_bf16_side;

/* The parameters of a GEMM on bf16 tensor cores. */
typedef struct bsmm_bf16_job {
    bsmm_bf16_side sides[2]; /* the operands A and B */
    bsmm_gpu_epilogue epilogue;
    uint32_t k;
    /* The number of tiles of B. A tile of D has the number (A's tile) * b_tiles + (B's tile). */
    uint32_t b_tiles;
    uint32_t tiles; /* The number of tiles of D, which thread blocks compute round-robin. */
} bsmm_bf16_job;

typedef struct bsmm_bf16_params {
    bsmm_bf16_job job;
    bsmm_cuda_gate gate;
} bsmm_bf16_params;

#endif
