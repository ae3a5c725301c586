#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPTURE_THREAD_LOCAL = 1, STREAM_NON_BLOCKING = 1, ATTRIBUTE_L2_BYTES = 38 };
static const uint64_t copied_bytes = (uint64_t)512 << 20;

struct bench_cuda {
#define ENTRY(name, symbol, parameters) int(*name) parameters;
#include "cuda.def"
#undef ENTRY
    void *library, *stream, *start, *end;
    int l2_bytes, driver;
    uint64_t *memory; /* what reset frees */
    size_t count;
    void *copies[2]; /* of time_copy */
};

static const struct {
    const char *symbol;
    size_t offset;
} entries[] = {
#define ENTRY(name, symbol, parameters) {#symbol, offsetof(bench_cuda, name)},
#include "cuda.def"
#undef ENTRY
};

static char error[256];

const char *bench_cuda_error(void) {
    return error;
}

static bool succeeded(const bench_cuda *cuda, int result, const char *call) {
    const char *name = NULL;
    if (result == 0) return true;
    if (cuda->error_name) cuda->error_name(result, &name);
    snprintf(error, sizeof error, "%s: %s (%d)", call, name ? name : "unknown error", result);
    return false;
}
#define CALL(cuda, name, ...) succeeded(cuda, (cuda)->name(__VA_ARGS__), #name)

/* ---- opening ---- */

bool bench_cuda_is(const char *device) {
    return device && strncmp(device, "cuda", 4) == 0 && (!device[4] || device[4] == ':');
}

bool bench_cuda_find(const char *device, bsmm_local_device *info) {
    bsmm_local_device row = *info;
    const char *name = device[4] ? device : "cuda:0";
    for (uint32_t i = 0; !bsmm_local_device_at(i, &row); i++) {
        if (strcmp(row.name, name) != 0) continue;
        *info = row;
        return true;
    }
    return false;
}

static bool take_entries(bench_cuda *cuda) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *symbol = dlsym(cuda->library, entries[i].symbol);
        memcpy((char *)cuda + entries[i].offset, &symbol, sizeof symbol);
        if (symbol) continue;
        snprintf(error, sizeof error, "libcuda.so.1 has no %s: it is too old", entries[i].symbol);
        return false;
    }
    return true;
}

static bool open_device(bench_cuda *cuda, int ordinal) {
    int device;
    void *context;
    return CALL(cuda, init, 0) && CALL(cuda, device_get, &device, ordinal) &&
           CALL(cuda, device_attribute, &cuda->l2_bytes, ATTRIBUTE_L2_BYTES, device) &&
           CALL(cuda, driver_version, &cuda->driver) && CALL(cuda, retain, &context, device) &&
           CALL(cuda, set_current, context) &&
           CALL(cuda, stream_create, &cuda->stream, STREAM_NON_BLOCKING) &&
           CALL(cuda, event_create, &cuda->start, 0) && CALL(cuda, event_create, &cuda->end, 0);
}

bench_cuda *bench_cuda_open(const char *device) {
    bench_cuda *cuda = calloc(1, sizeof *cuda);
    snprintf(error, sizeof error, "no memory");
    if (!cuda) return NULL;
    cuda->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cuda->library) snprintf(error, sizeof error, "no NVIDIA driver here (%s)", dlerror());
    int ordinal = device[4] ? (int)strtol(device + 5, NULL, 10) : 0;
    if (cuda->library && take_entries(cuda) && open_device(cuda, ordinal)) return cuda;
    free(cuda);
    return NULL;
}

/* The process ends soon after; the driver takes back what is left. */
void bench_cuda_close(bench_cuda *cuda) {
    if (!cuda) return;
    bench_cuda_reset(cuda);
    free(cuda->memory);
    free(cuda);
}

void *bench_cuda_stream(const bench_cuda *cuda) {
    return cuda->stream;
}

uint64_t bench_cuda_l2_bytes(const bench_cuda *cuda) {
    return (uint64_t)cuda->l2_bytes;
}

int bench_cuda_driver(const bench_cuda *cuda) {
    return cuda->driver;
}

/* ---- memory ---- */

static bool keep(bench_cuda *cuda, uint64_t memory) {
    uint64_t *grown = realloc(cuda->memory, (cuda->count + 1) * sizeof *grown);
    snprintf(error, sizeof error, "no memory");
    if (!grown) return false;
    cuda->memory = grown;
    cuda->memory[cuda->count++] = memory;
    return true;
}

/* From pageable memory the call may return while the last bytes are still on their way, in the
 * default stream, for which ours does not wait. */
bool bench_cuda_write(bench_cuda *cuda, void *to, const void *from, uint64_t bytes) {
    return CALL(cuda, to_device, (uintptr_t)to, from, bytes) && CALL(cuda, stream_wait, NULL);
}

bool bench_cuda_new(bench_cuda *cuda, const void *from, uint64_t bytes, void **memory) {
    uint64_t made = 0;
    *memory = NULL;
    if (bytes == 0) return true;
    if (!CALL(cuda, alloc, &made, bytes) || !keep(cuda, made)) return false;
    *memory = (void *)(uintptr_t)made;
    if (from) return bench_cuda_write(cuda, *memory, from, bytes);
    return CALL(cuda, fill, made, 0x5A, bytes, cuda->stream) && bench_cuda_wait(cuda);
}

bool bench_cuda_spread(bench_cuda *cuda, void *memory, uint64_t bytes, uint64_t stride,
                       size_t sets) {
    bool done = true;
    for (size_t i = 1; i < sets && done && bytes; i++)
        done = CALL(cuda, copy, (uintptr_t)memory + i * stride, (uintptr_t)memory, bytes,
                    cuda->stream);
    return done && bench_cuda_wait(cuda);
}

bool bench_cuda_new_sets(bench_cuda *cuda, const void *from, uint64_t bytes, uint64_t stride,
                         size_t sets, void **memory) {
    return bench_cuda_new(cuda, NULL, stride * sets, memory) &&
           (bytes == 0 || bench_cuda_write(cuda, *memory, from, bytes)) &&
           bench_cuda_spread(cuda, *memory, bytes, stride, sets);
}

bool bench_cuda_read(bench_cuda *cuda, void *to, const void *from, uint64_t bytes) {
    return bytes == 0 || CALL(cuda, from_device, to, (uintptr_t)from, bytes);
}

bool bench_cuda_fill_f32(bench_cuda *cuda, void *memory, float value, uint64_t count) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return CALL(cuda, fill_words, (uintptr_t)memory, bits, count, cuda->stream);
}

bool bench_cuda_wait(bench_cuda *cuda) {
    return CALL(cuda, stream_wait, cuda->stream);
}

void bench_cuda_reset(bench_cuda *cuda) {
    cuda->stream_wait(cuda->stream);
    for (size_t i = 0; i < cuda->count; i++)
        cuda->free(cuda->memory[i]);
    cuda->count = 0;
    cuda->copies[0] = cuda->copies[1] = NULL;
}

static bool sizes_of(const bsmm_matrix *m, uint64_t *data, uint64_t *scales) {
    *scales = 0;
    if (!bsmm_data_bytes(m, data) && (!m->format.scale || !bsmm_scale_bytes(m, scales)))
        return true;
    snprintf(error, sizeof error, "%s", bsmm_error_message());
    return false;
}

bool bench_cuda_put(bench_cuda *cuda, const bsmm_matrix *host, bool copied, bsmm_matrix *there) {
    uint64_t data, scales;
    void *global = NULL;
    *there = *host;
    bool done = sizes_of(host, &data, &scales) &&
                bench_cuda_new(cuda, copied ? host->data : NULL, data, &there->data) &&
                bench_cuda_new(cuda, copied ? host->scales : NULL, scales, &there->scales) &&
                (!host->global_scale || bench_cuda_new(cuda, copied ? host->global_scale : NULL,
                                                       sizeof *host->global_scale, &global));
    there->global_scale = global;
    return done;
}

bool bench_cuda_get(bench_cuda *cuda, const bsmm_matrix *there, const bsmm_matrix *host) {
    uint64_t data, scales;
    return bench_cuda_wait(cuda) && sizes_of(there, &data, &scales) &&
           bench_cuda_read(cuda, host->data, there->data, data) &&
           bench_cuda_read(cuda, host->scales, there->scales, scales) &&
           bench_cuda_read(cuda, host->global_scale, there->global_scale,
                           host->global_scale ? sizeof *host->global_scale : 0);
}

/* ---- time ---- */

bool bench_cuda_record(bench_cuda *cuda, bench_cuda_work *work, void *context, size_t turns,
                       bench_cuda_graph *graph) {
    *graph = (bench_cuda_graph){.turns = turns};
    if (!CALL(cuda, capture_begin, cuda->stream, CAPTURE_THREAD_LOCAL)) return false;
    bool done = true;
    for (size_t i = 0; i < turns && done; i++)
        done = work(context, i);
    if (done)
        return CALL(cuda, capture_end, cuda->stream, &graph->graph) &&
               CALL(cuda, instantiate, &graph->executable, graph->graph, 0);
    cuda->capture_end(cuda->stream, &graph->graph); /* so that the stream works again */
    return false;
}

static bool finish_timing(bench_cuda *cuda, double *seconds) {
    float milliseconds = 0;
    bool done = CALL(cuda, event_record, cuda->end, cuda->stream) &&
                CALL(cuda, event_wait, cuda->end) &&
                CALL(cuda, elapsed, &milliseconds, cuda->start, cuda->end);
    *seconds = (double)milliseconds * 1e-3;
    return done;
}

bool bench_cuda_time(bench_cuda *cuda, const bench_cuda_graph *graph, bench_samples *seconds) {
    double elapsed;
    return CALL(cuda, event_record, cuda->start, cuda->stream) &&
           CALL(cuda, launch, graph->executable, cuda->stream) && finish_timing(cuda, &elapsed) &&
           !bench_samples_add(seconds, elapsed / (double)graph->turns);
}

/* The best of three, for the first pays for what is set up late; 0 if that fails. */
static double time_once(bench_cuda *cuda, const bench_cuda_graph *graph) {
    bench_samples seconds = {0};
    bool done = true;
    for (int i = 0; i < 3 && done; i++)
        done = bench_cuda_time(cuda, graph, &seconds);
    double best = done ? seconds.values[0] : 0;
    for (size_t i = 1; i < seconds.count; i++)
        best = seconds.values[i] < best ? seconds.values[i] : best;
    bench_samples_destroy(&seconds);
    return best;
}

bool bench_cuda_record_sets(bench_cuda *cuda, bench_cuda_work *work, void *context, size_t sets,
                            bench_cuda_graph *graph) {
    static const double wanted = 1e-3;
    enum { LEAST = 8, MOST = 1024 };
    if (!bench_cuda_record(cuda, work, context, sets, graph)) return false;
    double seconds = time_once(cuda, graph);
    if (seconds <= 0) return false;
    double turns = wanted / seconds < MOST ? wanted / seconds : MOST;
    size_t rounds = ((size_t)(turns > LEAST ? turns : LEAST) + sets - 1) / sets;
    if (rounds <= 1) return true;
    bench_cuda_forget(cuda, graph);
    return bench_cuda_record(cuda, work, context, rounds * sets, graph);
}

void bench_cuda_forget(bench_cuda *cuda, bench_cuda_graph *graph) {
    if (graph->executable) cuda->executable_destroy(graph->executable);
    if (graph->graph) cuda->graph_destroy(graph->graph);
    *graph = (bench_cuda_graph){0};
}

bool bench_cuda_time_copy(bench_cuda *cuda, bench_samples *rates) {
    enum { TIMES = 4 };
    double elapsed;
    for (int i = 0; i < 2; i++)
        if (!cuda->copies[i] && !bench_cuda_new(cuda, NULL, copied_bytes, &cuda->copies[i]))
            return false;
    if (!CALL(cuda, event_record, cuda->start, cuda->stream)) return false;
    for (int i = 0; i < TIMES; i++)
        if (!CALL(cuda, copy, (uintptr_t)cuda->copies[i % 2], (uintptr_t)cuda->copies[1 - i % 2],
                  copied_bytes, cuda->stream))
            return false;
    return finish_timing(cuda, &elapsed) &&
           !bench_samples_add(rates, 2.0 * TIMES * (double)copied_bytes / elapsed);
}
