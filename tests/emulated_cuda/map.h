/* Declares the functions of the emulated GPU that its CUDA driver (driver.c) calls from C. They
 * make tensor maps and launch kernels by name. */
#ifndef EMULATED_CUDA_MAP_H
#define EMULATED_CUDA_MAP_H

#include <stdint.h>

/* Holds a two-dimensional tensor map in 128 bytes, like a CUtensorMap. The first dimension is
 * contiguous in memory. */
typedef struct emulated_map {
    uint8_t *address;
    /* `extents` holds the sizes of the tensor's two dimensions in elements, and `stride` is the
     * distance between rows in bytes. */
    uint64_t extents[2], stride;
    /* `box` is the size in elements of the tile that one TMA copy moves. `swizzle_bytes` is the
     * width of the swizzle in shared memory: 0 (none), 32, 64 or 128 bytes. */
    uint32_t box[2], elem_bytes, swizzle_bytes;
} emulated_map;

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a kernel, or NULL if there is none with this name. */
void *emulated_find(const char *name);

/* Runs a kernel in clusters of `cluster` thread blocks, one cluster after another. Returns 0 if the
 * kernel is deadlocked. */
int emulated_launch(void *kernel, void **arguments, const uint32_t blocks[3],
                    const uint32_t threads[3], uint32_t cluster, uint32_t shared_bytes);

#ifdef __cplusplus
}
#endif

#endif
