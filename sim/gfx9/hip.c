/* Implements the functions of HIP for memory, streams and events. Every function does its work
 * before it returns, so that streams and events have nothing to wait for. */
#include "hip.h"
#include "hip_graph.h"
#include "time.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* HOST, DEVICE and MANAGED are the values of hipMemoryType in ROCm 6. */
enum { HOST = 1, DEVICE = 2, MANAGED = 3 };

static hipError_t allocate(void **at, size_t bytes, int type) {
    if (!at) return hip_fail(hipErrorInvalidValue, "a result's pointer is NULL");
    *at = sim_memory_alloc(bytes);
    if (!*at) return hip_fail(hipErrorOutOfMemory, "out of memory: %zu bytes", bytes);
    sim_memory_mark(*at, type, hip_device());
    return hipSuccess;
}
static hipError_t release(void *at) {
    return !at || sim_memory_free(at) ? hipSuccess
                                      : hip_fail(hipErrorInvalidValue, "%p is no allocation", at);
}
HIP hipError_t hipMalloc(void **at, size_t bytes) {
    return allocate(at, bytes, DEVICE);
}
HIP hipError_t hipMallocAsync(void **at, size_t bytes, hipStream_t s) {
    return (void)s, allocate(at, bytes, DEVICE);
}
HIP hipError_t hipHostMalloc(void **at, size_t bytes, unsigned flags) {
    return (void)flags, allocate(at, bytes, HOST);
}
HIP hipError_t hipMallocManaged(void **at, size_t bytes, unsigned flags) {
    return (void)flags, allocate(at, bytes, MANAGED);
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

/* Returns an error if `at` is device memory and the `bytes` bytes at `at` are not inside one
 * allocation. The function does not check host memory. */
static hipError_t check_range(const void *at, size_t bytes, const char *name) {
    uint64_t begin, size;
    if (bytes && !at) return hip_fail(hipErrorInvalidValue, "%s is NULL", name);
    if (!sim_memory_find((uint64_t)(uintptr_t)at, &begin, &size)) return hipSuccess;
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

/* Calls `row` for each row of a copy or a fill, with the addresses of the row. */
static hipError_t for_rows(const hip_work *w,
                           hipError_t (*row)(const hip_work *w, char *to, const char *from)) {
    hipError_t status = hipSuccess;
    for (size_t z = 0; z < w->rows[1] + !w->rows[1]; z++)
        for (size_t y = 0; y < w->rows[0] + !w->rows[0] && !status; y++)
            status = row(w, (char *)w->to + y * w->to_pitch[0] + z * w->to_pitch[1],
                         (const char *)w->from + y * w->from_pitch[0] + z * w->from_pitch[1]);
    return status;
}
/* Advances the model's clock by the time in which the current device moves `bytes` bytes of device
 * memory. */
static void add_traffic(double bytes) {
    const gfx9_device *d = gfx9_device_of((enum gfx9_arch)hip_arch(hip_device()));
    sim_advance_clock(bytes / d->hbm_rate + d->launch_us * 1e-6);
}

static hipError_t copy_row(const hip_work *w, char *to, const char *from) {
    /* The traffic is twice the size, because a copy reads and writes each byte. */
    add_traffic(2.0 * (double)w->count);
    return copy(to, from, w->count);
}
hipError_t hip_run_copy(hip_work *w) {
    return for_rows(w, copy_row);
}
static hipError_t queue_copy(hipStream_t s, void *to, const void *from, size_t n) {
    return hip_queue(s, &(hip_work){.run = hip_run_copy, .to = to, .from = from, .count = n});
}
HIP hipError_t hipMemcpyAsync(void *to, const void *from, size_t n, int kind, hipStream_t s) {
    return (void)kind, queue_copy(s, to, from, n);
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
    return queue_copy(s, to, from, n);
}
HIP hipError_t hipMemcpyDtoHAsync(void *to, void *from, size_t n, hipStream_t s) {
    return queue_copy(s, to, from, n);
}
HIP hipError_t hipMemcpyDtoDAsync(void *to, void *from, size_t n, hipStream_t s) {
    return queue_copy(s, to, from, n);
}

static hipError_t fill(void *to, uint32_t value, size_t unit, size_t count) {
    const size_t bytes = count > SIZE_MAX / unit ? SIZE_MAX : unit * count;
    const hipError_t status = check_range(to, bytes, "dst");
    if (!status && unit == 1) {
        memset(to, (int)(value & 255), count);
        return status;
    }
    for (size_t k = 0; !status && k < count; k++)
        memcpy((char *)to + k * unit, &value, unit);
    return status;
}
static hipError_t fill_row(const hip_work *w, char *to, const char *from) {
    (void)from;
    add_traffic((double)w->unit * (double)w->count);
    return fill(to, w->value, w->unit, w->count);
}
hipError_t hip_run_fill(hip_work *w) {
    return for_rows(w, fill_row);
}
static hipError_t queue_fill(hipStream_t s, void *to, uint32_t value, size_t unit, size_t count) {
    return hip_queue(
        s,
        &(hip_work){.run = hip_run_fill, .to = to, .value = value, .unit = unit, .count = count});
}
HIP hipError_t hipMemset(void *to, int value, size_t n) {
    return fill(to, (uint32_t)value, 1, n);
}
HIP hipError_t hipMemsetAsync(void *to, int value, size_t n, hipStream_t s) {
    return queue_fill(s, to, (uint32_t)value, 1, n);
}
HIP hipError_t hipMemsetD8(void *to, unsigned char value, size_t n) {
    return fill(to, value, 1, n);
}
HIP hipError_t hipMemsetD8Async(void *to, unsigned char value, size_t n, hipStream_t s) {
    return queue_fill(s, to, value, 1, n);
}
HIP hipError_t hipMemsetD32(void *to, int value, size_t n) {
    return fill(to, (uint32_t)value, 4, n);
}
HIP hipError_t hipMemsetD32Async(void *to, int value, size_t n, hipStream_t s) {
    return queue_fill(s, to, (uint32_t)value, 4, n);
}

HIP hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t at) {
    uint64_t begin, size;
    if (!sim_memory_find((uint64_t)(uintptr_t)at, &begin, &size))
        return hip_fail(hipErrorNotFound, "%p lies in no allocation", at);
    if (base) *base = (void *)(uintptr_t)begin;
    if (bytes) *bytes = size;
    return hipSuccess;
}

/* Names the numbers of hipPointer_attribute. All attributes are 0 for memory that HIP has not
 * allocated. */
enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_ORDINAL = 9, RANGE_START = 11, RANGE_SIZE = 12 };

static hipError_t pointer_attribute(void *to, int attribute, uint64_t at) {
    uint64_t begin = 0, size = 0;
    int type = 0, device = 0;
    if (sim_memory_find(at, &begin, &size)) sim_memory_marked(at, &type, &device);
    const int managed = type == MANAGED;
    switch (attribute) {
    case MEMORY_TYPE:
        return memcpy(to, &type, sizeof type), hipSuccess;
    case IS_MANAGED:
        return memcpy(to, &managed, sizeof managed), hipSuccess;
    case DEVICE_ORDINAL:
        return memcpy(to, &device, sizeof device), hipSuccess;
    case RANGE_START:
        return memcpy(to, &begin, sizeof begin), hipSuccess;
    case RANGE_SIZE:
        return memcpy(to, &size, sizeof size), hipSuccess;
    default:
        return hip_fail(hipErrorInvalidValue, "pointer attribute %d is not known", attribute);
    }
}

HIP hipError_t hipPointerGetAttribute(void *to, int attribute, hipDeviceptr_t at) {
    if (!to) return hip_fail(hipErrorInvalidValue, "a result's pointer is NULL");
    return pointer_attribute(to, attribute, (uint64_t)(uintptr_t)at);
}

HIP hipError_t hipDrvPointerGetAttributes(unsigned count, int *attributes, void **values,
                                          hipDeviceptr_t at) {
    hipError_t status = hipSuccess;
    if (!attributes || !values) return hip_fail(hipErrorInvalidValue, "an array is NULL");
    for (unsigned k = 0; k < count && !status; k++)
        status = pointer_attribute(values[k], attributes[k], (uint64_t)(uintptr_t)at);
    return status;
}

struct hip_stream {
    unsigned flags;
    int device;
    /* `capture` points to the graph into which the program captures the stream, or NULL if the
     * stream does work at once. */
    hip_graph *capture;
};

hip_graph **hip_capture_of(hipStream_t s) {
    return s ? &s->capture : NULL;
}

hipError_t hip_queue(hipStream_t s, const hip_work *work) {
    if (s && s->capture) return hip_graph_record(s->capture, work, NULL, 0);
    hip_work now = *work;
    return work->run(&now);
}

/* Returns an error if the stream's device is not the thread's current device. */
hipError_t hip_check_stream(hipStream_t s) {
    if (!s || s->device == hip_device()) return hipSuccess;
    return hip_fail(hipErrorInvalidHandle, "the stream is of device %d, and device %d is current",
                    s->device, hip_device());
}
struct hip_event {
    /* `at` is the time at which the event was recorded, in seconds, on the time model's clock or
     * the host's clock. */
    double at;
    int recorded;
};
HIP hipError_t hipStreamCreateWithFlags(hipStream_t *s, unsigned flags) {
    if (!s) return hip_fail(hipErrorInvalidValue, "stream is NULL");
    *s = calloc(1, sizeof **s);
    if (!*s) return hip_fail(hipErrorOutOfMemory, "out of memory");
    (*s)->flags = flags, (*s)->device = hip_device();
    return hipSuccess;
}
HIP hipError_t hipStreamCreate(hipStream_t *s) {
    return hipStreamCreateWithFlags(s, 0);
}
HIP hipError_t hipStreamDestroy(hipStream_t s) {
    if (s && s->capture) hipGraphDestroy(s->capture);
    return free(s), hipSuccess;
}
HIP hipError_t hipStreamSynchronize(hipStream_t s) {
    return (void)s, hipSuccess;
}
HIP hipError_t hipThreadExchangeStreamCaptureMode(int *mode) {
    static _Thread_local int current;
    if (!mode) return hip_fail(hipErrorInvalidValue, "mode is NULL");
    const int before = current;
    current = *mode, *mode = before;
    return hipSuccess;
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
    e->recorded = 1, e->at = sim_event_time();
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
    *ms = (float)((b->at - a->at) * 1e3);
    return hipSuccess;
}

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
