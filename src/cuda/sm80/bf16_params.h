/* Parameters of the bf16 GEMM kernels (sm80/bf16.cu). */
#ifndef BSMM_CUDA_SM80_BF16_PARAMS_H
#define BSMM_CUDA_SM80_BF16_PARAMS_H

#include "cuda/sm80/gate.h"
#include "gpu/bf16_product.h"

enum {
    BSMM_BF16_TILE = 128,   /* rows of A and rows of B of a block */
    BSMM_BF16_THREADS = 512 /* an eighth of a row of each tile a step */
};

typedef struct bsmm_bf16_params {
    bsmm_bf16_job job;
    bsmm_cuda_gate gate;
} bsmm_bf16_params;

#endif
