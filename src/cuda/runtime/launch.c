/* The functions in this file load modules and kernels (once per device), launch kernels, and make
 * TMA tensor maps. */
#include "cuda/runtime/device.h"

static bsmm_status find_image(const void *device, const char *module,
                              const bsmm_gpu_image **image) {
    return bsmm_cuda_image_find(device, module, image);
}

static const char *no_image(const void *device, const char *module, char *why, size_t size) {
    return bsmm_cuda_no_image(device, module, why, size);
}

/* Allows this thread to load a module although it may be capturing a stream into a graph. Loading
 * may allocate memory, which the driver forbids during a capture unless the thread's capture mode
 * is "relaxed". This function sets that mode and stores the previous one in *before, and `end`
 * restores it. The change does not disturb the capture. */
static bsmm_status begin(const void *device, int *before) {
    const bsmm_cuda_device *d = device;
    BSMM_TRY(bsmm_cuda_enter(d));
    *before = CU_STREAM_CAPTURE_MODE_RELAXED;
    d->driver->cuThreadExchangeStreamCaptureMode(before);
    return BSMM_OK;
}

static void end(const void *device, int before) {
    const bsmm_cuda_device *d = device;
    d->driver->cuThreadExchangeStreamCaptureMode(&before);
    bsmm_cuda_leave(d);
}

static bsmm_status load(const void *device, const void *bytes, void **module) {
    const bsmm_cuda_device *d = device;
    CUmodule handle = NULL;
    BSMM_CUDA_TRY(d->driver, cuModuleLoadData, &handle, bytes);
    *module = handle;
    return BSMM_OK;
}

/* Raises the driver's limit of dynamic shared memory for a kernel, if the kernel needs more than
 * the default. */
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

static bsmm_status find(const void *device, void *module, const bsmm_gpu_function *function,
                        void **handle) {
    const bsmm_cuda_device *d = device;
    CUfunction found = NULL;
    const CUresult result = d->driver->cuModuleGetFunction(&found, module, function->name);
    if (result != CUDA_SUCCESS)
        return bsmm_fail_within(bsmm_cuda_fail(d->driver, result, "cuModuleGetFunction"),
                                function->name);
    *handle = found;
    return raise_limits(d, function, found);
}

bsmm_status bsmm_cuda_load(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                           void **handle) {
    static const bsmm_gpu_loader loader = {find_image, no_image, begin, end, load, find};
    return bsmm_gpu_function_load(&loader, device, function, handle);
}

static unsigned int take_attributes(const bsmm_cuda_launch_desc *l, CUlaunchAttribute *to) {
    unsigned int count = 0;
    if (l->cluster[0] || l->cluster[1] || l->cluster[2]) {
        CUlaunchAttribute *cluster = &to[count++];
        cluster->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        cluster->value.clusterDim.x = bsmm_gpu_extent(l->cluster[0]);
        cluster->value.clusterDim.y = bsmm_gpu_extent(l->cluster[1]);
        cluster->value.clusterDim.z = bsmm_gpu_extent(l->cluster[2]);
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
        .gridDimX = bsmm_gpu_extent(l->grid[0]),
        .gridDimY = bsmm_gpu_extent(l->grid[1]),
        .gridDimZ = bsmm_gpu_extent(l->grid[2]),
        .blockDimX = bsmm_gpu_extent(l->block[0]),
        .blockDimY = bsmm_gpu_extent(l->block[1]),
        .blockDimZ = bsmm_gpu_extent(l->block[2]),
        .sharedMemBytes = l->shared_bytes,
        .hStream = stream,
        .attrs = attributes,
        .numAttrs = take_attributes(l, attributes),
    };
    CUresult result = device->driver->cuLaunchKernelEx(&config, handle, arguments, NULL);
    if (result == CUDA_SUCCESS) return BSMM_OK;
    return bsmm_fail_within(bsmm_cuda_fail(device->driver, result, "cuLaunchKernelEx"),
                            l->function->name);
}

bsmm_status bsmm_cuda_launch(const bsmm_cuda_device *device, const bsmm_cuda_launch_desc *l) {
    void *handle = NULL;
    BSMM_TRY(bsmm_cuda_load(device, l->function, &handle));
    BSMM_CUDA_RETURN_INSIDE(device, launch(device, handle, l, l->stream, l->arguments));
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

/* Casts const away. The driver's functions declare the address as writable, but they store only the
 * address itself. */
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
