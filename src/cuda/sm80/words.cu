/* Stores up to 128 bytes that travel in the launch itself: what a run must put into device memory
 * without a host buffer that has to stay, so that it can be captured into a graph. */
#include "gpu/words.h"

extern "C" __global__ void store_words(uint32_t *to, const __grid_constant__ bsmm_gpu_words from) {
    if (threadIdx.x < from.count) to[threadIdx.x] = from.words[threadIdx.x];
}
