/* NVIDIA devices: one record per GPU and process, the modules that are loaded on it, and launches.
 * Any number of threads may use one record.
 *
 * A kernel's host side is a static const bsmm_cuda_function. It is loaded when a plan is made
 * (bsmm_cuda_load), and launched in a run (bsmm_cuda_launch), which neither allocates nor
 * synchronizes. Every function here restores the caller's current context. */
#ifndef BSMM_CUDA_RUNTIME_DEVICE_H
#define BSMM_CUDA_RUNTIME_DEVICE_H

#include "cuda/runtime/driver.h"
#include "gpu/modules.h"

typedef struct bsmm_cuda_device {
    const bsmm_cuda_driver *driver;
    int ordinal;
    CUdevice handle;
    CUcontext context;       /* the primary context, retained for the life of the process */
    char name[96];           /* the GPU's name, for example "NVIDIA H200" */
    int capability;          /* the compute capability as 10 * major + minor, for example 90 */
    int multiprocessors;     /* number of streaming multiprocessors (SMs), for example 132 */
    uint64_t l2_bytes;       /* size of the L2 cache in bytes */
    uint64_t memory_bytes;   /* size of device memory in bytes */
    uint32_t shared_bytes;   /* the largest dynamic shared memory of a thread block, in bytes */
    uint32_t driver_version; /* the driver's version, for example 13000 for CUDA 13.0 */
} bsmm_cuda_device;

/* Returns the record of "cuda:ordinal", which the first call for it makes. Returns NOT_FOUND if
 * there is no driver or no such GPU, and DEVICE if its context cannot be made. A failure is not
 * remembered: the next call tries again. */
bsmm_status bsmm_cuda_device_get(uint32_t ordinal, const bsmm_cuda_device **device);

/* Fills a record except for the context, which is slow to make and takes memory. */
bsmm_status bsmm_cuda_device_read(uint32_t ordinal, bsmm_cuda_device *device);

/* bsmm_cuda_enter makes the device's context current for this thread, and bsmm_cuda_leave restores
 * the caller's. Calls nest, and every successful enter needs a leave. They are only for driver
 * calls that no function here wraps. */
bsmm_status bsmm_cuda_enter(const bsmm_cuda_device *device);
void bsmm_cuda_leave(const bsmm_cuda_device *device);

/* ---- functions of modules ---- */

/* A __global__ function (extern "C") of an embedded module: static const, one per function. */
typedef bsmm_gpu_function bsmm_cuda_function;

/* Finds the image of a module that the device runs best: a cubin if there is one, else PTX. Sets
 * *image to NULL if the device can run none. Returns UNSUPPORTED if the library has no images, and
 * NOT_FOUND if there is no such module. */
bsmm_status bsmm_cuda_image_find(const bsmm_cuda_device *device, const char *module,
                                 const bsmm_gpu_image **image);

/* Writes to `why` the reason for which bsmm_cuda_image_find has found no image. */
const char *bsmm_cuda_no_image(const bsmm_cuda_device *device, const char *module, char *why,
                               size_t size);

/* Loads a module and a function, each once per device, and raises the function's limit of dynamic
 * shared memory. The first call takes milliseconds, and later calls are a look-up without a lock.
 * `handle` may be NULL. A kernel calls this in bsmm_kernel.make, so that its runs need not load
 * anything. */
bsmm_status bsmm_cuda_load(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                           CUfunction *handle);

typedef struct bsmm_cuda_launch_desc {
    const bsmm_cuda_function *function;
    /* Extents of the grid and of a thread block. An extent of 0 counts as 1. */
    uint32_t grid[3], block[3];
    /* Extents of a cluster of thread blocks. If all are 0 there is no cluster, else 0 counts as
     * 1. */
    uint32_t cluster[3];
    uint32_t shared_bytes; /* the bytes of dynamic shared memory, at most function->shared_bytes */
    /* True if the kernel may start while the stream's previous kernel ends (programmatic stream
     * serialization). The kernel itself must then wait by griddepcontrol.wait. */
    bool overlap;
    void *stream; /* The stream, a CUstream. NULL: the legacy default stream. */
    /* The launch's arguments, one pointer per parameter, as cuLaunchKernel expects them. */
    void **arguments;
} bsmm_cuda_launch_desc;

/* Queues one launch. A grid with an extent of 0 is not skipped: the extent counts as 1. */
bsmm_status bsmm_cuda_launch(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *launch);

/* A launch that is part of a plan's state. Its function is loaded, and each run provides its stream
 * and arguments. */
typedef struct bsmm_cuda_ready {
    CUfunction handle;
    bsmm_cuda_launch_desc desc; /* the launch's description, without stream and arguments */
} bsmm_cuda_ready;

bsmm_status bsmm_cuda_ready_make(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *desc,
                                 bsmm_cuda_ready *ready);

/* Queues a launch of a plan. The device's context must be current: a run makes it current once for
 * all of its launches. */
bsmm_status bsmm_cuda_ready_launch(const bsmm_cuda_device *device, const bsmm_cuda_ready *ready,
                                   void *stream, void **arguments);

/* BSMM_CUDA_ARGUMENTS(&a, &b, &c) is the argument array of a launch. The variables must have
 * exactly the types of the kernel's parameters. */
#define BSMM_CUDA_ARGUMENTS(...) ((void *[]){__VA_ARGS__})

/* ---- TMA ---- */

/* A tiled tensor map of up to 3 dimensions, innermost first. */
typedef struct bsmm_cuda_tensor_desc {
    int type;            /* the element type, a value CU_TENSOR_MAP_DATA_TYPE_* */
    int swizzle;         /* the swizzle of shared memory, a value CU_TENSOR_MAP_SWIZZLE_* */
    int l2_promotion;    /* the prefetch size of L2, a value CU_TENSOR_MAP_L2_PROMOTION_* */
    uint32_t rank;       /* number of dimensions of the tensor, 1 to 3 */
    uint64_t extents[3]; /* extents of the tensor in elements, at least 1 */
    uint64_t strides[2]; /* strides of dimensions 1 and 2 of the tensor in bytes, multiples of 16 */
    uint32_t box[3];     /* the elements that one copy moves in each dimension, 1 to 256 */
} bsmm_cuda_tensor_desc;

/* A tensor map that is part of a plan's state. It lacks only the address. */
typedef struct bsmm_cuda_ready_map {
    CUtensorMap map;
    bsmm_cuda_tensor_desc desc;
    /* False if the driver cannot encode a tensor map without an address. Each run then encodes the
     * map. */
    bool is_encoded;
} bsmm_cuda_ready_map;

/* Encodes a tensor map on the host, without a call to the device. Elements outside the extents are
 * read as zeros. The device's context must be current, as for all functions below. */
void bsmm_cuda_ready_map_make(const bsmm_cuda_device *device, const bsmm_cuda_tensor_desc *desc,
                              bsmm_cuda_ready_map *ready);

/* Completes a tensor map by an address in device memory, which must be aligned to 16 bytes. It may
 * be called while a stream is captured. */
bsmm_status bsmm_cuda_ready_map_at(const bsmm_cuda_device *device, const bsmm_cuda_ready_map *ready,
                                   const void *address, CUtensorMap *map);

#endif
