/* This header declares a record of each NVIDIA GPU and each simulated NVIDIA GPU, the modules that
 * are loaded on it, and launches. Any number of threads may use one record.
 *
 * Host code declares each kernel as a static const bsmm_cuda_function. It loads the kernel when a
 * plan is made (bsmm_cuda_load) and launches the kernel in a run (bsmm_cuda_launch). A run neither
 * allocates memory nor synchronizes. Every function in this file restores the caller's current
 * context. */
#ifndef BSMM_CUDA_RUNTIME_DEVICE_H
#define BSMM_CUDA_RUNTIME_DEVICE_H

#include "cuda/runtime/driver.h"
#include "gpu/modules.h"

typedef struct bsmm_cuda_device {
    const bsmm_cuda_driver *driver;
    int ordinal; /* `ordinal` is the driver's number of the device. */
    CUdevice handle;
    /* `device` is the device's name in bsmm, for example "cuda:0" or "sim:sm_100:1". */
    char device[32];
    /* `context` is the device's primary context, which is kept until the process ends. */
    CUcontext context;
    char name[96]; /* `name` holds the GPU's name, for example "NVIDIA H200". */
    /* `is_simulated` is true for a simulator, which runs PTX but no cubins. */
    bool is_simulated;
    /* `capability` is the compute capability as 10 * major + minor, for example 90. */
    int capability;
    /* `multiprocessors` is the number of streaming multiprocessors (SMs), for example 132. */
    int multiprocessors;
    uint64_t l2_bytes;     /* `l2_bytes` is the size of the L2 cache in bytes. */
    uint64_t memory_bytes; /* `memory_bytes` is the size of device memory in bytes. */
    /* `shared_bytes` is the largest dynamic shared memory of a thread block, in bytes. */
    uint32_t shared_bytes;
    /* `driver_version` is the driver's version, for example 13000 for CUDA 13.0. */
    uint32_t driver_version;
} bsmm_cuda_device;

/* Returns the record of device "cuda:ordinal". The first call for a device makes its record.
 * Returns NOT_FOUND if there is no driver or no such GPU, and DEVICE if the GPU's context cannot be
 * made. After a failure, the next call tries again. */
bsmm_status bsmm_cuda_device_get(uint32_t ordinal, const bsmm_cuda_device **device);

/* Returns the record of a simulated GPU. If bsmm_cuda_models has n models, the simulated GPU number
 * k of the model with index i, "sim:MODEL:k", has the ordinal k * n + i. Errors are as for
 * bsmm_cuda_device_get. */
bsmm_status bsmm_cuda_simulated_get(uint32_t ordinal, const bsmm_cuda_device **device);

/* Fills a device's record except for the context, because making a context takes time and device
 * memory. */
bsmm_status bsmm_cuda_device_read(uint32_t ordinal, bsmm_cuda_device *device);

/* bsmm_cuda_enter makes the device's context current for this thread, and bsmm_cuda_leave restores
 * the caller's context. Calls may nest, and every successful enter needs a leave. All functions of
 * this header enter and leave by themselves, so a caller needs these two functions only around its
 * own calls of the driver. */
bsmm_status bsmm_cuda_enter(const bsmm_cuda_device *device);
void bsmm_cuda_leave(const bsmm_cuda_device *device);

/* Enters the device's context, evaluates `call` and leaves the context. The function that contains
 * this macro then returns the status of `call`. If entering fails, `call` is not evaluated. */
#define BSMM_CUDA_RETURN_INSIDE(device, call)                                                      \
    do {                                                                                           \
        BSMM_TRY(bsmm_cuda_enter(device));                                                         \
        const bsmm_status inside = (call);                                                         \
        bsmm_cuda_leave(device);                                                                   \
        return inside;                                                                             \
    } while (0)

/* Describes a kernel, i.e. an extern "C" __global__ function of an embedded module. Define one
 * static const struct for each kernel, because the struct's address is the key of a cache. */
typedef bsmm_gpu_function bsmm_cuda_function;

/* Finds the image of a module that the device runs best: a cubin if there is one, else PTX. Sets
 * *image to NULL if the device can run none of the images. Returns UNSUPPORTED if the library has
 * no images for NVIDIA GPUs, and NOT_FOUND if it has no such module. */
bsmm_status bsmm_cuda_image_find(const bsmm_cuda_device *device, const char *module,
                                 const bsmm_gpu_image **image);

/* Writes to `why` the reason why the device can run none of a module's images (cubin or PTX), and
 * returns `why`. */
const char *bsmm_cuda_no_image(const bsmm_cuda_device *device, const char *module, char *why,
                               size_t size);

/* Loads a module and a kernel, each once per device, and raises the kernel's limit of dynamic
 * shared memory. The first call takes milliseconds. Later calls look the kernel up without a lock.
 * `handle` may be NULL. Host code calls this function in bsmm_kernel.make, so that runs need not
 * load anything. */
bsmm_status bsmm_cuda_load(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                           void **handle);

typedef struct bsmm_cuda_launch_desc {
    const bsmm_cuda_function *function;
    /* `grid` gives the extents of the grid in thread blocks, and `block` gives the extents of a
     * thread block in threads. An extent of 0 counts as 1. */
    uint32_t grid[3], block[3];
    /* `cluster` gives the extents of a cluster in thread blocks. An extent of 0 counts as 1. If all
     * extents are 0, the launch has no clusters. */
    uint32_t cluster[3];
    /* `shared_bytes` is the number of bytes of dynamic shared memory, at most
     * function->shared_bytes. */
    uint32_t shared_bytes;
    /* `overlap` is true if the kernel may start while the stream's previous kernel still runs
     * (programmatic stream serialization). The kernel must then execute griddepcontrol.wait before
     * it uses the previous kernel's results. */
    bool overlap;
    void *stream; /* `stream` is a CUstream. NULL is the legacy default stream. */
    /* `arguments` holds the arguments of the launch as cuLaunchKernelEx expects them: one pointer
     * for each kernel parameter. */
    void **arguments;
} bsmm_cuda_launch_desc;

/* Queues one launch of a kernel. An extent of 0 counts as 1, so every launch runs at least one
 * thread block. */
bsmm_status bsmm_cuda_launch(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *launch);

/* Describes a launch that a plan prepares. The kernel is already loaded. Each run provides only the
 * stream and the arguments. */
typedef struct bsmm_cuda_ready {
    void *handle; /* `handle` is the loaded kernel (a CUfunction). */
    /* `desc` is the description of the launch, without stream and arguments. */
    bsmm_cuda_launch_desc desc;
} bsmm_cuda_ready;

bsmm_status bsmm_cuda_ready_make(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *desc,
                                 bsmm_cuda_ready *ready);

/* Queues a launch that a plan has prepared. The device's context must be current. The caller makes
 * the context current once for all launches of a run, because that takes less time. */
bsmm_status bsmm_cuda_ready_launch(const bsmm_cuda_device *device, const bsmm_cuda_ready *ready,
                                   void *stream, void **arguments);

/* Makes the argument array of a launch: BSMM_CUDA_ARGUMENTS(&a, &b, &c). The variables must have
 * exactly the types of the kernel's parameters. */
#define BSMM_CUDA_ARGUMENTS(...) ((void *[]){__VA_ARGS__})

/* Describes a tiled tensor map of up to 3 dimensions. A tensor map is TMA's descriptor of a tensor.
 * The innermost dimension comes first. */
typedef struct bsmm_cuda_tensor_desc {
    int type;    /* `type` is the element type, a value CU_TENSOR_MAP_DATA_TYPE_*. */
    int swizzle; /* `swizzle` is the swizzle of shared memory, a value CU_TENSOR_MAP_SWIZZLE_*. */
    /* `l2_promotion` says how many bytes L2 fetches for each access. It is a value
     * CU_TENSOR_MAP_L2_PROMOTION_*. */
    int l2_promotion;
    uint32_t rank;       /* `rank` is the number of dimensions of the tensor, 1 to 3. */
    uint64_t extents[3]; /* `extents` holds the extents of the tensor in elements, at least 1. */
    /* `strides` holds the strides of dimensions 1 and 2 of the tensor in bytes. They are multiples
     * of 16. */
    uint64_t strides[2];
    /* `box` is the number of elements that one TMA copy moves in each dimension, 1 to 256. */
    uint32_t box[3];
} bsmm_cuda_tensor_desc;

/* Holds a tensor map that a plan prepares. Each run provides only the tensor's address. */
typedef struct bsmm_cuda_ready_map {
    CUtensorMap map;
    bsmm_cuda_tensor_desc desc;
    /* `is_encoded` is false if the driver cannot encode a tensor map before the tensor's address is
     * known. Each run then encodes the whole tensor map. */
    bool is_encoded;
} bsmm_cuda_ready_map;

/* Encodes a tensor map on the host, without access to the device. TMA reads elements outside the
 * tensor's extents as zeros. The device's context must be current for this function and for
 * bsmm_cuda_ready_map_at. */
void bsmm_cuda_ready_map_make(const bsmm_cuda_device *device, const bsmm_cuda_tensor_desc *desc,
                              bsmm_cuda_ready_map *ready);

/* Completes a tensor map by the tensor's address in device memory, which must be aligned to 16
 * bytes. The function may be called while a stream is captured. */
bsmm_status bsmm_cuda_ready_map_at(const bsmm_cuda_device *device, const bsmm_cuda_ready_map *ready,
                                   const void *address, CUtensorMap *map);

#endif
