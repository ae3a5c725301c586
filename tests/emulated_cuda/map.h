/* What the driver here knows of the machine, in C: a tensor map's 128 bytes, kernels by name. */
#ifndef EMULATED_CUDA_MAP_H
#define EMULATED_CUDA_MAP_H

#include <stdint.h>

/* Two dimensions, the contiguous one first. */
typedef struct emulated_map {
    uint8_t *address;
    uint64_t extents[2], stride;                /* elements; bytes from row to row */
    uint32_t box[2], elem_bytes, swizzle_bytes; /* swizzle_bytes: 0, 32, 64 or 128 */
} emulated_map;

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: there is none. */
void *emulated_find(const char *name);

/* Clusters of `cluster` blocks, one cluster after another. 0: threads wait for each other for ever.
 */
int emulated_launch(void *kernel, void **arguments, const uint32_t blocks[3],
                    const uint32_t threads[3], uint32_t cluster, uint32_t shared_bytes);

#ifdef __cplusplus
}
#endif

#endif
