/* A kernel that stores up to 128 bytes, which are part of the launch's parameters. With it a run
 * writes values to device memory without a host buffer, which would have to outlive the call. The
 * run can therefore be captured into a CUDA graph. */
#include "gpu/words.h"

extern "C" __global__ void store_words(uint32_t *to, const __grid_constant__ bsmm_gpu_words from) {
    if (threadIdx.x < from.count) to[threadIdx.x] = from.words[threadIdx.x];
}
