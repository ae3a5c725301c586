/* Opens libamdhip64.so, either AMD's driver or the simulator, and translates its error codes to
 * messages. */
#include "amdgpu/runtime/driver.h"

#include "gpu/driver.h"

#include <dlfcn.h>

static const bsmm_gpu_entry entries[] = {
#define ENTRY(name, parameters) {#name, offsetof(bsmm_hip_driver, name)},
#include "amdgpu/runtime/driver.def"
#undef ENTRY
    {"hipGetErrorName", offsetof(bsmm_hip_driver, hipGetErrorName)},
    {"hipGetErrorString", offsetof(bsmm_hip_driver, hipGetErrorString)},
};

const char *const bsmm_hip_models[] = {"gfx942", "gfx950", NULL};
const bsmm_gpu_simulator bsmm_hip_simulator = {"libamdhip64.so", "AMD GPUs", bsmm_hip_models};

static const bsmm_gpu_meaning meanings[] = {
    {hipErrorOutOfMemory, BSMM_E_MEMORY, "the device has no memory left; free some"},
    {hipErrorInsufficientDriver, BSMM_E_UNSUPPORTED,
     "the kernel driver (amdgpu) is older than libamdhip64.so; update it"},
    {hipErrorNoDevice, BSMM_E_NOT_FOUND,
     "the driver sees no AMD GPU; check rocminfo, HIP_VISIBLE_DEVICES and the rights to /dev/kfd"},
    {hipErrorInvalidDevice, BSMM_E_NOT_FOUND, "there is no such GPU; rocminfo lists them"},
    {hipErrorNoBinaryForGpu, BSMM_E_UNSUPPORTED,
     "the kernel was not compiled for this GPU's architecture"},
    {hipErrorIllegalAddress, BSMM_E_DEVICE,
     "an earlier kernel of this process read or wrote outside its memory; restart the process"},
    {hipErrorStreamCaptureUnsupported, BSMM_E_INVALID,
     "the stream is being captured, and this call cannot be"},
};

bsmm_status bsmm_hip_fail(const bsmm_hip_driver *driver, hipError_t error, const char *call) {
    return bsmm_gpu_fail(meanings, BSMM_COUNT(meanings), error, call,
                         driver->hipGetErrorName(error), driver->hipGetErrorString(error));
}

static bsmm_status take_entries(void *handle, bsmm_hip_driver *to) {
    const char *missing = bsmm_gpu_take_entries(handle, entries, BSMM_COUNT(entries), to);
    if (!missing) return BSMM_OK;
    return bsmm_fail(BSMM_E_UNSUPPORTED, "libamdhip64.so has no %s; ROCm 5.7 or newer is needed",
                     missing);
}

static bsmm_status start(void *handle, bsmm_hip_driver *to) {
    BSMM_TRY(take_entries(handle, to));
    BSMM_HIP_TRY(to, hipInit, 0);
    BSMM_HIP_TRY(to, hipRuntimeGetVersion, &to->version);
    to->device_type = to->version >= 60000000 ? hipMemoryTypeDevice : hipMemoryTypeDevice5;
    return BSMM_OK;
}

static bsmm_status open_driver(void *library) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    void *handle = NULL;
    /* The library is never closed, because the driver starts threads of its own, which would crash
     * without the library's code. */
    for (size_t i = 0; i < BSMM_COUNT(names) && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (handle) return start(handle, library);
    return bsmm_fail(
        BSMM_E_NOT_FOUND,
        "no AMD driver here (%s, nor .6 and .7); install ROCm's hip-runtime-amd to use "
        "hip devices",
        dlerror());
}

static bsmm_status open_simulator(void *library) {
    bsmm_hip_driver *to = library;
    void *handle;
    BSMM_TRY(bsmm_gpu_simulator_open(&bsmm_hip_simulator, &handle));
    to->bsmm_sim_device = bsmm_gpu_simulator_device(handle);
    return start(handle, to);
}

bsmm_status bsmm_hip_driver_get(const bsmm_hip_driver **driver) {
    static bsmm_gpu_opened opened = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static bsmm_hip_driver amd;
    *driver = NULL;
    BSMM_TRY(bsmm_gpu_open_once(&opened, open_driver, &amd));
    *driver = &amd;
    return BSMM_OK;
}

bsmm_status bsmm_hip_simulator_get(const bsmm_hip_driver **driver) {
    static bsmm_gpu_opened opened = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static bsmm_hip_driver simulator;
    *driver = NULL;
    BSMM_TRY(bsmm_gpu_open_once(&opened, open_simulator, &simulator));
    *driver = &simulator;
    return BSMM_OK;
}
