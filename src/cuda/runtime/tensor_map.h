/* TMA's descriptor of a tensor, for the host and for kernels. A kernel takes it by value as `const
 * __grid_constant__ CUtensorMap map`. */
#ifndef BSMM_CUDA_RUNTIME_TENSOR_MAP_H
#define BSMM_CUDA_RUNTIME_TENSOR_MAP_H

#include <stdint.h>

/* A tensor map: 128 opaque bytes (CUDA Driver API, Tensor Map Object Management). */
typedef struct CUtensorMap_st {
#ifdef __cplusplus
    alignas(128)
#else
    _Alignas(128)
#endif
        uint64_t opaque[16];
} CUtensorMap;

#endif
