#include "fake_hip.h"

#include "../fake_driver/fake_elf.h"
#include "../fake_driver/fake_parameters.h"

#include <stdio.h>
#include <string.h>

#pragma GCC visibility push(default)

#define ENTRY(name, parameters) hipError_t name parameters;
#include "amdgpu/runtime/driver.def"
#undef ENTRY
const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorString(hipError_t error);

fake_hip fake_hip_state = {
    .driver = {.devices = 2, .free_bytes = 1u << 30},
    .minor = 4,
    .version = 60300000,
};

#pragma GCC visibility pop

#define FAIL_IF_TOLD FAKE_FAIL_IF_TOLD(fake_hip_state.driver)

static void record(const void *bytes, size_t count) {
    fake_record(&fake_hip_state.driver, bytes, count);
}

const char *hipGetErrorName(hipError_t error) {
    static char text[32];
    snprintf(text, sizeof text, "fakeError%d", error);
    return text;
}

const char *hipGetErrorString(hipError_t error) {
    (void)error;
    return "a fake failure";
}

hipError_t hipInit(unsigned int flags) {
    (void)flags;
    FAIL_IF_TOLD;
    return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int *version) {
    FAIL_IF_TOLD;
    *version = fake_hip_state.version;
    return hipSuccess;
}

hipError_t hipGetDeviceCount(int *count) {
    FAIL_IF_TOLD;
    *count = fake_hip_state.driver.devices;
    return hipSuccess;
}

hipError_t hipGetDevice(int *device) {
    FAIL_IF_TOLD;
    *device = fake_hip_state.current;
    return hipSuccess;
}

hipError_t hipSetDevice(int device) {
    FAIL_IF_TOLD;
    fake_hip_state.current = device;
    return hipSuccess;
}

hipError_t hipDeviceGetName(char *name, int size, int device) {
    FAIL_IF_TOLD;
    snprintf(name, (size_t)size, "Fake AMD GPU %d", device);
    return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, int attribute, int device) {
    static const int values[][2] = {
        {hipDeviceAttributeL2CacheSize, 4 << 20},
        {hipDeviceAttributeComputeCapabilityMajor, 9},
        {hipDeviceAttributeMultiprocessorCount, 304},
        {hipDeviceAttributeMaxSharedMemoryPerBlock, 65536},
    };
    (void)device;
    FAIL_IF_TOLD;
    *value = fake_hip_state.minor;
    for (size_t i = 0; i < BSMM_COUNT(values); i++)
        if (values[i][0] == attribute) *value = values[i][1];
    return hipSuccess;
}

hipError_t hipDeviceTotalMem(size_t *bytes, int device) {
    (void)device;
    FAIL_IF_TOLD;
    *bytes = fake_hip_state.driver.free_bytes;
    return hipSuccess;
}

hipError_t hipThreadExchangeStreamCaptureMode(int *mode) {
    static int current;
    FAIL_IF_TOLD;
    const int before = current;
    current = *mode;
    *mode = before;
    return hipSuccess;
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
    FAIL_IF_TOLD;
    *module = fake_load(&fake_hip_state.driver, image, fake_elf_bytes(image));
    return hipSuccess;
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
    FAIL_IF_TOLD;
    *function = (hipFunction_t)(void *)fake_kernel_new(module, name);
    fake_hip_state.finds++;
    return *function ? hipSuccess : hipErrorOutOfMemory;
}

/* NOLINTNEXTLINE(readability-function-size): HIP's signature */
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z, unsigned int shared_bytes,
                                 hipStream_t stream, void **arguments, void **extra) {
    const fake_kernel *const kernel = (const void *)function;
    (void)extra;
    FAIL_IF_TOLD;
    fake_hip *f = &fake_hip_state;
    f->driver.launches++;
    f->grid[0] = grid_x, f->grid[1] = grid_y, f->grid[2] = grid_z;
    f->block[0] = block_x, f->block[1] = block_y, f->block[2] = block_z;
    f->shared_bytes = shared_bytes;
    f->stream = stream;
    /* Without a record, the arguments are not read: some tests pass fewer than the kernel has. */
    if (!f->driver.record) return hipSuccess;
    record(kernel->name, strlen(kernel->name));
    record(f->grid, sizeof f->grid);
    record(f->block, sizeof f->block);
    record(&shared_bytes, sizeof shared_bytes);
    for (uint32_t i = 0; i < kernel->count; i++)
        record(arguments[i], kernel->sizes[i]);
    return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
    (void)stream;
    FAIL_IF_TOLD;
    fake_hip_state.driver.waits++;
    return hipSuccess;
}

hipError_t hipMalloc(void **pointer, size_t bytes) {
    FAIL_IF_TOLD;
    *pointer = fake_allocate(&fake_hip_state.driver, bytes);
    return *pointer ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipFree(void *pointer) {
    FAIL_IF_TOLD;
    return fake_release(&fake_hip_state.driver, pointer) ? hipSuccess : hipErrorInvalidValue;
}

static void record_words(const char *what, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t words[] = {a, b, c};
    record(what, strlen(what));
    record(words, sizeof words);
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    (void)stream;
    FAIL_IF_TOLD;
    const fake_driver *const d = &fake_hip_state.driver;
    record_words(__func__, (uintptr_t)to, (uintptr_t)from, bytes + ((uint64_t)kind << 60));
    if (d->address_count == 0) memcpy(to, from, bytes);
    return hipSuccess;
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
    (void)stream;
    FAIL_IF_TOLD;
    record_words(__func__, (uintptr_t)to, (uint64_t)value, bytes);
    if (fake_hip_state.driver.address_count == 0) memset(to, value, bytes);
    return hipSuccess;
}

/* The fake driver reports memory type 0 for addresses that it did not allocate. */
hipError_t hipDrvPointerGetAttributes(unsigned int count, int *attributes, void **values,
                                      void *pointer) {
    FAIL_IF_TOLD;
    const fake_hip *f = &fake_hip_state;
    /* hipMemoryTypeDevice is 2 from HIP 6 on, and 1 before. */
    const int type = f->version >= 60000000 ? 2 : 1;
    const bool known = fake_is_device_memory(&fake_hip_state.driver, pointer);
    for (unsigned int k = 0; k < count; k++) {
        const bool is_type = attributes[k] == HIP_POINTER_ATTRIBUTE_MEMORY_TYPE;
        *(int *)values[k] = !known ? 0 : is_type ? type : f->driver.owner;
    }
    return hipSuccess;
}
