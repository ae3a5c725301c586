/* Fills the record of each GPU and each simulator with the properties that the HIP driver
 * reports. */
#include "amdgpu/runtime/device.h"

#include "gpu/records.h"

#include <stdio.h>

static bsmm_gpu_records gpus = {.making = PTHREAD_MUTEX_INITIALIZER};
static bsmm_gpu_records simulators = {.making = PTHREAD_MUTEX_INITIALIZER};

/* Writes the name of the processor, e.g. "gfx942". HIP reports only the first two numbers of the
 * name (9.4). The third number is known because gfx942 is the only 9.4 processor on sale. */
static void name_arch(int major, int minor, bsmm_hip_device *d) {
    const char *known = major != 9 ? NULL : minor == 4 ? "gfx942" : minor == 5 ? "gfx950" : NULL;
    if (known)
        snprintf(d->arch, sizeof d->arch, "%s", known);
    else
        snprintf(d->arch, sizeof d->arch, "gfx%d.%d", major, minor);
}

static bsmm_status read_attributes(bsmm_hip_device *d) {
    int major, minor, l2, lds;
    const struct {
        int attribute, *to;
    } wanted[] = {
        {hipDeviceAttributeComputeCapabilityMajor, &major},
        {hipDeviceAttributeComputeCapabilityMinor, &minor},
        {hipDeviceAttributeMultiprocessorCount, &d->compute_units},
        {hipDeviceAttributeL2CacheSize, &l2},
        {hipDeviceAttributeMaxSharedMemoryPerBlock, &lds},
    };
    for (size_t i = 0; i < BSMM_COUNT(wanted); i++)
        BSMM_HIP_TRY(d->driver, hipDeviceGetAttribute, wanted[i].to, wanted[i].attribute,
                     d->ordinal);
    d->l2_bytes = (uint64_t)l2;
    d->lds_bytes = (uint32_t)lds;
    name_arch(major, minor, d);
    return BSMM_OK;
}

static bsmm_status read_device(bsmm_hip_device *d) {
    size_t memory;
    BSMM_HIP_TRY(d->driver, hipDeviceGetName, d->name, (int)sizeof d->name, d->ordinal);
    BSMM_TRY(read_attributes(d));
    BSMM_HIP_TRY(d->driver, hipDeviceTotalMem, &memory, d->ordinal);
    d->memory_bytes = memory;
    return BSMM_OK;
}

static bsmm_status fill_gpu(uint32_t ordinal, void *record) {
    bsmm_hip_device *d = record;
    int count = 0;
    BSMM_TRY(bsmm_hip_driver_get(&d->driver));
    BSMM_HIP_TRY(d->driver, hipGetDeviceCount, &count);
    if (ordinal >= (uint32_t)count || ordinal >= BSMM_GPU_MOST_DEVICES)
        return bsmm_fail(BSMM_E_NOT_FOUND,
                         "device: value is \"hip:%u\"; this process sees %d AMD GPU%s (rocminfo, "
                         "HIP_VISIBLE_DEVICES)",
                         ordinal, count, count == 1 ? "" : "s");
    d->ordinal = (int)ordinal;
    snprintf(d->device, sizeof d->device, "hip:%u", ordinal);
    return read_device(d);
}

static bsmm_status fill_simulator(uint32_t ordinal, void *record) {
    bsmm_hip_device *d = record;
    BSMM_TRY(bsmm_hip_simulator_get(&d->driver));
    BSMM_TRY(bsmm_gpu_simulator_find(&bsmm_hip_simulator, d->driver->bsmm_sim_device, ordinal,
                                     d->device, sizeof d->device, &d->ordinal));
    return read_device(d);
}

bsmm_status bsmm_hip_device_get(uint32_t ordinal, const bsmm_hip_device **device) {
    const void *record;
    const bsmm_status status =
        bsmm_gpu_record_get(&gpus, ordinal, sizeof **device, fill_gpu, &record);
    *device = record;
    return status;
}

bsmm_status bsmm_hip_simulated_get(uint32_t ordinal, const bsmm_hip_device **device) {
    const void *record;
    const bsmm_status status =
        bsmm_gpu_record_get(&simulators, ordinal, sizeof **device, fill_simulator, &record);
    *device = record;
    return status;
}

bsmm_status bsmm_hip_enter(const bsmm_hip_device *d, int *before) {
    BSMM_HIP_TRY(d->driver, hipGetDevice, before);
    if (*before != d->ordinal) BSMM_HIP_TRY(d->driver, hipSetDevice, d->ordinal);
    return BSMM_OK;
}

void bsmm_hip_leave(const bsmm_hip_device *d, int before) {
    if (before != d->ordinal) d->driver->hipSetDevice(before);
}
