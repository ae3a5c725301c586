/* Loads modules and functions, once per device, and launches kernels. */
#include "cuda/runtime/device.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- the cache of loaded functions: lists that only grow, read without a lock ---- */

typedef struct loaded_module {
    const bsmm_gpu_image *image;
    const bsmm_cuda_device *device;
    CUmodule handle;
    struct loaded_module *next;
} loaded_module;

typedef struct loaded_function {
    const bsmm_cuda_function *function;
    const bsmm_cuda_device *device;
    CUfunction handle;
    struct loaded_function *next;
} loaded_function;

enum { BUCKETS = 64 };
static _Atomic(loaded_function *) functions[BUCKETS];
/* The list of loaded modules. Code must hold the lock to access it. */
static loaded_module *modules;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static size_t bucket_of(const bsmm_cuda_device *device, const bsmm_cuda_function *function) {
    uintptr_t mixed = (uintptr_t)function / sizeof *function + (uintptr_t)device->ordinal;
    return mixed % BUCKETS;
}

static CUfunction find_function(const bsmm_cuda_device *device,
                                const bsmm_cuda_function *function) {
    loaded_function *f = functions[bucket_of(device, function)];
    while (f && (f->function != function || f->device != device))
        f = f->next;
    return f ? f->handle : NULL;
}

/* ---- loading, with the lock held and the device's context current ---- */

static bsmm_status load_image(const bsmm_cuda_device *device, const bsmm_gpu_image *image,
                              CUmodule *handle) {
    bsmm_gpu_unpacked unpacked;
    BSMM_TRY(bsmm_gpu_image_unpack(image, &unpacked));
    const CUresult result = device->driver->cuModuleLoadData(handle, unpacked.bytes);
    free(unpacked.memory); /* The driver has made its own copy of the image. */
    if (result == CUDA_SUCCESS) return BSMM_OK;
    return bsmm_fail_within(bsmm_cuda_fail(result, "cuModuleLoadData"), image->name);
}

static bsmm_status load_module(const bsmm_cuda_device *device, const bsmm_gpu_image *image,
                               CUmodule *handle) {
    for (loaded_module *m = modules; m; m = m->next)
        if (m->image == image && m->device == device) {
            *handle = m->handle;
            return BSMM_OK;
        }
    loaded_module *m = malloc(sizeof *m);
    if (!m) return bsmm_fail(BSMM_E_MEMORY, "module: out of memory: %zu bytes", sizeof *m);
    const bsmm_status status = load_image(device, image, handle);
    if (status != BSMM_OK) {
        free(m);
        return status;
    }
    *m = (loaded_module){image, device, *handle, modules};
    modules = m;
    return BSMM_OK;
}

/* Raises the limit of dynamic shared memory, if the function needs it. */
static bsmm_status raise_limits(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                                CUfunction handle) {
    if (function->shared_bytes > device->shared_bytes)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "%s: needs %u bytes of shared memory; %s has %u per block", function->name,
                         function->shared_bytes, device->name, device->shared_bytes);
    if (function->shared_bytes)
        BSMM_CUDA_TRY(device->driver, cuFuncSetAttribute, handle,
                      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)function->shared_bytes);
    return BSMM_OK;
}

static bsmm_status make_function(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                                 CUfunction *handle) {
    const bsmm_gpu_image *image = NULL;
    CUmodule module = NULL;
    char why[200];
    BSMM_TRY(bsmm_cuda_image_find(device, function->module, &image));
    if (!image)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "%s: %s", function->module,
                         bsmm_cuda_no_image(device, function->module, why, sizeof why));
    BSMM_TRY(load_module(device, image, &module));
    CUresult result = device->driver->cuModuleGetFunction(handle, module, function->name);
    if (result != CUDA_SUCCESS)
        return bsmm_fail_within(bsmm_cuda_fail(result, "cuModuleGetFunction"), function->name);
    return raise_limits(device, function, *handle);
}

static bsmm_status keep(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                        CUfunction handle) {
    loaded_function *f = malloc(sizeof *f);
    if (!f) return bsmm_fail(BSMM_E_MEMORY, "function: out of memory: %zu bytes", sizeof *f);
    size_t bucket = bucket_of(device, function);
    *f = (loaded_function){function, device, handle, functions[bucket]};
    functions[bucket] = f;
    return BSMM_OK;
}

static bsmm_status load_locked(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                               CUfunction *handle) {
    *handle = find_function(device, function);
    if (*handle) return BSMM_OK;
    BSMM_TRY(bsmm_cuda_enter(device));
    /* Loading may allocate memory. That would be forbidden if this thread is capturing a stream,
     * although it does not disturb the capture, so allow it for the time of loading. */
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    device->driver->cuThreadExchangeStreamCaptureMode(&mode);
    bsmm_status status = make_function(device, function, handle);
    device->driver->cuThreadExchangeStreamCaptureMode(&mode);
    bsmm_cuda_leave(device);
    return status == BSMM_OK ? keep(device, function, *handle) : status;
}

bsmm_status bsmm_cuda_load(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                           CUfunction *handle) {
    CUfunction found = find_function(device, function);
    bsmm_status status = BSMM_OK;
    if (!found) {
        pthread_mutex_lock(&loading);
        status = load_locked(device, function, &found);
        pthread_mutex_unlock(&loading);
    }
    if (handle) *handle = found;
    return status;
}

/* ---- launches ---- */

static uint32_t at_least_1(uint32_t extent) {
    return extent ? extent : 1;
}

static unsigned int take_attributes(const bsmm_cuda_launch_desc *l, CUlaunchAttribute *to) {
    unsigned int count = 0;
    if (l->cluster[0] || l->cluster[1] || l->cluster[2]) {
        CUlaunchAttribute *cluster = &to[count++];
        cluster->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        cluster->value.clusterDim.x = at_least_1(l->cluster[0]);
        cluster->value.clusterDim.y = at_least_1(l->cluster[1]);
        cluster->value.clusterDim.z = at_least_1(l->cluster[2]);
    }
    if (l->overlap) {
        CUlaunchAttribute *overlap = &to[count++];
        overlap->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        overlap->value.programmaticStreamSerializationAllowed = 1;
    }
    return count;
}

/* Launches a kernel. The device's context must be current. */
static bsmm_status launch(const bsmm_cuda_device *device, CUfunction handle,
                          const bsmm_cuda_launch_desc *l, void *stream, void **arguments) {
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {
        .gridDimX = at_least_1(l->grid[0]),
        .gridDimY = at_least_1(l->grid[1]),
        .gridDimZ = at_least_1(l->grid[2]),
        .blockDimX = at_least_1(l->block[0]),
        .blockDimY = at_least_1(l->block[1]),
        .blockDimZ = at_least_1(l->block[2]),
        .sharedMemBytes = l->shared_bytes,
        .hStream = stream,
        .attrs = attributes,
        .numAttrs = take_attributes(l, attributes),
    };
    CUresult result = device->driver->cuLaunchKernelEx(&config, handle, arguments, NULL);
    if (result == CUDA_SUCCESS) return BSMM_OK;
    return bsmm_fail_within(bsmm_cuda_fail(result, "cuLaunchKernelEx"), l->function->name);
}

bsmm_status bsmm_cuda_launch(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *l) {
    CUfunction handle = NULL;
    BSMM_TRY(bsmm_cuda_load(device, l->function, &handle));
    BSMM_TRY(bsmm_cuda_enter(device));
    bsmm_status status = launch(device, handle, l, l->stream, l->arguments);
    bsmm_cuda_leave(device);
    return status;
}

bsmm_status bsmm_cuda_ready_make(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *desc,
                                 bsmm_cuda_ready *ready) {
    *ready = (bsmm_cuda_ready){.desc = *desc};
    ready->desc.stream = NULL;
    ready->desc.arguments = NULL;
    return bsmm_cuda_load(device, desc->function, &ready->handle);
}

bsmm_status bsmm_cuda_ready_launch(const bsmm_cuda_device *device, const bsmm_cuda_ready *ready,
                                   void *stream, void **arguments) {
    return launch(device, ready->handle, &ready->desc, stream, arguments);
}

/* ---- tensor maps ---- */

/* Casts away const. The driver declares addresses as writable, but only stores the number. */
static void *writable(const void *address) {
    union {
        const void *given;
        void *taken;
    } both = {.given = address};
    return both.taken;
}

static CUresult encode(const bsmm_cuda_device *device, const bsmm_cuda_tensor_desc *desc,
                       const void *address, CUtensorMap *map) {
    static const uint32_t dense[3] = {1, 1, 1};
    return device->driver->cuTensorMapEncodeTiled(
        map, desc->type, desc->rank, writable(address), desc->extents, desc->strides, desc->box,
        dense, CU_TENSOR_MAP_INTERLEAVE_NONE, desc->swizzle, desc->l2_promotion,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static bsmm_status fail_map(CUresult result, const bsmm_cuda_tensor_desc *desc,
                            const void *address) {
    return bsmm_fail(
        BSMM_E_DEVICE,
        "cuTensorMapEncodeTiled: error %d for rank %u, extents %llu %llu, stride %llu, "
        "box %u %u, address %p",
        result, desc->rank, (unsigned long long)desc->extents[0],
        (unsigned long long)desc->extents[1], (unsigned long long)desc->strides[0], desc->box[0],
        desc->box[1], address);
}

void bsmm_cuda_ready_map_make(const bsmm_cuda_device *device, const bsmm_cuda_tensor_desc *desc,
                              bsmm_cuda_ready_map *ready) {
    *ready = (bsmm_cuda_ready_map){.desc = *desc};
    ready->is_encoded = encode(device, desc, NULL, &ready->map) == CUDA_SUCCESS;
}

bsmm_status bsmm_cuda_ready_map_at(const bsmm_cuda_device *device, const bsmm_cuda_ready_map *ready,
                                   const void *address, CUtensorMap *map) {
    *map = ready->map;
    CUresult result = ready->is_encoded
                          ? device->driver->cuTensorMapReplaceAddress(map, writable(address))
                          : encode(device, &ready->desc, address, map);
    return result == CUDA_SUCCESS ? BSMM_OK : fail_map(result, &ready->desc, address);
}
