/* The functions in this file open libcuda.so.1, which is NVIDIA's driver, or the simulator. They
 * also convert errors of the driver to statuses and messages. */
#include "cuda/runtime/driver.h"

#include "gpu/driver.h"

#include <dlfcn.h>

const char *const bsmm_cuda_models[] = {"sm_80", "sm_90a", "sm_100", "sm_120", NULL};
const bsmm_gpu_simulator bsmm_cuda_simulator = {"libcuda.so.1", "NVIDIA GPUs", bsmm_cuda_models};

static const bsmm_gpu_entry entries[] = {
#define ENTRY(name, symbol, parameters) {#symbol, offsetof(bsmm_cuda_driver, name)},
#include "cuda/runtime/driver.def"
#undef ENTRY
};

static const bsmm_gpu_meaning meanings[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, BSMM_E_MEMORY, "the device has no memory left; free some"},
    {CUDA_ERROR_NOT_INITIALIZED, BSMM_E_DEVICE,
     "this process was forked after the driver's first use; use cuda devices in one of the two"},
    {CUDA_ERROR_STUB_LIBRARY, BSMM_E_NOT_FOUND,
     "libcuda.so.1 is the toolkit's stub; install the NVIDIA driver or take stubs/ off the path"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, BSMM_E_DEVICE,
     "another process holds the device exclusively; see nvidia-smi -c"},
    {CUDA_ERROR_NO_DEVICE, BSMM_E_NOT_FOUND,
     "the driver sees no NVIDIA GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {CUDA_ERROR_INVALID_DEVICE, BSMM_E_NOT_FOUND, "there is no such GPU; nvidia-smi -L lists them"},
    {CUDA_ERROR_INVALID_IMAGE, BSMM_E_UNSUPPORTED,
     "the driver is older than the toolkit that compiled the kernels; update it"},
    {CUDA_ERROR_INVALID_CONTEXT, BSMM_E_DEVICE,
     "the stream or the device's primary context was destroyed"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, BSMM_E_UNSUPPORTED,
     "the kernel was not compiled for this GPU's architecture"},
    {CUDA_ERROR_INVALID_PTX, BSMM_E_UNSUPPORTED,
     "this GPU or its driver does not take the kernel's PTX; update the driver"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, BSMM_E_UNSUPPORTED,
     "libnvidia-ptxjitcompiler.so.1 is missing; install the whole driver"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, BSMM_E_UNSUPPORTED,
     "the driver is older than the toolkit that compiled the kernels; update it"},
    {CUDA_ERROR_INVALID_HANDLE, BSMM_E_INVALID, "the stream is none of this device"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, BSMM_E_DEVICE,
     "an earlier kernel of this process read or wrote outside its memory; its context is lost"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, BSMM_E_DEVICE,
     "an earlier kernel of this process used a misaligned address; its context is lost"},
    {CUDA_ERROR_LAUNCH_FAILED, BSMM_E_DEVICE,
     "an earlier kernel of this process failed; its context is lost"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, BSMM_E_DEVICE,
     "libcuda.so.1 and the kernel module differ in version; reboot or reinstall the driver"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, BSMM_E_INVALID,
     "the stream is being captured, and this call cannot be"},
};

bsmm_status bsmm_cuda_fail(const bsmm_cuda_driver *driver, CUresult result, const char *call) {
    const char *name = NULL, *text = NULL;
    if (driver) {
        driver->cuGetErrorName(result, &name);
        driver->cuGetErrorString(result, &text);
    }
    return bsmm_gpu_fail(meanings, BSMM_COUNT(meanings), result, call, name, text);
}

/* Fills *to with the driver's functions, and initializes the driver. */
static bsmm_status start(void *handle, bsmm_cuda_driver *to) {
    const char *missing = bsmm_gpu_take_entries(handle, entries, BSMM_COUNT(entries), to);
    if (missing)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "libcuda.so.1 has no %s; the driver is too old, 525 (CUDA 12.0) or newer "
                         "is needed",
                         missing);
    to->bsmm_sim_device = bsmm_gpu_simulator_device(handle);
    BSMM_CUDA_TRY(to, cuInit, 0);
    return BSMM_OK;
}

static bsmm_status open_driver(void *library) {
    /* The library is never closed, because the driver starts threads of its own, which would crash
     * without the library's code. */
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle) return start(handle, library);
    return bsmm_fail(BSMM_E_NOT_FOUND, "no NVIDIA driver here (%s); install it to use cuda devices",
                     dlerror());
}

static bsmm_status open_simulator(void *library) {
    void *handle;
    BSMM_TRY(bsmm_gpu_simulator_open(&bsmm_cuda_simulator, &handle));
    return start(handle, library);
}

bsmm_status bsmm_cuda_driver_get(const bsmm_cuda_driver **driver) {
    static bsmm_gpu_opened opened = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static bsmm_cuda_driver nvidia;
    *driver = NULL;
    BSMM_TRY(bsmm_gpu_open_once(&opened, open_driver, &nvidia));
    *driver = &nvidia;
    return BSMM_OK;
}

bsmm_status bsmm_cuda_simulator_get(const bsmm_cuda_driver **driver) {
    static bsmm_gpu_opened opened = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static bsmm_cuda_driver simulator;
    *driver = NULL;
    BSMM_TRY(bsmm_gpu_open_once(&opened, open_simulator, &simulator));
    *driver = &simulator;
    return BSMM_OK;
}
