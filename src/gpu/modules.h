/* Functions of embedded modules, loaded once per device. */
#ifndef BSMM_GPU_MODULES_H
#define BSMM_GPU_MODULES_H

#include "gpu/images.h"

/* A kernel of an embedded module. The record's address is the cache's key: define it static const,
 * one per function. */
typedef struct bsmm_gpu_function {
    const char *module;    /* "sm90a/gemm": its image's name */
    const char *name;      /* "gemm_fp8_bf16" */
    uint32_t shared_bytes; /* most dynamic shared memory that a launch will ask for */
} bsmm_gpu_function;

/* How a driver loads. begin makes the device current and allows loading during captures; end undoes
 * it; the other calls come between the two. */
typedef struct bsmm_gpu_loader {
    /* Statuses as those of bsmm_gpu_image_find; an image of NULL is named by no_image. */
    bsmm_status (*find_image)(const void *device, const char *module, const bsmm_gpu_image **image);
    const char *(*no_image)(const void *device, const char *module, char *why, size_t size);
    bsmm_status (*begin)(const void *device, int *before);
    void (*end)(const void *device, int before);
    bsmm_status (*load)(const void *device, const void *bytes, void **module);
    bsmm_status (*find)(const void *device, void *module, const bsmm_gpu_function *function,
                        void **handle);
} bsmm_gpu_loader;

/* Loads the module (once per device) and the function (once per device). Slow at first
 * (milliseconds), afterwards a look-up without a lock. *handle may be NULL. `device` is a record
 * that lives as long as the process. Thread-safe. */
bsmm_status bsmm_gpu_function_load(const bsmm_gpu_loader *loader, const void *device,
                                   const bsmm_gpu_function *function, void **handle);

#endif
