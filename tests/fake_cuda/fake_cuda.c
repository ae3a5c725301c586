#include "fake_cuda.h"

#include "../fake_driver/fake_elf.h"
#include "../fake_driver/fake_parameters.h"

#include <stdio.h>
#include <string.h>

#pragma GCC visibility push(default)

#define ENTRY(name, symbol, parameters) CUresult symbol parameters;
#include "cuda/runtime/driver.def"
#undef ENTRY

fake_cuda fake_cuda_state = {
    .driver = {.devices = 2, .free_bytes = 1u << 30},
    .capability = 90,
};

#pragma GCC visibility pop

#define FAIL_IF_TOLD FAKE_FAIL_IF_TOLD(fake_cuda_state.driver)

static void record(const void *bytes, size_t count) {
    fake_record(&fake_cuda_state.driver, bytes, count);
}

static void *address(CUdeviceptr pointer) {
    return (void *)(uintptr_t)pointer;
}

CUresult cuInit(unsigned int flags) {
    (void)flags;
    FAIL_IF_TOLD;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    FAIL_IF_TOLD;
    *version = 13010;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    static char text[32];
    snprintf(text, sizeof text, "FAKE_ERROR_%d", error);
    *name = text;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    (void)error;
    *text = "a fake failure";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    FAIL_IF_TOLD;
    *count = fake_cuda_state.driver.devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    FAIL_IF_TOLD;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    FAIL_IF_TOLD;
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    static const int values[][2] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    };
    (void)device;
    FAIL_IF_TOLD;
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
                 ? fake_cuda_state.capability / 10
                 : fake_cuda_state.capability % 10;
    for (size_t i = 0; i < BSMM_COUNT(values); i++)
        if (values[i][0] == attribute) *value = values[i][1];
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    (void)device;
    FAIL_IF_TOLD;
    *bytes = fake_cuda_state.driver.free_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    static char contexts[64];
    FAIL_IF_TOLD;
    *context = (CUcontext)(void *)&contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    FAIL_IF_TOLD;
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    fake_cuda_state.depth++;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    if (fake_cuda_state.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    fake_cuda_state.depth--;
    *context = NULL;
    return CUDA_SUCCESS;
}

/* Returns from a driver function with an error if no CUDA context is current, as the real driver
 * does. */
#define NEED_CONTEXT                                                                               \
    do {                                                                                           \
        if (fake_cuda_state.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;                         \
    } while (0)

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    static int current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    FAIL_IF_TOLD;
    int before = current;
    current = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    FAIL_IF_TOLD;
    NEED_CONTEXT;
    const size_t bytes = fake_elf_is(image) ? fake_elf_bytes(image) : strlen(image);
    *module = fake_load(&fake_cuda_state.driver, image, bytes);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    FAIL_IF_TOLD;
    if (strcmp(name, "no_such_kernel") == 0) return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)(void *)fake_kernel_new(module, name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    fake_kernel *const kernel = (void *)function;
    FAIL_IF_TOLD;
    kernel->attribute = attribute;
    kernel->value = value;
    return CUDA_SUCCESS;
}

static void record_launch(const CUlaunchConfig *c, const fake_kernel *kernel, void **arguments) {
    const unsigned int sizes[] = {c->gridDimX,  c->gridDimY,  c->gridDimZ,       c->blockDimX,
                                  c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->numAttrs};
    record(kernel->name, strlen(kernel->name));
    record(sizes, sizeof sizes);
    record(&kernel->attribute, sizeof kernel->attribute);
    record(&kernel->value, sizeof kernel->value);
    for (unsigned int i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *const a = &c->attrs[i];
        record(&a->id, sizeof a->id);
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            record(&a->value.clusterDim, sizeof a->value.clusterDim);
        else
            record(&a->value.programmaticStreamSerializationAllowed, sizeof(int));
    }
    for (uint32_t i = 0; i < kernel->count; i++)
        record(arguments[i], kernel->sizes[i]);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                          void **extra) {
    (void)extra;
    FAIL_IF_TOLD;
    NEED_CONTEXT;
    fake_cuda_state.driver.launches++;
    fake_cuda_state.config = *config;
    for (unsigned int i = 0; i < config->numAttrs && i < 4; i++)
        fake_cuda_state.attributes[i] = config->attrs[i];
    if (fake_cuda_state.driver.record) record_launch(config, (const void *)function, arguments);
    return CUDA_SUCCESS;
}

/* The fake tensor map holds the arguments that the host gave. The address is the first of them. */
typedef struct fake_map {
    uint64_t address, extents[3], strides[2];
    uint32_t rank, box[3], steps[3];
    int type, interleave, swizzle, l2_promotion, fill;
} fake_map;
_Static_assert(sizeof(fake_map) <= sizeof(CUtensorMap), "a tensor map has no room for a fake one");

/* NOLINTNEXTLINE(readability-function-size): the signature of CUDA */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t rank, void *to,
                                const uint64_t *extents, const uint64_t *strides,
                                const uint32_t *box, const uint32_t *element_strides,
                                int interleave, int swizzle, int l2_promotion, int fill) {
    FAIL_IF_TOLD;
    fake_map made = {.address = (uintptr_t)to,
                     .rank = rank,
                     .type = type,
                     .interleave = interleave,
                     .swizzle = swizzle,
                     .l2_promotion = l2_promotion,
                     .fill = fill};
    for (uint32_t i = 0; i < rank; i++) {
        made.extents[i] = extents[i];
        made.box[i] = box[i];
        made.steps[i] = element_strides[i];
        if (i + 1 < rank) made.strides[i] = strides[i];
    }
    memset(map, 0, sizeof *map);
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *to) {
    const uint64_t at = (uintptr_t)to;
    FAIL_IF_TOLD;
    memcpy(map, &at, sizeof at);
    return CUDA_SUCCESS;
}

static void record_words(const char *what, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t words[] = {a, b, c};
    record(what, strlen(what));
    record(words, sizeof words);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    (void)stream;
    FAIL_IF_TOLD;
    record_words(__func__, to, value, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t words, CUstream stream) {
    (void)stream;
    FAIL_IF_TOLD;
    record_words(__func__, to, value, words);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    (void)stream;
    FAIL_IF_TOLD;
    record_words(__func__, to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
    (void)stream;
    FAIL_IF_TOLD;
    NEED_CONTEXT;
    fake_cuda_state.driver.waits++;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    FAIL_IF_TOLD;
    NEED_CONTEXT;
    *pointer = (uintptr_t)fake_allocate(&fake_cuda_state.driver, bytes);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    NEED_CONTEXT;
    const bool released = fake_release(&fake_cuda_state.driver, address(pointer));
    return released ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* For an address that it does not know, the driver leaves the attributes unchanged, as the real
 * driver does. */
CUresult cuPointerGetAttributes(unsigned int count, int *attributes, void **values,
                                CUdeviceptr pointer) {
    FAIL_IF_TOLD;
    for (unsigned int k = 0;
         k < count && fake_is_device_memory(&fake_cuda_state.driver, address(pointer)); k++)
        *(int *)values[k] = attributes[k] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE
                                ? CU_MEMORYTYPE_DEVICE
                                : fake_cuda_state.driver.owner;
    return CUDA_SUCCESS;
}
