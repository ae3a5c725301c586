/* Stores up to 128 bytes, which are a part of the kernel's parameters, to device memory. A run
 * writes small tables in this way. A run does not copy the tables from a host buffer, because a
 * captured graph would repeat the copy, and the buffer would have to live as long as the graph. */
#include "gpu/words.h"

#include "amdgpu/cdna/kernel.h"

BSMM_KERNEL(64) store_words(BSMM_GLOBAL uint32_t *to, bsmm_gpu_words from) {
    const uint32_t i = bsmm_thread();
    if (i < from.count) to[i] = from.words[i];
}
