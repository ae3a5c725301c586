/* A kernel that stores up to 128 bytes that are part of the launch's parameters. A run uses it to
 * write values to device memory without a host buffer that must outlive the call, so the run can be
 * captured into a CUDA graph. */
#include "gpu/words.h"

extern "C" __global__ void store_words(uint32_t *to, const __grid_constant__ bsmm_gpu_words from) {
    if (threadIdx.x < from.count) to[threadIdx.x] = from.words[threadIdx.x];
}
