/* The part of the emulated machine that its CUDA driver (driver.c) uses from C: the content of a
 * tensor map, and kernels by name. */
#ifndef EMULATED_CUDA_MAP_H
#define EMULATED_CUDA_MAP_H

#include <stdint.h>

/* The 128 bytes of a tensor map with two dimensions, the contiguous one first. */
typedef struct emulated_map {
    uint8_t *address;
    /* extents of the tensor in elements, and stride of its rows in bytes */
    uint64_t extents[2], stride;
    /* The box of a TMA copy, the bytes of an element, and the swizzle: 0, 32, 64 or 128 bytes. */
    uint32_t box[2], elem_bytes, swizzle_bytes;
} emulated_map;

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a kernel, or NULL if there is none with this name. */
void *emulated_find(const char *name);

/* Runs a kernel in clusters of `cluster` thread blocks, one cluster after another. Returns 0 if all
 * threads wait for each other forever. */
int emulated_launch(void *kernel, void **arguments, const uint32_t blocks[3],
                    const uint32_t threads[3], uint32_t cluster, uint32_t shared_bytes);

#ifdef __cplusplus
}
#endif

#endif
