/* The kernel in this file stores up to 128 bytes, which the host passes as launch parameters. A run
 * uses it to write values to device memory without a host buffer. A host buffer would have to
 * outlive a CUDA graph into which the run is captured. */
#include "gpu/words.h"

extern "C" __global__ void store_words(uint32_t *to, const __grid_constant__ bsmm_gpu_words from) {
    if (threadIdx.x < from.count) to[threadIdx.x] = from.words[threadIdx.x];
}
