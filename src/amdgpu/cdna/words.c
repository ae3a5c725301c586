/* Stores up to 128 bytes that travel in the launch itself: what a run must put into device memory
 * without a host buffer that has to stay, so that it can be captured into a graph. */
#include "gpu/words.h"

#include "amdgpu/cdna/kernel.h"

BSMM_KERNEL(64) store_words(BSMM_GLOBAL uint32_t *to, bsmm_gpu_words from) {
    const uint32_t i = bsmm_thread();
    if (i < from.count) to[i] = from.words[i];
}
