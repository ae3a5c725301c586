/* The records of NVIDIA devices, one for each GPU of the process. */
#include "cuda/runtime/device.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST_DEVICES = 64 };

/* A record is complete before its pointer is published, and never changes afterwards, so reading it
 * needs no lock. */
static _Atomic(bsmm_cuda_device *) records[MOST_DEVICES];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static bsmm_status read_attributes(bsmm_cuda_device *d) {
    int major, minor, l2, shared;
    const struct {
        int attribute, *to;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &d->multiprocessors},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared},
    };
    for (size_t i = 0; i < BSMM_COUNT(wanted); i++)
        BSMM_CUDA_TRY(d->driver, cuDeviceGetAttribute, wanted[i].to, wanted[i].attribute,
                      d->handle);
    d->capability = 10 * major + minor;
    d->l2_bytes = (uint64_t)l2;
    d->shared_bytes = (uint32_t)shared;
    return BSMM_OK;
}

static bsmm_status check_ordinal(const bsmm_cuda_driver *driver, uint32_t ordinal) {
    int count = 0;
    BSMM_CUDA_TRY(driver, cuDeviceGetCount, &count);
    if (ordinal < (uint32_t)count && ordinal < MOST_DEVICES) return BSMM_OK;
    return bsmm_fail(BSMM_E_NOT_FOUND,
                     "device: value is \"cuda:%u\"; this process sees %d NVIDIA GPU%s (nvidia-smi "
                     "-L, CUDA_VISIBLE_DEVICES)",
                     ordinal, count, count == 1 ? "" : "s");
}

bsmm_status bsmm_cuda_device_read(uint32_t ordinal, bsmm_cuda_device *d) {
    *d = (bsmm_cuda_device){.ordinal = (int)ordinal};
    BSMM_TRY(bsmm_cuda_driver_get(&d->driver));
    BSMM_TRY(check_ordinal(d->driver, ordinal));
    BSMM_CUDA_TRY(d->driver, cuDeviceGet, &d->handle, d->ordinal);
    BSMM_CUDA_TRY(d->driver, cuDeviceGetName, d->name, (int)sizeof d->name, d->handle);
    BSMM_TRY(read_attributes(d));
    size_t memory;
    BSMM_CUDA_TRY(d->driver, cuDeviceTotalMem, &memory, d->handle);
    d->memory_bytes = memory;
    int version;
    BSMM_CUDA_TRY(d->driver, cuDriverGetVersion, &version);
    d->driver_version = (uint32_t)version;
    return BSMM_OK;
}

static bsmm_status fill(uint32_t ordinal, bsmm_cuda_device *d) {
    BSMM_TRY(bsmm_cuda_device_read(ordinal, d));
    BSMM_CUDA_TRY(d->driver, cuDevicePrimaryCtxRetain, &d->context, d->handle);
    return BSMM_OK;
}

static bsmm_status make(uint32_t ordinal, bsmm_cuda_device **made) {
    bsmm_cuda_device *d = calloc(1, sizeof *d);
    if (!d) return bsmm_fail(BSMM_E_MEMORY, "device: out of memory: %zu bytes", sizeof *d);
    bsmm_status status = fill(ordinal, d);
    if (status != BSMM_OK) {
        free(d);
        return status;
    }
    *made = d;
    return BSMM_OK;
}

static bsmm_status make_once(uint32_t ordinal, bsmm_cuda_device **record) {
    /* The call fails with a message that says why. */
    if (ordinal >= MOST_DEVICES) return make(ordinal, record);
    pthread_mutex_lock(&making);
    bsmm_status status = BSMM_OK;
    *record = records[ordinal];
    if (!*record) status = make(ordinal, record);
    if (status == BSMM_OK) records[ordinal] = *record;
    pthread_mutex_unlock(&making);
    return status;
}

bsmm_status bsmm_cuda_device_get(uint32_t ordinal, const bsmm_cuda_device **device) {
    bsmm_cuda_device *record = ordinal < MOST_DEVICES ? records[ordinal] : NULL;
    *device = NULL;
    if (!record) BSMM_TRY(make_once(ordinal, &record));
    *device = record;
    return BSMM_OK;
}

bsmm_status bsmm_cuda_enter(const bsmm_cuda_device *d) {
    BSMM_CUDA_TRY(d->driver, cuCtxPushCurrent, d->context);
    return BSMM_OK;
}

void bsmm_cuda_leave(const bsmm_cuda_device *d) {
    CUcontext left;
    d->driver->cuCtxPopCurrent(&left);
}
