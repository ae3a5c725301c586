/* Implements AMD GPUs as devices of bench, through libamdhip64.so. */
#include "device_hip.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAM_NON_BLOCKING = 1,
    ATTRIBUTE_L2_BYTES = 19,
    POINTER_ATTRIBUTE_DEVICE = 9,
    PROBE_BYTES = 64
};

typedef struct gpu_state {
#define ENTRY(name, symbol, parameters) int(*name) parameters;
#include "device_hip.def"
#undef ENTRY
    void *library, *stream, *start, *end;
    int ordinal, l2_bytes;
} gpu_state;

static const struct {
    const char *symbol;
    size_t offset;
} entries[] = {
#define ENTRY(name, symbol, parameters) {#symbol, offsetof(gpu_state, name)},
#include "device_hip.def"
#undef ENTRY
};

static bool succeeded(int result, const char *call) {
    return result == 0 || bench_device_fail("%s: HIP error %d", call, result);
}
#define CALL(hip, name, ...) succeeded((hip)->name(__VA_ARGS__), #name)

#define DRIVER          "libamdhip64.so"
#define OPERATION(name) bench_hip_##name
#include "device_driver_body.h"

/* Opens the driver's library and finds the driver's number of the device. `probe` is memory that
 * the bsmm library has allocated on the device. The driver is asked which device has this
 * memory. */
static bool open_device(gpu_state *hip, const char *name, const char *const *libraries,
                        const void *probe) {
    for (; *libraries && !hip->library; libraries++)
        hip->library = dlopen(*libraries, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!hip->library) return bench_device_fail("%s: its driver is not open", name);
    return take_entries(hip) &&
           CALL(hip, pointer_attribute, &hip->ordinal, POINTER_ATTRIBUTE_DEVICE, probe) &&
           CALL(hip, device_attribute, &hip->l2_bytes, ATTRIBUTE_L2_BYTES, hip->ordinal) &&
           CALL(hip, set_device, hip->ordinal) &&
           CALL(hip, stream_create, &hip->stream, STREAM_NON_BLOCKING) &&
           CALL(hip, event_create, &hip->start) && CALL(hip, event_create, &hip->end);
}

void *bench_hip_open(const char *name, const char *const *libraries) {
    void *probe;
    if (bsmm_allocate_memory(name, PROBE_BYTES, &probe) != BSMM_OK) {
        bench_device_fail("%s", bsmm_error_message());
        return NULL;
    }
    gpu_state *hip = calloc(1, sizeof *hip);
    const bool opened = hip && open_device(hip, name, libraries, probe);
    bsmm_free_memory(name, probe);
    if (opened) return hip;
    bench_hip_close(hip);
    return NULL;
}

bool bench_hip_allocate(void *state, uint64_t bytes, void **memory) {
    gpu_state *hip = state;
    const int result = hip->alloc(memory, bytes);
    if (result == 0) return true;
    *memory = NULL;
    return bench_device_fail("alloc: OUT_OF_MEMORY (%d)", result);
}

void bench_hip_release(void *state, void *memory) {
    ((gpu_state *)state)->free(memory);
}

/* Copies host memory to the device and waits until the copy is complete. The driver's call may
 * return earlier, and bench's stream does not wait for the default stream, in which the copy
 * runs. */
bool bench_hip_write(void *state, void *to, const void *from, uint64_t bytes) {
    gpu_state *hip = state;
    return CALL(hip, to_device, to, from, bytes) && CALL(hip, stream_wait, NULL);
}

bool bench_hip_read(void *state, void *to, const void *from, uint64_t bytes) {
    gpu_state *hip = state;
    return CALL(hip, from_device, to, from, bytes);
}

bool bench_hip_copy(void *state, void *to, const void *from, uint64_t bytes) {
    gpu_state *hip = state;
    return CALL(hip, copy, to, from, bytes, hip->stream);
}

bool bench_hip_fill_words(void *state, void *to, uint32_t word, uint64_t count) {
    gpu_state *hip = state;
    return count == 0 || CALL(hip, fill_words, to, (int)word, count, hip->stream);
}

bool bench_hip_end_capture(void *state, bench_graph *graph) {
    gpu_state *hip = state;
    void *broken = NULL;
    if (graph)
        return CALL(hip, capture_end, hip->stream, &graph->graph) &&
               CALL(hip, instantiate, &graph->executable, graph->graph, NULL, NULL, 0);
    hip->capture_end(hip->stream, &broken);
    if (broken) hip->graph_destroy(broken);
    return true;
}

static void *open_gpu(const char *name) {
    static const char *const libraries[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                            "libamdhip64.so.5", NULL};
    return bench_hip_open(name, libraries);
}

const bench_device_kind bench_device_hip = {
    .name = "hip",
    .known = "mi300x",
    .open = open_gpu,
    BENCH_OPERATIONS(hip),
    .start_time = bench_hip_start_time,
    .finish_time = bench_hip_finish_time,
    .cache_bytes = cache_bytes,
};
