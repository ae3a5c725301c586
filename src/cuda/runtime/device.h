/* NVIDIA devices: one record per GPU and process, the modules loaded on it, and launches. Any
 * number of threads may use one record.
 *
 * A kernel's host side is a static const bsmm_cuda_function, loaded when a plan is made
 * (bsmm_cuda_load) and launched in a run (bsmm_cuda_launch), which neither allocates nor
 * synchronizes. The caller's current context is the same before and after every function here. */
#ifndef BSMM_CUDA_RUNTIME_DEVICE_H
#define BSMM_CUDA_RUNTIME_DEVICE_H

#include "cuda/runtime/driver.h"
#include "gpu/images.h"

typedef struct bsmm_cuda_device {
    const bsmm_cuda_driver *driver;
    int ordinal;
    CUdevice handle;
    CUcontext context;       /* the primary one, retained for the life of the process */
    char name[96];           /* "NVIDIA H200" */
    int capability;          /* 10 * major + minor: 90 */
    int multiprocessors;     /* 132 */
    uint64_t l2_bytes;       /* level-2 cache */
    uint64_t memory_bytes;   /* whole memory */
    uint32_t shared_bytes;   /* largest dynamic shared memory of a block */
    uint32_t driver_version; /* 13000: CUDA 13.0 */
} bsmm_cuda_device;

/* The record of "cuda:ordinal", made by the first call for it. NOT_FOUND: no driver, no such GPU;
 * DEVICE: its context cannot be made. A failure is not kept: the next call tries again. */
bsmm_status bsmm_cuda_device_get(uint32_t ordinal, const bsmm_cuda_device **device);

/* Fills a record without a context, which is slow to make and takes memory. */
bsmm_status bsmm_cuda_device_read(uint32_t ordinal, bsmm_cuda_device *device);

/* Makes the device's context current for this thread, and the caller's again. Calls nest; every
 * enter that succeeds needs a leave. Only for driver calls that no function here wraps. */
bsmm_status bsmm_cuda_enter(const bsmm_cuda_device *device);
void bsmm_cuda_leave(const bsmm_cuda_device *device);

/* ---- functions of modules ---- */

/* A __global__ function (extern "C") of an embedded module. The record's address is the cache's
 * key: define it static const, one per function. */
typedef struct bsmm_cuda_function {
    const char *module;    /* "sm90a/gemm": file below src/cuda without .cu */
    const char *name;      /* "gemm_fp8_bf16" */
    uint32_t shared_bytes; /* most dynamic shared memory that a launch will ask for */
} bsmm_cuda_function;

/* The image of a module that the device runs best: a cubin where there is one, else PTX; NULL where
 * it runs none. UNSUPPORTED: the library has no images; NOT_FOUND: no such module. */
bsmm_status bsmm_cuda_image_find(const bsmm_cuda_device *device, const char *module,
                                 const bsmm_gpu_image **image);

/* The reason where it is NULL, written to `why`. */
const char *bsmm_cuda_no_image(const bsmm_cuda_device *device, const char *module, char *why,
                               size_t size);

/* Loads the module (once per device) and the function (once per device), and raises its dynamic
 * shared memory. Slow at first (milliseconds), afterwards a look-up without a lock. *handle may be
 * NULL. A kernel does it in bsmm_kernel.make, so that runs find all that they launch. */
bsmm_status bsmm_cuda_load(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                           CUfunction *handle);

typedef struct bsmm_cuda_launch_desc {
    const bsmm_cuda_function *function;
    uint32_t grid[3], block[3]; /* 0 counts as 1 */
    uint32_t cluster[3];        /* all 0: no cluster; else 0 counts as 1 */
    uint32_t shared_bytes;      /* dynamic; at most function->shared_bytes */
    bool overlap;     /* may start while the stream's previous kernel ends (programmatic stream
                         serialization): the kernel itself must then griddepcontrol.wait */
    void *stream;     /* CUstream; NULL: the legacy default stream */
    void **arguments; /* one pointer per parameter, as cuLaunchKernel wants them */
} bsmm_cuda_launch_desc;

/* Queues one launch. A grid with a 0 in it is not skipped but counts as 1. */
bsmm_status bsmm_cuda_launch(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *launch);

/* A launch that a plan keeps: its function is loaded, its stream and arguments come with each run.
 */
typedef struct bsmm_cuda_ready {
    CUfunction handle;
    bsmm_cuda_launch_desc desc; /* stream and arguments: NULL */
} bsmm_cuda_ready;

bsmm_status bsmm_cuda_ready_make(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *desc,
                                 bsmm_cuda_ready *ready);

/* Queues it. The device's context must be current: a run enters it once for all of its launches. */
bsmm_status bsmm_cuda_ready_launch(const bsmm_cuda_device *device, const bsmm_cuda_ready *ready,
                                   void *stream, void **arguments);

/* BSMM_CUDA_ARGUMENTS(&a, &b, &c): the argument array of a launch, from addresses of variables that
 * have exactly the parameters' types. */
#define BSMM_CUDA_ARGUMENTS(...) ((void *[]){__VA_ARGS__})

/* ---- TMA ---- */

/* A tiled tensor map of up to 3 dimensions, innermost first. */
typedef struct bsmm_cuda_tensor_desc {
    int type;            /* CU_TENSOR_MAP_DATA_TYPE_... */
    int swizzle;         /* CU_TENSOR_MAP_SWIZZLE_... */
    int l2_promotion;    /* CU_TENSOR_MAP_L2_PROMOTION_... */
    uint32_t rank;       /* 1 to 3 */
    uint64_t extents[3]; /* in elements; 1 or more */
    uint64_t strides[2]; /* bytes from one index to the next of dimension 1, 2; multiples of 16 */
    uint32_t box[3];     /* elements per copy; 1 to 256 */
} bsmm_cuda_tensor_desc;

/* A map that a plan keeps: all of it but its address. */
typedef struct bsmm_cuda_ready_map {
    CUtensorMap map;
    bsmm_cuda_tensor_desc desc;
    bool is_encoded; /* else the driver wants an address first: each run encodes the map */
} bsmm_cuda_ready_map;

/* Encodes a map on the host; no device call. Reads outside the extents give zeros. The device's
 * context must be current, as for all calls below. */
void bsmm_cuda_ready_map_make(const bsmm_cuda_device *device, const bsmm_cuda_tensor_desc *desc,
                              bsmm_cuda_ready_map *ready);

/* The map at an address of device memory, aligned to 16 bytes; capturable. */
bsmm_status bsmm_cuda_ready_map_at(const bsmm_cuda_device *device, const bsmm_cuda_ready_map *ready,
                                   const void *address, CUtensorMap *map);

#endif
