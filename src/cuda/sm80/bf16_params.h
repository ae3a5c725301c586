/* Parameters of the bf16 GEMM kernels (sm80/bf16.cu). */
#ifndef BSMM_CUDA_SM80_BF16_PARAMS_H
#define BSMM_CUDA_SM80_BF16_PARAMS_H

#include "cuda/sm80/gate.h"
#include "gpu/bf16_product.h"

enum {
    BSMM_BF16_TILE = 128, /* rows of A and rows of B that one thread block computes */
    /* In each step, a thread loads an eighth of a row of A's tile and of B's tile, i.e. 4 elements.
     */
    BSMM_BF16_THREADS = 512
};

typedef struct bsmm_bf16_params {
    bsmm_bf16_job job;
    bsmm_cuda_gate gate;
} bsmm_bf16_params;

#endif
