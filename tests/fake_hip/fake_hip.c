#include "fake_hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

#define ENTRY(name, parameters) hipError_t name parameters;
#include "amdgpu/runtime/driver.def"
#undef ENTRY
const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorString(hipError_t error);

enum { MOST_BLOCKS = 256 };

fake_hip fake_hip_state = {.devices = 2, .minor = 4, .version = 60300000, .free_bytes = 1u << 30};

#pragma GCC visibility pop

static struct {
    char *begin;
    size_t bytes;
} blocks[MOST_BLOCKS];

#define FAIL_IF_TOLD                                                                               \
    do {                                                                                           \
        const char *failing = fake_hip_state.failing;                                              \
        if (failing && strcmp(failing, __func__) == 0) return fake_hip_state.failure;              \
    } while (0)

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
    *count = fake_hip_state.devices;
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
    *bytes = fake_hip_state.free_bytes;
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
    static char any;
    FAIL_IF_TOLD;
    fake_hip_state.loads++;
    memcpy(fake_hip_state.image, image, sizeof fake_hip_state.image);
    /* The host's image may be freed after this call, so the fake driver does not keep its address.
     */
    *module = (hipModule_t)(void *)&any;
    return hipSuccess;
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
    union {
        const void *from;
        hipFunction_t to;
    } same = {.from = name};
    (void)module;
    FAIL_IF_TOLD;
    *function = same.to;
    fake_hip_state.finds++;
    return hipSuccess;
}

/* NOLINTNEXTLINE(readability-function-size): HIP's signature */
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z, unsigned int shared_bytes,
                                 hipStream_t stream, void **arguments, void **extra) {
    (void)function, (void)arguments, (void)extra;
    FAIL_IF_TOLD;
    fake_hip *f = &fake_hip_state;
    f->launches++;
    f->grid[0] = grid_x, f->grid[1] = grid_y, f->grid[2] = grid_z;
    f->block[0] = block_x, f->block[1] = block_y, f->block[2] = block_z;
    f->shared_bytes = shared_bytes;
    f->stream = stream;
    return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
    (void)stream;
    FAIL_IF_TOLD;
    fake_hip_state.waits++;
    return hipSuccess;
}

hipError_t hipMalloc(void **pointer, size_t bytes) {
    FAIL_IF_TOLD;
    size_t i = 0;
    while (i < MOST_BLOCKS && blocks[i].begin)
        i++;
    if (bytes > fake_hip_state.free_bytes || i == MOST_BLOCKS) return hipErrorOutOfMemory;
    blocks[i].begin = aligned_alloc(256, (bytes + 255) / 256 * 256);
    blocks[i].bytes = bytes;
    fake_hip_state.free_bytes -= bytes;
    fake_hip_state.allocations++;
    *pointer = blocks[i].begin;
    return blocks[i].begin ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipFree(void *pointer) {
    FAIL_IF_TOLD;
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        if (blocks[i].begin != pointer) continue;
        free(blocks[i].begin);
        blocks[i].begin = NULL;
        fake_hip_state.free_bytes += blocks[i].bytes;
        fake_hip_state.allocations--;
        return hipSuccess;
    }
    return hipErrorInvalidValue;
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    (void)kind, (void)stream;
    FAIL_IF_TOLD;
    memcpy(to, from, bytes);
    return hipSuccess;
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
    (void)stream;
    FAIL_IF_TOLD;
    memset(to, value, bytes);
    return hipSuccess;
}

/* The fake driver reports type 0 for addresses that it did not allocate. */
hipError_t hipDrvPointerGetAttributes(unsigned int count, int *attributes, void **values,
                                      void *pointer) {
    FAIL_IF_TOLD;
    const fake_hip *f = &fake_hip_state;
    const int type = f->version >= 60000000 ? hipMemoryTypeDevice : hipMemoryTypeDevice5;
    bool known = false;
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        const char *begin = blocks[i].begin, *at = pointer;
        known |= begin && at >= begin && at < begin + blocks[i].bytes;
    }
    for (unsigned int k = 0; k < count; k++) {
        const bool is_type = attributes[k] == HIP_POINTER_ATTRIBUTE_MEMORY_TYPE;
        *(int *)values[k] = !known ? 0 : is_type ? type : f->owner;
    }
    return hipSuccess;
}
