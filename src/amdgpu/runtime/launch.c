/* Launches kernels, and loads the modules and functions that launches need. */
#include "amdgpu/runtime/device.h"

static bsmm_status find_image(const void *device, const char *module,
                              const bsmm_gpu_image **image) {
    return bsmm_hip_image_find(device, module, image);
}

static const char *no_image(const void *device, const char *module, char *why, size_t size) {
    return bsmm_hip_no_image(device, module, why, size);
}

/* begin() lets this thread load a module even while it captures a stream into a graph. Loading may
 * allocate memory, which HIP forbids during a capture unless the capture mode is relaxed. The
 * relaxed mode is harmless here, because loading does not use the captured stream. The previous
 * mode and the previous device, two small numbers, are packed into *before. */
enum { MODES = 4 };

static bsmm_status begin(const void *device, int *before) {
    const bsmm_hip_device *d = device;
    int mode = hipStreamCaptureModeRelaxed;
    BSMM_TRY(bsmm_hip_enter(d, before));
    d->driver->hipThreadExchangeStreamCaptureMode(&mode);
    *before = *before * MODES + mode;
    return BSMM_OK;
}

static void end(const void *device, int before) {
    const bsmm_hip_device *d = device;
    int mode = before % MODES;
    d->driver->hipThreadExchangeStreamCaptureMode(&mode);
    bsmm_hip_leave(d, before / MODES);
}

static bsmm_status load(const void *device, const void *bytes, void **module) {
    const bsmm_hip_device *d = device;
    hipModule_t handle = NULL;
    BSMM_HIP_TRY(d->driver, hipModuleLoadData, &handle, bytes);
    *module = handle;
    return BSMM_OK;
}

static bsmm_status find(const void *device, void *module, const bsmm_gpu_function *function,
                        void **handle) {
    const bsmm_hip_device *d = device;
    hipFunction_t found = NULL;
    const hipError_t error = d->driver->hipModuleGetFunction(&found, module, function->name);
    if (error != hipSuccess)
        return bsmm_fail_within(bsmm_hip_fail(d->driver, error, "hipModuleGetFunction"),
                                function->name);
    if (function->shared_bytes > d->lds_bytes)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "%s: needs %u bytes of LDS; %s has %u per workgroup",
                         function->name, function->shared_bytes, d->name, d->lds_bytes);
    *handle = found;
    return BSMM_OK;
}

bsmm_status bsmm_hip_load(const bsmm_hip_device *device, const bsmm_hip_function *function,
                          void **handle) {
    static const bsmm_gpu_loader loader = {find_image, no_image, begin, end, load, find};
    return bsmm_gpu_function_load(&loader, device, function, handle);
}

bsmm_status bsmm_hip_launch(const bsmm_hip_device *device, const bsmm_hip_launch_desc *l) {
    const uint32_t *g = l->grid, *b = l->block;
    void *handle = NULL;
    int before;
    BSMM_TRY(bsmm_hip_load(device, l->function, &handle));
    BSMM_TRY(bsmm_hip_enter(device, &before));
    const hipError_t error = device->driver->hipModuleLaunchKernel(
        handle, bsmm_gpu_extent(g[0]), bsmm_gpu_extent(g[1]), bsmm_gpu_extent(g[2]),
        bsmm_gpu_extent(b[0]), bsmm_gpu_extent(b[1]), bsmm_gpu_extent(b[2]), l->shared_bytes,
        l->stream, l->arguments, NULL);
    bsmm_hip_leave(device, before);
    if (error == hipSuccess) return BSMM_OK;
    return bsmm_fail_within(bsmm_hip_fail(device->driver, error, "hipModuleLaunchKernel"),
                            l->function->name);
}
