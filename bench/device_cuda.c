/* Implements NVIDIA GPUs as devices of bench, through libcuda.so.1. Simulated NVIDIA GPUs share
 * most of these operations. */
#include "device_cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_NON_BLOCKING = 1, ATTRIBUTE_L2_BYTES = 38 };

typedef struct gpu_state {
#define ENTRY(name, symbol, parameters) int(*name) parameters;
#include "device_cuda.def"
#undef ENTRY
    void *library, *stream, *start, *end;
    int l2_bytes;
} gpu_state;

static const struct {
    const char *symbol;
    size_t offset;
} entries[] = {
#define ENTRY(name, symbol, parameters) {#symbol, offsetof(gpu_state, name)},
#include "device_cuda.def"
#undef ENTRY
};

static bool succeeded(const gpu_state *cuda, int result, const char *call) {
    const char *name = NULL;
    if (result == 0) return true;
    if (cuda->error_name) cuda->error_name(result, &name);
    return bench_device_fail("%s: %s (%d)", call, name ? name : "unknown error", result);
}
#define CALL(cuda, name, ...) succeeded(cuda, (cuda)->name(__VA_ARGS__), #name)

#define DRIVER          "libcuda.so.1"
#define OPERATION(name) bench_cuda_##name
#include "device_driver_body.h"

static bool open_ordinal(gpu_state *cuda, int ordinal) {
    int device;
    void *context;
    return CALL(cuda, init, 0) && CALL(cuda, device_get, &device, ordinal) &&
           CALL(cuda, device_attribute, &cuda->l2_bytes, ATTRIBUTE_L2_BYTES, device) &&
           CALL(cuda, retain, &context, device) && CALL(cuda, set_current, context) &&
           CALL(cuda, stream_create, &cuda->stream, STREAM_NON_BLOCKING) &&
           CALL(cuda, event_create, &cuda->start, 0) && CALL(cuda, event_create, &cuda->end, 0);
}

void *bench_cuda_open(void *library, int ordinal) {
    gpu_state *cuda = calloc(1, sizeof *cuda);
    if (!cuda) return NULL;
    cuda->library = library;
    if (take_entries(cuda) && open_ordinal(cuda, ordinal)) return cuda;
    bench_cuda_close(cuda);
    return NULL;
}

static void *open_cuda(const char *name) {
    const char *ordinal = strchr(name, ':');
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library) return bench_cuda_open(library, ordinal ? (int)strtol(ordinal + 1, NULL, 10) : 0);
    bench_device_fail("no NVIDIA driver here (%s)", dlerror());
    return NULL;
}

bool bench_cuda_allocate(void *state, uint64_t bytes, void **memory) {
    gpu_state *cuda = state;
    uint64_t made = 0;
    if (!CALL(cuda, alloc, &made, bytes)) return false;
    *memory = (void *)(uintptr_t)made;
    return true;
}

void bench_cuda_release(void *state, void *memory) {
    ((gpu_state *)state)->free((uintptr_t)memory);
}

/* Copies host memory to the device and waits until the copy is complete. The driver's call may
 * return earlier, and bench's stream does not wait for the default stream, in which the copy
 * runs. */
bool bench_cuda_write(void *state, void *to, const void *from, uint64_t bytes) {
    gpu_state *cuda = state;
    return CALL(cuda, to_device, (uintptr_t)to, from, bytes) && CALL(cuda, stream_wait, NULL);
}

bool bench_cuda_read(void *state, void *to, const void *from, uint64_t bytes) {
    gpu_state *cuda = state;
    return CALL(cuda, from_device, to, (uintptr_t)from, bytes);
}

bool bench_cuda_copy(void *state, void *to, const void *from, uint64_t bytes) {
    gpu_state *cuda = state;
    return CALL(cuda, copy, (uintptr_t)to, (uintptr_t)from, bytes, cuda->stream);
}

bool bench_cuda_fill_words(void *state, void *to, uint32_t word, uint64_t count) {
    gpu_state *cuda = state;
    return count == 0 || CALL(cuda, fill_words, (uintptr_t)to, word, count, cuda->stream);
}

bool bench_cuda_end_capture(void *state, bench_graph *graph) {
    gpu_state *cuda = state;
    void *broken = NULL;
    if (graph)
        return CALL(cuda, capture_end, cuda->stream, &graph->graph) &&
               CALL(cuda, instantiate, &graph->executable, graph->graph, 0);
    cuda->capture_end(cuda->stream, &broken);
    if (broken) cuda->graph_destroy(broken);
    return true;
}

static bool launch_empty(void *state, size_t count) {
    return bench_cuda_launch_empty(((gpu_state *)state)->stream, count);
}

const bench_device_kind bench_device_cuda = {
    .name = "cuda",
    .known = "h200",
    .peer = &bench_cublaslt,
    .levels = bench_cuda_levels,
    .open = open_cuda,
    BENCH_OPERATIONS(cuda),
    .start_time = bench_cuda_start_time,
    .finish_time = bench_cuda_finish_time,
    .cache_bytes = cache_bytes,
    .launch_empty = launch_empty,
    .count_launches = bench_cuda_count_launches,
};
