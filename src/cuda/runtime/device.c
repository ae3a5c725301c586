/* Makes and keeps the records of NVIDIA devices: one record for each GPU and each simulated GPU
 * that the process uses. */
#include "cuda/runtime/device.h"

#include "gpu/records.h"

#include <stdio.h>

static bsmm_gpu_records gpus = {.making = PTHREAD_MUTEX_INITIALIZER};
static bsmm_gpu_records simulators = {.making = PTHREAD_MUTEX_INITIALIZER};

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
    if (ordinal < (uint32_t)count && ordinal < BSMM_GPU_MOST_DEVICES) return BSMM_OK;
    return bsmm_fail(BSMM_E_NOT_FOUND,
                     "device: value is \"cuda:%u\"; this process sees %d NVIDIA GPU%s (nvidia-smi "
                     "-L, CUDA_VISIBLE_DEVICES)",
                     ordinal, count, count == 1 ? "" : "s");
}

/* Fills the members of a device's record, except for the context. The members driver, ordinal and
 * device must already be set. */
static bsmm_status read_device(bsmm_cuda_device *d) {
    size_t memory;
    int version;
    d->is_simulated = d->driver->bsmm_sim_device != NULL;
    BSMM_CUDA_TRY(d->driver, cuDeviceGet, &d->handle, d->ordinal);
    BSMM_CUDA_TRY(d->driver, cuDeviceGetName, d->name, (int)sizeof d->name, d->handle);
    BSMM_TRY(read_attributes(d));
    BSMM_CUDA_TRY(d->driver, cuDeviceTotalMem, &memory, d->handle);
    d->memory_bytes = memory;
    BSMM_CUDA_TRY(d->driver, cuDriverGetVersion, &version);
    d->driver_version = (uint32_t)version;
    return BSMM_OK;
}

bsmm_status bsmm_cuda_device_read(uint32_t ordinal, bsmm_cuda_device *d) {
    *d = (bsmm_cuda_device){.ordinal = (int)ordinal};
    BSMM_TRY(bsmm_cuda_driver_get(&d->driver));
    BSMM_TRY(check_ordinal(d->driver, ordinal));
    snprintf(d->device, sizeof d->device, "cuda:%u", ordinal);
    return read_device(d);
}

static bsmm_status fill_gpu(uint32_t ordinal, void *record) {
    bsmm_cuda_device *d = record;
    BSMM_TRY(bsmm_cuda_device_read(ordinal, d));
    BSMM_CUDA_TRY(d->driver, cuDevicePrimaryCtxRetain, &d->context, d->handle);
    return BSMM_OK;
}

static bsmm_status fill_simulator(uint32_t ordinal, void *record) {
    bsmm_cuda_device *d = record;
    BSMM_TRY(bsmm_cuda_simulator_get(&d->driver));
    BSMM_TRY(bsmm_gpu_simulator_find(&bsmm_cuda_simulator, d->driver->bsmm_sim_device, ordinal,
                                     d->device, sizeof d->device, &d->ordinal));
    BSMM_TRY(read_device(d));
    BSMM_CUDA_TRY(d->driver, cuDevicePrimaryCtxRetain, &d->context, d->handle);
    return BSMM_OK;
}

bsmm_status bsmm_cuda_device_get(uint32_t ordinal, const bsmm_cuda_device **device) {
    const void *record;
    const bsmm_status status =
        bsmm_gpu_record_get(&gpus, ordinal, sizeof **device, fill_gpu, &record);
    *device = record;
    return status;
}

bsmm_status bsmm_cuda_simulated_get(uint32_t ordinal, const bsmm_cuda_device **device) {
    const void *record;
    const bsmm_status status =
        bsmm_gpu_record_get(&simulators, ordinal, sizeof **device, fill_simulator, &record);
    *device = record;
    return status;
}

bsmm_status bsmm_cuda_enter(const bsmm_cuda_device *d) {
    BSMM_CUDA_TRY(d->driver, cuCtxPushCurrent, d->context);
    return BSMM_OK;
}

void bsmm_cuda_leave(const bsmm_cuda_device *d) {
    CUcontext left;
    d->driver->cuCtxPopCurrent(&left);
}
