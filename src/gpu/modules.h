/* Loads kernels of embedded images, each once per device, and caches them. */
#ifndef BSMM_GPU_MODULES_H
#define BSMM_GPU_MODULES_H

#include "gpu/images.h"

/* Describes a kernel of an embedded image. The cache of loaded kernels uses the address of this
 * struct as its key, so define one static const struct for each kernel. */
typedef struct bsmm_gpu_function {
    const char *module; /* `module` is the name of the image, for example "sm90a/gemm". */
    /* `name` is the kernel's symbol in the image, for example "amax_lines". */
    const char *name;
    /* `shared_bytes` is the largest number of bytes of dynamic shared memory that a launch of this
     * kernel may use. */
    uint32_t shared_bytes;
} bsmm_gpu_function;

/* Holds the functions by which a GPU backend loads modules. A module is loaded by `load`, and a
 * kernel in it is found by `find`. `begin` is called before them. It makes the device current and
 * allows loading while a graph is being captured, and stores in *before what was current. `end` is
 * called after them and restores it. */
typedef struct bsmm_gpu_loader {
    /* find_image finds the image that runs best on the device, with the same result as
     * bsmm_gpu_image_find. If the device can run no image (*image is NULL), no_image returns the
     * reason as text. */
    bsmm_status (*find_image)(const void *device, const char *module, const bsmm_gpu_image **image);
    const char *(*no_image)(const void *device, const char *module, char *why, size_t size);
    bsmm_status (*begin)(const void *device, int *before);
    void (*end)(const void *device, int before);
    bsmm_status (*load)(const void *device, const void *bytes, void **module);
    bsmm_status (*find)(const void *device, void *module, const bsmm_gpu_function *function,
                        void **handle);
} bsmm_gpu_loader;

/* Loads a kernel and the module that contains it, each once per device. The first call takes
 * milliseconds. Later calls look the kernel up without a lock. `handle` may be NULL. `device`
 * points to a record that lives as long as the process. Thread-safe. */
bsmm_status bsmm_gpu_function_load(const bsmm_gpu_loader *loader, const void *device,
                                   const bsmm_gpu_function *function, void **handle);

/* Returns an extent of a kernel's grid or thread block. An extent of 0 was not set and counts as 1.
 */
static inline uint32_t bsmm_gpu_extent(uint32_t extent) {
    return extent ? extent : 1;
}

#endif
