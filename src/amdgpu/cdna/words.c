/* Stores up to 128 bytes that the launch passes as a kernel parameter. A run writes small tables to
 * device memory this way. A copy from a host buffer would not do: in a captured graph, the buffer
 * would have to live as long as the graph. */
#include "gpu/words.h"

#include "amdgpu/cdna/kernel.h"

BSMM_KERNEL(64) store_words(BSMM_GLOBAL uint32_t *to, bsmm_gpu_words from) {
    const uint32_t i = bsmm_thread();
    if (i < from.count) to[i] = from.words[i];
}
