/* Implements AMD GPUs as devices of bench, through libamdhip64.so. */
#include "device_hip.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAPTURE_THREAD_LOCAL = 1,
    STREAM_NON_BLOCKING = 1,
    ATTRIBUTE_L2_BYTES = 19,
    POINTER_ATTRIBUTE_DEVICE = 9,
    PROBE_BYTES = 64
};

typedef struct hip_state {
#define ENTRY(name, symbol, parameters) int(*name) parameters;
#include "device_hip.def"
#undef ENTRY
    void *library, *stream, *start, *end;
    int ordinal, l2_bytes;
} hip_state;

static const struct {
    const char *symbol;
    size_t offset;
} entries[] = {
#define ENTRY(name, symbol, parameters) {#symbol, offsetof(hip_state, name)},
#include "device_hip.def"
#undef ENTRY
};

static bool succeeded(int result, const char *call) {
    return result == 0 || bench_device_fail("%s: HIP error %d", call, result);
}
#define CALL(hip, name, ...) succeeded((hip)->name(__VA_ARGS__), #name)

static bool take_entries(hip_state *hip) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *symbol = dlsym(hip->library, entries[i].symbol);
        memcpy((char *)hip + entries[i].offset, &symbol, sizeof symbol);
        if (!symbol)
            return bench_device_fail("libamdhip64.so has no %s: it is too old", entries[i].symbol);
    }
    return true;
}

/* Opens the driver library and finds the driver's number of the device. `probe` is memory that the
 * bsmm library has allocated on the device, and the driver reports the device of this memory. */
static bool open_device(hip_state *hip, const char *name, const char *const *libraries,
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

static void close_device(hip_state *hip) {
    if (!hip) return;
    if (hip->start) hip->event_destroy(hip->start);
    if (hip->end) hip->event_destroy(hip->end);
    if (hip->stream) hip->stream_destroy(hip->stream);
    free(hip);
}

void *bench_hip_open(const char *name, const char *const *libraries) {
    void *probe;
    if (bsmm_allocate_memory(name, PROBE_BYTES, &probe) != BSMM_OK) {
        bench_device_fail("%s", bsmm_error_message());
        return NULL;
    }
    hip_state *hip = calloc(1, sizeof *hip);
    const bool opened = hip && open_device(hip, name, libraries, probe);
    bsmm_free_memory(name, probe);
    if (opened) return hip;
    close_device(hip);
    return NULL;
}

void bench_hip_close(void *state) {
    close_device(state);
}

static uint64_t cache_bytes(const void *state) {
    return (uint64_t)((const hip_state *)state)->l2_bytes;
}

void *bench_hip_stream(const void *state) {
    return ((const hip_state *)state)->stream;
}

bool bench_hip_allocate(void *state, uint64_t bytes, void **memory) {
    hip_state *hip = state;
    const int result = hip->alloc(memory, bytes);
    if (result == 0) return true;
    *memory = NULL;
    return bench_device_fail("alloc: OUT_OF_MEMORY (%d)", result);
}

void bench_hip_release(void *state, void *memory) {
    ((hip_state *)state)->free(memory);
}

/* Copies host memory to the device. The driver's call may return before its last bytes arrive. The
 * stream of bench does not wait for them, because the copy is in the default stream, so this
 * function waits. */
bool bench_hip_write(void *state, void *to, const void *from, uint64_t bytes) {
    hip_state *hip = state;
    return CALL(hip, to_device, to, from, bytes) && CALL(hip, stream_wait, NULL);
}

bool bench_hip_read(void *state, void *to, const void *from, uint64_t bytes) {
    hip_state *hip = state;
    return CALL(hip, from_device, to, from, bytes);
}

bool bench_hip_copy(void *state, void *to, const void *from, uint64_t bytes) {
    hip_state *hip = state;
    return CALL(hip, copy, to, from, bytes, hip->stream);
}

bool bench_hip_fill_words(void *state, void *to, uint32_t word, uint64_t count) {
    hip_state *hip = state;
    return count == 0 || CALL(hip, fill_words, to, (int)word, count, hip->stream);
}

bool bench_hip_wait(void *state) {
    hip_state *hip = state;
    return CALL(hip, stream_wait, hip->stream);
}

bool bench_hip_start_time(void *state) {
    hip_state *hip = state;
    return CALL(hip, event_record, hip->start, hip->stream);
}

bool bench_hip_finish_time(void *state, double *seconds) {
    hip_state *hip = state;
    float milliseconds = 0;
    const bool done = CALL(hip, event_record, hip->end, hip->stream) &&
                      CALL(hip, event_wait, hip->end) &&
                      CALL(hip, elapsed, &milliseconds, hip->start, hip->end);
    *seconds = (double)milliseconds * 1e-3;
    return done;
}

bool bench_hip_begin_capture(void *state) {
    hip_state *hip = state;
    return CALL(hip, capture_begin, hip->stream, CAPTURE_THREAD_LOCAL);
}

bool bench_hip_end_capture(void *state, bench_graph *graph) {
    hip_state *hip = state;
    void *broken = NULL;
    if (graph)
        return CALL(hip, capture_end, hip->stream, &graph->graph) &&
               CALL(hip, instantiate, &graph->executable, graph->graph, NULL, NULL, 0);
    hip->capture_end(hip->stream, &broken);
    if (broken) hip->graph_destroy(broken);
    return true;
}

bool bench_hip_launch(void *state, const bench_graph *graph) {
    hip_state *hip = state;
    return CALL(hip, launch, graph->executable, hip->stream);
}

void bench_hip_forget(void *state, bench_graph *graph) {
    hip_state *hip = state;
    if (graph->executable) hip->executable_destroy(graph->executable);
    hip->graph_destroy(graph->graph);
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
    BENCH_HIP_OPERATIONS,
    .start_time = bench_hip_start_time,
    .finish_time = bench_hip_finish_time,
    .cache_bytes = cache_bytes,
};
