/* HIP's devices, memory, streams and events. Every call completes its work before it returns, so
 * streams have nothing to order. */
#include "hip.h"
#include "sim.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Thread_local char message[512];
static _Thread_local hipError_t last;

const char *bsmm_sim_message(void) {
    return message;
}

hipError_t hip_fail(hipError_t code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return last = code;
}

enum gfx9_arch hip_arch(void);
enum gfx9_arch hip_arch(void) {
    const char *name = getenv("BSMM_SIM_ARCH");
    return name && strncmp(name, "gfx942", 6) == 0 ? GFX942 : GFX950;
}

/* ---- devices ---- */
enum { MEMORY_GB = 128, VERSION = 60000000 };

HIP hipError_t hipInit(unsigned flags) {
    return flags ? hip_fail(hipErrorInvalidValue, "flags must be 0") : hipSuccess;
}
static hipError_t give(int *to, int value) {
    if (!to) return hip_fail(hipErrorInvalidValue, "a result's pointer is NULL");
    *to = value;
    return hipSuccess;
}
HIP hipError_t hipGetDeviceCount(int *count) {
    return give(count, 1);
}
HIP hipError_t hipGetDevice(int *device) {
    return give(device, 0);
}
HIP hipError_t hipDeviceGet(int *device, int ordinal) {
    return ordinal ? hip_fail(hipErrorInvalidDevice, "there is one device, 0") : give(device, 0);
}
HIP hipError_t hipSetDevice(int device) {
    return device ? hip_fail(hipErrorInvalidDevice, "there is one device, 0") : hipSuccess;
}
HIP hipError_t hipDriverGetVersion(int *version) {
    return give(version, VERSION);
}
HIP hipError_t hipRuntimeGetVersion(int *version) {
    return give(version, VERSION);
}
HIP hipError_t hipDeviceSynchronize(void) {
    return hipSuccess;
}
HIP hipError_t hipDeviceReset(void) {
    return hipSuccess;
}
HIP hipError_t hipDeviceGetName(char *name, int length, int device) {
    if (!name || length < 1 || device)
        return hip_fail(hipErrorInvalidValue,
                        "name is NULL, length is not positive or device is not 0");
    snprintf(name, (size_t)length, "bsmm simulator of %s",
             hip_arch() == GFX950 ? "gfx950" : "gfx942");
    return hipSuccess;
}
HIP hipError_t hipDeviceTotalMem(size_t *bytes, int device) {
    if (!bytes || device) return hip_fail(hipErrorInvalidValue, "bytes is NULL or device is not 0");
    *bytes = (size_t)MEMORY_GB << 30;
    return hipSuccess;
}
HIP hipError_t hipMemGetInfo(size_t *available, size_t *total) {
    if (available) *available = (size_t)MEMORY_GB << 30;
    return total ? hipDeviceTotalMem(total, 0) : hipSuccess;
}

/* Values of hipDeviceAttribute_t in ROCm 6. An attribute that is missing here is 0. */
typedef struct {
    int attribute, gfx942, gfx950;
} attribute;
static const attribute attributes[] = {
    {56, 1024, 1024}, /* hipDeviceAttributeMaxThreadsPerBlock, on gfx942 and on gfx950 */
    {26, 1024, 1024},
    {27, 1024, 1024},
    {28, 1024, 1024}, /* the previous three lines are MaxBlockDimX, Y and Z */
    {29, 2147483647, 2147483647},
    {30, 65535, 65535},
    {31, 65535, 65535},  /* the previous three lines are MaxGridDimX, Y and Z */
    {63, 304, 256},      /* hipDeviceAttributeMultiprocessorCount, on gfx942 and on gfx950 */
    {74, 65536, 163840}, /* hipDeviceAttributeMaxSharedMemoryPerBlock, on gfx942 and on gfx950 */
    {87, 64, 64},        /* hipDeviceAttributeWarpSize, on gfx942 and on gfx950 */
};
HIP hipError_t hipDeviceGetAttribute(int *value, int which, int device) {
    if (device) return hip_fail(hipErrorInvalidDevice, "there is one device, 0");
    for (size_t k = 0; k < sizeof attributes / sizeof *attributes; k++)
        if (attributes[k].attribute == which)
            return give(value, hip_arch() == GFX950 ? attributes[k].gfx950 : attributes[k].gfx942);
    return give(value, 0);
}

/* ---- memory ---- */
static hipError_t allocate(void **at, size_t bytes) {
    if (!at) return hip_fail(hipErrorInvalidValue, "a result's pointer is NULL");
    *at = gfx9_memory_alloc(bytes);
    return *at ? hipSuccess : hip_fail(hipErrorOutOfMemory, "out of memory: %zu bytes", bytes);
}
static hipError_t release(void *at) {
    return !at || gfx9_memory_free(at) ? hipSuccess
                                       : hip_fail(hipErrorInvalidValue, "%p is no allocation", at);
}
HIP hipError_t hipMalloc(void **at, size_t bytes) {
    return allocate(at, bytes);
}
HIP hipError_t hipMallocAsync(void **at, size_t bytes, hipStream_t s) {
    return (void)s, allocate(at, bytes);
}
HIP hipError_t hipHostMalloc(void **at, size_t bytes, unsigned flags) {
    return (void)flags, allocate(at, bytes);
}
HIP hipError_t hipMallocManaged(void **at, size_t bytes, unsigned flags) {
    return (void)flags, allocate(at, bytes);
}
HIP hipError_t hipFree(void *at) {
    return release(at);
}
HIP hipError_t hipFreeAsync(void *at, hipStream_t s) {
    return (void)s, release(at);
}
HIP hipError_t hipHostFree(void *at) {
    return release(at);
}

/* Returns an error if the bytes at a device pointer are not all in one allocation. All other
 * pointers are the host's. */
static hipError_t check_range(const void *at, size_t bytes, const char *name) {
    uint64_t begin, size;
    if (bytes && !at) return hip_fail(hipErrorInvalidValue, "%s is NULL", name);
    if (!gfx9_memory_find((uint64_t)(uintptr_t)at, &begin, &size)) return hipSuccess;
    if (bytes > size - ((uint64_t)(uintptr_t)at - begin))
        return hip_fail(hipErrorInvalidValue, "%s: %zu bytes reach beyond its allocation", name,
                        bytes);
    return hipSuccess;
}
static hipError_t copy(void *to, const void *from, size_t bytes) {
    hipError_t status = check_range(to, bytes, "dst");
    if (!status) status = check_range(from, bytes, "src");
    if (!status && bytes) memmove(to, from, bytes);
    return status;
}
HIP hipError_t hipMemcpy(void *to, const void *from, size_t n, int kind) {
    return (void)kind, copy(to, from, n);
}
HIP hipError_t hipMemcpyAsync(void *to, const void *from, size_t n, int kind, hipStream_t s) {
    return (void)kind, (void)s, copy(to, from, n);
}
HIP hipError_t hipMemcpyHtoD(void *to, void *from, size_t n) {
    return copy(to, from, n);
}
HIP hipError_t hipMemcpyDtoH(void *to, void *from, size_t n) {
    return copy(to, from, n);
}
HIP hipError_t hipMemcpyDtoD(void *to, void *from, size_t n) {
    return copy(to, from, n);
}
HIP hipError_t hipMemcpyHtoDAsync(void *to, void *from, size_t n, hipStream_t s) {
    return (void)s, copy(to, from, n);
}
HIP hipError_t hipMemcpyDtoHAsync(void *to, void *from, size_t n, hipStream_t s) {
    return (void)s, copy(to, from, n);
}
HIP hipError_t hipMemcpyDtoDAsync(void *to, void *from, size_t n, hipStream_t s) {
    return (void)s, copy(to, from, n);
}

static hipError_t fill(void *to, uint32_t value, size_t unit, size_t count) {
    const hipError_t status = check_range(to, unit * count, "dst");
    for (size_t k = 0; !status && k < count; k++)
        memcpy((char *)to + k * unit, &value, unit);
    return status;
}
HIP hipError_t hipMemset(void *to, int value, size_t n) {
    return fill(to, (uint32_t)value, 1, n);
}
HIP hipError_t hipMemsetAsync(void *to, int value, size_t n, hipStream_t s) {
    return (void)s, fill(to, (uint32_t)value, 1, n);
}
HIP hipError_t hipMemsetD8(void *to, unsigned char value, size_t n) {
    return fill(to, value, 1, n);
}
HIP hipError_t hipMemsetD8Async(void *to, unsigned char value, size_t n, hipStream_t s) {
    return (void)s, fill(to, value, 1, n);
}
HIP hipError_t hipMemsetD32(void *to, int value, size_t n) {
    return fill(to, (uint32_t)value, 4, n);
}
HIP hipError_t hipMemsetD32Async(void *to, int value, size_t n, hipStream_t s) {
    return (void)s, fill(to, (uint32_t)value, 4, n);
}

HIP hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t at) {
    uint64_t begin, size;
    if (!gfx9_memory_find((uint64_t)(uintptr_t)at, &begin, &size))
        return hip_fail(hipErrorNotFound, "%p lies in no allocation", at);
    if (base) *base = (void *)(uintptr_t)begin;
    if (bytes) *bytes = size;
    return hipSuccess;
}

/* ---- streams and events ---- */
struct hip_stream {
    unsigned flags;
};
struct hip_event {
    struct timespec at;
    int recorded;
};
HIP hipError_t hipStreamCreateWithFlags(hipStream_t *s, unsigned flags) {
    if (!s) return hip_fail(hipErrorInvalidValue, "stream is NULL");
    *s = calloc(1, sizeof **s);
    if (!*s) return hip_fail(hipErrorOutOfMemory, "out of memory");
    (*s)->flags = flags;
    return hipSuccess;
}
HIP hipError_t hipStreamCreate(hipStream_t *s) {
    return hipStreamCreateWithFlags(s, 0);
}
HIP hipError_t hipStreamDestroy(hipStream_t s) {
    return free(s), hipSuccess;
}
HIP hipError_t hipStreamSynchronize(hipStream_t s) {
    return (void)s, hipSuccess;
}
HIP hipError_t hipStreamQuery(hipStream_t s) {
    return (void)s, hipSuccess;
}
HIP hipError_t hipStreamWaitEvent(hipStream_t s, hipEvent_t e, unsigned flags) {
    return (void)s, (void)e, (void)flags, hipSuccess;
}
HIP hipError_t hipEventCreateWithFlags(hipEvent_t *e, unsigned flags) {
    (void)flags;
    if (!e) return hip_fail(hipErrorInvalidValue, "event is NULL");
    *e = calloc(1, sizeof **e);
    return *e ? hipSuccess : hip_fail(hipErrorOutOfMemory, "out of memory");
}
HIP hipError_t hipEventCreate(hipEvent_t *e) {
    return hipEventCreateWithFlags(e, 0);
}
HIP hipError_t hipEventDestroy(hipEvent_t e) {
    return free(e), hipSuccess;
}
HIP hipError_t hipEventRecord(hipEvent_t e, hipStream_t s) {
    (void)s;
    if (!e) return hip_fail(hipErrorInvalidHandle, "event is NULL");
    e->recorded = 1;
    clock_gettime(CLOCK_MONOTONIC, &e->at);
    return hipSuccess;
}
HIP hipError_t hipEventSynchronize(hipEvent_t e) {
    return (void)e, hipSuccess;
}
HIP hipError_t hipEventQuery(hipEvent_t e) {
    return (void)e, hipSuccess;
}
HIP hipError_t hipEventElapsedTime(float *ms, hipEvent_t a, hipEvent_t b) {
    if (!ms || !a || !b || !a->recorded || !b->recorded)
        return hip_fail(hipErrorInvalidHandle, "ms is NULL or an event was not recorded");
    *ms = (float)((double)(b->at.tv_sec - a->at.tv_sec) * 1e3 +
                  (double)(b->at.tv_nsec - a->at.tv_nsec) * 1e-6);
    return hipSuccess;
}

/* ---- errors ---- */
HIP hipError_t hipPeekAtLastError(void) {
    return last;
}
HIP hipError_t hipGetLastError(void) {
    const hipError_t code = last;
    last = hipSuccess;
    return code;
}
HIP const char *hipGetErrorString(hipError_t code) {
    return code == hipSuccess ? "no error" : message[0] ? message : "error";
}
static const struct {
    hipError_t code;
    const char *name;
} names[] = {{hipSuccess, "hipSuccess"},
             {hipErrorInvalidValue, "hipErrorInvalidValue"},
             {hipErrorOutOfMemory, "hipErrorOutOfMemory"},
             {hipErrorInvalidDevice, "hipErrorInvalidDevice"},
             {hipErrorInvalidImage, "hipErrorInvalidImage"},
             {hipErrorInvalidHandle, "hipErrorInvalidHandle"},
             {hipErrorNotFound, "hipErrorNotFound"},
             {hipErrorLaunchFailure, "hipErrorLaunchFailure"}};
HIP const char *hipGetErrorName(hipError_t code) {
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].code == code) return names[k].name;
    return "hipErrorUnknown";
}
