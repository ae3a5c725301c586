/* Defines the parameters of the kernels of the generic bf16 GEMM (sm80/bf16.cu). */
#ifndef BSMM_CUDA_SM80_BF16_PARAMS_H
#define BSMM_CUDA_SM80_BF16_PARAMS_H

#include "cuda/sm80/gate.h"
#include "gpu/bf16_product.h"

enum {
    /* A thread block computes a tile of BSMM_BF16_TILE x BSMM_BF16_TILE results of D. */
    BSMM_BF16_TILE = 128,
    /* In each step of 32 elements of K, each of the 512 threads of a thread block decodes 8
     * elements of A's tile and 8 elements of B's tile. */
    BSMM_BF16_THREADS = 512
};

typedef struct bsmm_bf16_params {
    bsmm_bf16_job job;
    bsmm_cuda_gate gate;
} bsmm_bf16_params;

#endif
