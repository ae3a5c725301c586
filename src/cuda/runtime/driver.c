/* Opens libcuda.so.1 and converts its errors to statuses and messages. */
#include "cuda/runtime/driver.h"

#include "gpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static bsmm_cuda_driver library;
/* The result of opening the driver. If it is not BSMM_OK, `reason` has the error message. */
static bsmm_status outcome;
static char reason[256];

static const bsmm_gpu_entry entries[] = {
#define ENTRY(name, symbol, parameters) {#symbol, offsetof(bsmm_cuda_driver, name)},
#include "cuda/runtime/driver.def"
#undef ENTRY
};

/* ---- errors ---- */

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

bsmm_status bsmm_cuda_fail(CUresult result, const char *call) {
    const char *name = NULL, *text = NULL;
    if (library.cuGetErrorName) library.cuGetErrorName(result, &name);
    if (library.cuGetErrorString) library.cuGetErrorString(result, &text);
    return bsmm_gpu_fail(meanings, BSMM_COUNT(meanings), result, call, name, text);
}

/* ---- opening the driver ---- */

static void refuse(bsmm_status status, const char *text) {
    outcome = status;
    snprintf(reason, sizeof reason, "%s", text);
}

static bool take_entries(void *handle) {
    char text[160];
    const char *missing = bsmm_gpu_take_entries(handle, entries, BSMM_COUNT(entries), &library);
    if (!missing) return true;
    snprintf(text, sizeof text,
             "libcuda.so.1 has no %s; the driver is too old, 525 (CUDA 12.0) or newer is needed",
             missing);
    refuse(BSMM_E_UNSUPPORTED, text);
    return false;
}

static void open_driver(void) {
    /* The library is never closed. The driver starts threads of its own, and their code must stay
     * mapped. */
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        char text[256];
        snprintf(text, sizeof text, "no NVIDIA driver here (%s); install it to use cuda devices",
                 dlerror());
        refuse(BSMM_E_NOT_FOUND, text);
        return;
    }
    if (!take_entries(handle)) return;
    CUresult result = library.cuInit(0);
    if (result == CUDA_SUCCESS) return;
    outcome = bsmm_cuda_fail(result, "cuInit");
    snprintf(reason, sizeof reason, "%s", bsmm_error_message());
}

bsmm_status bsmm_cuda_driver_get(const bsmm_cuda_driver **driver) {
    *driver = NULL;
    pthread_once(&opened, open_driver);
    if (outcome != BSMM_OK) return bsmm_fail(outcome, "%s", reason);
    *driver = &library;
    return BSMM_OK;
}
