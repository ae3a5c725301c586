/* Opens libamdhip64.so, either AMD's driver or the simulator, and translates its error codes to
 * messages. */
#include "amdgpu/runtime/driver.h"

#include "amdgpu/runtime/simulator.h"
#include "base/cpu.h"
#include "gpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const bsmm_gpu_entry entries[] = {
#define ENTRY(name, parameters) {#name, offsetof(bsmm_hip_driver, name)},
#include "amdgpu/runtime/driver.def"
#undef ENTRY
    {"hipGetErrorName", offsetof(bsmm_hip_driver, hipGetErrorName)},
    {"hipGetErrorString", offsetof(bsmm_hip_driver, hipGetErrorString)},
};

static const bsmm_gpu_entry simulator_entries[] = {
    {"bsmm_sim_device", offsetof(bsmm_hip_driver, bsmm_sim_device)},
};

/* A library that is opened at most once, with the outcome. `reason` is the message of a failure. */
typedef struct opened {
    pthread_mutex_t lock;
    bool tried;
    bsmm_status outcome;
    char reason[320];
    bsmm_hip_driver library;
} opened;

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

static bsmm_status take_entries(void *handle, const bsmm_gpu_entry *rows, size_t count,
                                bsmm_hip_driver *to) {
    const char *missing = bsmm_gpu_take_entries(handle, rows, count, to);
    if (!missing) return BSMM_OK;
    return bsmm_fail(BSMM_E_UNSUPPORTED, "libamdhip64.so has no %s; ROCm 5.7 or newer is needed",
                     missing);
}

static bsmm_status start(void *handle, bsmm_hip_driver *to) {
    BSMM_TRY(take_entries(handle, entries, BSMM_COUNT(entries), to));
    BSMM_HIP_TRY(to, hipInit, 0);
    BSMM_HIP_TRY(to, hipRuntimeGetVersion, &to->version);
    to->device_type = to->version >= 60000000 ? hipMemoryTypeDevice : hipMemoryTypeDevice5;
    return BSMM_OK;
}

static bsmm_status open_driver(bsmm_hip_driver *to) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    void *handle = NULL;
    /* The library is never closed. The driver starts threads of its own, which would crash without
     * their code. */
    for (size_t i = 0; i < BSMM_COUNT(names) && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (handle) return start(handle, to);
    return bsmm_fail(
        BSMM_E_NOT_FOUND,
        "no AMD driver here (%s, nor .6 and .7); install ROCm's hip-runtime-amd to use "
        "hip devices",
        dlerror());
}

/* Returns true if the simulator can run on this processor. On x86-64 it is compiled for AVX2 and
 * would crash the process without AVX2. */
static bool may_simulate(void) {
#if defined(__x86_64__)
    return bsmm_cpu_features() & BSMM_CPU_AVX2;
#else
    return true;
#endif
}

static bsmm_status open_simulator(bsmm_hip_driver *to) {
    if (!may_simulate())
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "the simulators of AMD GPUs need a processor with AVX2 and FMA");
    void *handle = bsmm_hip_simulator_open();
    if (!handle)
        return bsmm_fail(BSMM_E_NOT_FOUND,
                         "no simulator of AMD GPUs here: sim/libamdhip64.so is neither beside the "
                         "library nor on LD_LIBRARY_PATH; build bsmm with it (docs/SIMULATOR.md)");
    BSMM_TRY(take_entries(handle, simulator_entries, BSMM_COUNT(simulator_entries), to));
    return start(handle, to);
}

static bsmm_status open_once(opened *o, bsmm_status (*open)(bsmm_hip_driver *),
                             const bsmm_hip_driver **driver) {
    *driver = NULL;
    pthread_mutex_lock(&o->lock);
    if (!o->tried) {
        o->outcome = open(&o->library);
        if (o->outcome != BSMM_OK)
            snprintf(o->reason, sizeof o->reason, "%s", bsmm_error_message());
        o->tried = true;
    }
    pthread_mutex_unlock(&o->lock);
    if (o->outcome != BSMM_OK) return bsmm_fail(o->outcome, "%s", o->reason);
    *driver = &o->library;
    return BSMM_OK;
}

bsmm_status bsmm_hip_driver_get(const bsmm_hip_driver **driver) {
    static opened amd = {.lock = PTHREAD_MUTEX_INITIALIZER};
    return open_once(&amd, open_driver, driver);
}

bsmm_status bsmm_hip_simulator_get(const bsmm_hip_driver **driver) {
    static opened simulator = {.lock = PTHREAD_MUTEX_INITIALIZER};
    return open_once(&simulator, open_simulator, driver);
}
