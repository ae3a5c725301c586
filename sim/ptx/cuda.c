/* Implements the memory functions and error messages of the simulated CUDA driver. Every function
 * completes its work before it returns. */
#include "cuda.h"
#include "common/memory.h"
#include "cuda_entries.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char message[1200];

const char *bsmm_sim_message(void) {
    return message;
}

CUresult sim_fail(CUresult code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    if (getenv("BSMM_SIM_REPORT")) fprintf(stderr, "bsmm simulator: %s\n", message);
    return code;
}

static const struct {
    CUresult code;
    const char *name;
} names[] = {{CUDA_SUCCESS, "CUDA_SUCCESS"},
             {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
             {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
             {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
             {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
             {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
             {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
             {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
             {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
             {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
             {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
             {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
             {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
             {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"}};

CU CUresult cuGetErrorName(CUresult code, const char **name) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].code == code) return *name = names[k].name, CUDA_SUCCESS;
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
CU CUresult cuGetErrorString(CUresult code, const char **text) {
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = code == CUDA_SUCCESS ? "no error" : message;
    return CUDA_SUCCESS;
}

static void *pointer(CUdeviceptr at) {
    return (void *)(uintptr_t)at;
}
CU CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    if (!at || bytes == 0)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "pointer is NULL or bytes is 0");
    void *memory = sim_memory_alloc(bytes);
    *at = (uintptr_t)memory;
    if (!memory) return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory: %zu bytes", bytes);
    sim_memory_mark(memory, 0, sim_current_device());
    return CUDA_SUCCESS;
}
CU CUresult cuMemFree_v2(CUdeviceptr at) {
    sim_pool_forget(at);
    return !at || sim_memory_free(pointer(at))
               ? CUDA_SUCCESS
               : sim_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is no allocation",
                          (unsigned long long)at);
}
CU CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags) {
    return (void)flags, cuMemAlloc_v2(at, bytes);
}
CU CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
    CUdeviceptr p = 0;
    const CUresult status = at ? cuMemAlloc_v2(&p, bytes) : CUDA_ERROR_INVALID_VALUE;
    if (!status) *at = pointer(p);
    return (void)flags, status;
}
CU CUresult cuMemAllocHost_v2(void **at, size_t bytes) {
    return cuMemHostAlloc(at, bytes, 0);
}
/* The host and the device use the same address for host memory that the driver allocated. */
CU CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *to, void *at, unsigned flags) {
    uint64_t begin, size;
    if (!to || flags)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "pointer is NULL or flags are not 0");
    if (!sim_memory_find((uintptr_t)at, &begin, &size))
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "%p lies in no allocation", at);
    *to = (uintptr_t)at;
    return CUDA_SUCCESS;
}
CU CUresult cuMemFreeHost(void *at) {
    return cuMemFree_v2((uintptr_t)at);
}

/* Returns an error unless the `bytes` bytes at address `at` are inside one allocation. */
static CUresult check_range(CUdeviceptr at, size_t bytes, const char *name) {
    uint64_t begin, size;
    if (bytes == 0) return CUDA_SUCCESS;
    if (!sim_memory_find(at, &begin, &size) || bytes > size - (at - begin))
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes at 0x%llx lie in no allocation",
                        name, bytes, (unsigned long long)at);
    return CUDA_SUCCESS;
}
static CUresult copy(CUstream s, void *to, const void *from, size_t bytes) {
    if (bytes && (!to || !from)) return sim_fail(CUDA_ERROR_INVALID_VALUE, "a pointer is NULL");
    return bytes ? sim_submit(s, &(sim_work){.to = to, .from = from, .bytes = bytes})
                 : CUDA_SUCCESS;
}
CU CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
    const CUresult status = check_range(to, bytes, "to");
    return status ? status : copy(s, pointer(to), from, bytes);
}
CU CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
    const CUresult status = check_range(from, bytes, "from");
    return status ? status : copy(s, to, pointer(from), bytes);
}
CU CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
    CUresult status = check_range(to, bytes, "to");
    if (!status) status = check_range(from, bytes, "from");
    return status ? status : copy(s, pointer(to), pointer(from), bytes);
}
CU CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
    return copy(s, pointer(to), pointer(from), bytes);
}
CU CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    return cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
}
CU CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    return cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
}
CU CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return cuMemcpyDtoDAsync_v2(to, from, bytes, NULL);
}
CU CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return cuMemcpyAsync(to, from, bytes, NULL);
}

static CUresult fill(CUstream s, CUdeviceptr to, uint32_t value, uint32_t unit, size_t count) {
    const CUresult status = check_range(to, unit * count, "to");
    if (status || count == 0) return status;
    return sim_submit(
        s, &(sim_work){.to = pointer(to), .bytes = unit * count, .value = value, .unit = unit});
}
CU CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) {
    return fill(s, to, value, 1, n);
}
CU CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream s) {
    return fill(s, to, value, 2, n);
}
CU CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream s) {
    return fill(s, to, value, 4, n);
}
CU CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) {
    return fill(NULL, to, value, 1, n);
}
CU CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n) {
    return fill(NULL, to, value, 2, n);
}
CU CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n) {
    return fill(NULL, to, value, 4, n);
}

CU CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at) {
    uint64_t begin, size;
    if (!sim_memory_find(at, &begin, &size))
        return sim_fail(CUDA_ERROR_NOT_FOUND, "0x%llx lies in no allocation",
                        (unsigned long long)at);
    if (base) *base = begin;
    if (bytes) *bytes = size;
    return CUDA_SUCCESS;
}

/* Writes one attribute of the pointer `at` to `to`. The numbers of attributes are those of
 * CUpointer_attribute, e.g. 2 is the memory type and 9 is the number of the device. */
static void put_attribute(int attribute, void *to, uint64_t at, uint64_t begin, uint64_t size) {
    const int device_memory = 2;
    int unused, device = 0;
    sim_memory_marked(at, &unused, &device);
    CUcontext c = sim_context_of(device);
    if (attribute == 1) memcpy(to, &c, sizeof(void *));
    if (attribute == 2) memcpy(to, &device_memory, sizeof device_memory);
    if (attribute == 3) memcpy(to, &at, 8);
    if (attribute == 8) memset(to, 0, 4);
    if (attribute == 9) memcpy(to, &device, sizeof device);
    if (attribute == 11) memcpy(to, &begin, 8);
    if (attribute == 12) memcpy(to, &size, 8);
}
CU CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr at) {
    uint64_t begin, size;
    if (!sim_memory_find(at, &begin, &size))
        /* For memory that the driver did not allocate, the function leaves the output values
         * unchanged and reports success. */
        return CUDA_SUCCESS;
    for (unsigned k = 0; k < count; k++)
        put_attribute(attributes[k], values[k], at, begin, size);
    return CUDA_SUCCESS;
}
CU CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr at) {
    uint64_t begin, size;
    if (!sim_memory_find(at, &begin, &size))
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is no device memory",
                        (unsigned long long)at);
    put_attribute(attribute, value, at, begin, size);
    return CUDA_SUCCESS;
}

/* Finds a driver function by its name. If there are several versions, NVIDIA's driver returns the
 * newest, whose name ends with _v3 or _v2. The simulator does the same. */
CU CUresult cuGetProcAddress_v2(const char *symbol, void **to, int version, uint64_t flags,
                                int *found) {
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    static const char here = 0;
    Dl_info info;
    void *self = dladdr(&here, &info) ? dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_NOW) : NULL;
    (void)version, (void)flags;
    if (!symbol || !to) return sim_fail(CUDA_ERROR_INVALID_VALUE, "symbol or pointer is NULL");
    *to = NULL;
    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes && !*to; k++) {
        char name[128];
        snprintf(name, sizeof name, "%.100s%s", symbol, suffixes[k]);
        *to = dlsym(self ? self : RTLD_DEFAULT, name);
    }
    if (self) dlclose(self);
    if (found) *found = *to ? 0 : 1;
    return *to ? CUDA_SUCCESS : sim_fail(CUDA_ERROR_NOT_FOUND, "there is no %s", symbol);
}
CU CUresult cuGetProcAddress(const char *symbol, void **to, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, to, version, flags, NULL);
}
