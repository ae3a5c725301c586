/* AMD devices, and simulators of them: one record per device and process, the modules loaded on it,
 * and launches. Any number of threads may use one record.
 *
 * A kernel's host side is a static const bsmm_hip_function, loaded when a plan is made
 * (bsmm_hip_load) and launched in a run (bsmm_hip_launch), which neither allocates nor
 * synchronizes. The caller's current device is the same before and after every function here. */
#ifndef BSMM_AMDGPU_RUNTIME_DEVICE_H
#define BSMM_AMDGPU_RUNTIME_DEVICE_H

#include "amdgpu/runtime/driver.h"
#include "gpu/modules.h"

enum { BSMM_HIP_WAVE = 64 }; /* threads of a wave, of all processors that kernels are for */

typedef struct bsmm_hip_device {
    const bsmm_hip_driver *driver;
    int ordinal;           /* the driver's */
    char device[32];       /* "hip:0", "sim:gfx950:1" */
    char name[96];         /* "AMD Instinct MI300X" */
    char arch[16];         /* "gfx942"; of processors that no kernel is for, "gfx9.0" */
    int compute_units;     /* 304 */
    uint64_t l2_bytes;     /* level-2 cache of an XCD */
    uint64_t memory_bytes; /* whole memory */
    uint32_t lds_bytes;    /* most LDS of a workgroup */
} bsmm_hip_device;

/* The record of "hip:ordinal", made by the first call for it. NOT_FOUND: no driver, no such GPU. A
 * failure is not kept: the next call tries again. */
bsmm_status bsmm_hip_device_get(uint32_t ordinal, const bsmm_hip_device **device);

/* The same of the simulators: ordinal = number * (how many models) + model, of "sim:MODEL:number".
 */
bsmm_status bsmm_hip_simulated_get(uint32_t ordinal, const bsmm_hip_device **device);

/* The models of simulators by name, ending with NULL. */
extern const char *const bsmm_hip_models[];

/* Makes the device current for this thread, keeping the caller's in *before, and the caller's
 * again. Only for driver calls that no function here wraps. */
bsmm_status bsmm_hip_enter(const bsmm_hip_device *device, int *before);
void bsmm_hip_leave(const bsmm_hip_device *device, int before);

/* ---- functions of modules ---- */

/* A kernel of an embedded module: static const, one per function. */
typedef bsmm_gpu_function bsmm_hip_function;

/* The image of a module for the device's processor; NULL where there is none. UNSUPPORTED: the
 * library has no images; NOT_FOUND: no such module. */
bsmm_status bsmm_hip_image_find(const bsmm_hip_device *device, const char *module,
                                const bsmm_gpu_image **image);

/* The reason where it is NULL, written to `why`. */
const char *bsmm_hip_no_image(const bsmm_hip_device *device, const char *module, char *why,
                              size_t size);

/* Loads the module (once per device) and the function (once per device). Slow at first, afterwards
 * a look-up without a lock. *handle may be NULL. A kernel does it in bsmm_kernel.make, so that runs
 * find all that they launch. */
bsmm_status bsmm_hip_load(const bsmm_hip_device *device, const bsmm_hip_function *function,
                          hipFunction_t *handle);

typedef struct bsmm_hip_launch_desc {
    const bsmm_hip_function *function;
    uint32_t grid[3], block[3]; /* workgroups; threads of one; 0 counts as 1 */
    uint32_t shared_bytes;      /* dynamic LDS; at most function->shared_bytes */
    void *stream;               /* hipStream_t; NULL: the default stream */
    void **arguments;           /* one pointer per parameter, as hipModuleLaunchKernel wants them */
} bsmm_hip_launch_desc;

/* Queues one launch. A grid with a 0 in it is not skipped but counts as 1. */
bsmm_status bsmm_hip_launch(const bsmm_hip_device *device, const bsmm_hip_launch_desc *launch);

/* BSMM_HIP_ARGUMENTS(&a, &b, &c): the argument array of a launch, from addresses of variables that
 * have exactly the parameters' types. */
#define BSMM_HIP_ARGUMENTS(...) ((void *[]){__VA_ARGS__})

#endif
