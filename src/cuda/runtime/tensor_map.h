/* Declares TMA's descriptor of a tensor, for the host and for kernels. A kernel has a parameter
 * `const __grid_constant__ CUtensorMap map`, because TMA reads the descriptor directly in parameter
 * memory. */
#ifndef BSMM_CUDA_RUNTIME_TENSOR_MAP_H
#define BSMM_CUDA_RUNTIME_TENSOR_MAP_H

#include <stdint.h>

/* A tensor map has 128 opaque bytes (CUDA Driver API, Tensor Map Object Management). */
typedef struct CUtensorMap_st {
#ifdef __cplusplus
    alignas(128)
#else
    _Alignas(128)
#endif
        uint64_t opaque[16];
} CUtensorMap;

#endif
