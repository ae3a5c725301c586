/* This header is for AMD GPUs and simulated AMD GPUs. It declares a record of each device, the
 * modules that are loaded on it, and launches. Any number of threads may use one record.
 *
 * The host code of a kernel defines a static const bsmm_hip_function. It calls bsmm_hip_load when a
 * plan is made, and bsmm_hip_launch in each run. A launch of a loaded function neither allocates
 * nor synchronizes. Each function here restores the caller's current device, except for
 * bsmm_hip_enter. */
#ifndef BSMM_AMDGPU_RUNTIME_DEVICE_H
#define BSMM_AMDGPU_RUNTIME_DEVICE_H

#include "amdgpu/runtime/driver.h"
#include "gpu/modules.h"

/* BSMM_HIP_WAVE is the number of threads of a wave on every supported processor. */
enum { BSMM_HIP_WAVE = 64 };

typedef struct bsmm_hip_device {
    const bsmm_hip_driver *driver;
    int ordinal;     /* `ordinal` is the number by which the driver knows the device. */
    char device[32]; /* `device` is the device's name in bsmm, e.g. "hip:0" or "sim:gfx950:1". */
    char name[96];   /* `name` is the name of the GPU's model, e.g. "AMD Instinct MI300X". */
    /* `arch` is the name of the processor, e.g. "gfx942", or "gfx9.0" if bsmm has no kernels for
     * it. */
    char arch[16];
    int compute_units;     /* `compute_units` is the number of compute units, e.g. 304. */
    uint64_t l2_bytes;     /* `l2_bytes` is the number of bytes of L2 of one XCD (die). */
    uint64_t memory_bytes; /* `memory_bytes` is the number of bytes of the device's memory. */
    uint32_t lds_bytes;    /* `lds_bytes` is the largest LDS of a workgroup in bytes. */
} bsmm_hip_device;

/* Returns the record of the GPU "hip:ordinal". The first call for a GPU makes the record. Returns
 * NOT_FOUND if there is no driver or no such GPU. After a failure the next call tries again. */
bsmm_status bsmm_hip_device_get(uint32_t ordinal, const bsmm_hip_device **device);

/* Returns the record of a simulated GPU. The simulated GPU "sim:MODEL:number" has the ordinal
 * number * n + i, where n is the count of models and i is the index of MODEL in bsmm_hip_models.
 * Returns NOT_FOUND if there is no simulator or no such GPU. */
bsmm_status bsmm_hip_simulated_get(uint32_t ordinal, const bsmm_hip_device **device);

/* bsmm_hip_enter makes the device current for this thread and stores the previous device in
 * *before. bsmm_hip_leave restores that device. The functions of this header call them, so a caller
 * needs them only around its own calls of the driver. */
bsmm_status bsmm_hip_enter(const bsmm_hip_device *device, int *before);
void bsmm_hip_leave(const bsmm_hip_device *device, int before);

/* Names a kernel in an embedded module. Define a static const variable of this type for each
 * kernel. */
typedef bsmm_gpu_function bsmm_hip_function;

/* Sets *image to the module's image (compiled code) for the device's processor, or to NULL if there
 * is none. Returns UNSUPPORTED if the library has no images for AMD GPUs, and NOT_FOUND if there is
 * no such module. */
bsmm_status bsmm_hip_image_find(const bsmm_hip_device *device, const char *module,
                                const bsmm_gpu_image **image);

/* Writes to `why` the reason why the library has no code of a module for the device, and returns
 * `why`. */
const char *bsmm_hip_no_image(const bsmm_hip_device *device, const char *module, char *why,
                              size_t size);

/* Loads a module and one of its functions on a device. The first call for a function is slow, and
 * later calls are a look-up without a lock. *handle receives the function unless `handle` is NULL.
 * The host code of a kernel calls this function when a plan is made (bsmm_kernel.make), so that
 * runs load nothing. */
bsmm_status bsmm_hip_load(const bsmm_hip_device *device, const bsmm_hip_function *function,
                          void **handle);

typedef struct bsmm_hip_launch_desc {
    const bsmm_hip_function *function;
    /* grid and block are the numbers of workgroups and of threads per workgroup along x, y and z.
     * An extent of 0 counts as 1. */
    uint32_t grid[3], block[3];
    /* `shared_bytes` is the number of bytes of dynamic LDS of a workgroup, at most
     * function->shared_bytes. */
    uint32_t shared_bytes;
    /* `stream` is the stream of the launch, a hipStream_t, or NULL for the default stream. */
    void *stream;
    /* `arguments` has one pointer for each kernel parameter, as in hipModuleLaunchKernel. */
    void **arguments;
} bsmm_hip_launch_desc;

/* Queues one launch on its stream. If an extent of the grid or of the workgroup is 0, it counts as
 * 1. */
bsmm_status bsmm_hip_launch(const bsmm_hip_device *device, const bsmm_hip_launch_desc *launch);

/* Makes the argument array of a launch: BSMM_HIP_ARGUMENTS(&a, &b, &c). The variables a, b and c
 * must have exactly the types of the kernel's parameters. */
#define BSMM_HIP_ARGUMENTS(...) ((void *[]){__VA_ARGS__})

#endif
