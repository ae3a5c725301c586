/* Implements the operations of GPUs as devices of bench, which are the same for every vendor's
 * driver. A file defines these names before it includes this one: DRIVER is the name of the
 * driver's library for messages. OPERATION(name) is the name of an operation of the device.
 * gpu_state is a struct of the driver's functions, a stream, two events and the size of L2.
 * `entries` is a table of the names of the driver's functions and of their offsets in gpu_state.
 * CALL(gpu, name, ...) calls a function of the driver. If the call fails, it reports the failure
 * and returns false. */

static bool take_entries(gpu_state *gpu) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *symbol = dlsym(gpu->library, entries[i].symbol);
        memcpy((char *)gpu + entries[i].offset, &symbol, sizeof symbol);
        if (!symbol)
            return bench_device_fail(DRIVER " has no %s: it is too old", entries[i].symbol);
    }
    return true;
}

void OPERATION(close)(void *state) {
    gpu_state *gpu = state;
    if (!gpu) return;
    if (gpu->start) gpu->event_destroy(gpu->start);
    if (gpu->end) gpu->event_destroy(gpu->end);
    if (gpu->stream) gpu->stream_destroy(gpu->stream);
    free(gpu);
}

static uint64_t cache_bytes(const void *state) {
    return (uint64_t)((const gpu_state *)state)->l2_bytes;
}

void *OPERATION(stream)(const void *state) {
    return ((const gpu_state *)state)->stream;
}

bool OPERATION(wait)(void *state) {
    gpu_state *gpu = state;
    return CALL(gpu, stream_wait, gpu->stream);
}

bool OPERATION(start_time)(void *state) {
    gpu_state *gpu = state;
    return CALL(gpu, event_record, gpu->start, gpu->stream);
}

bool OPERATION(finish_time)(void *state, double *seconds) {
    gpu_state *gpu = state;
    float milliseconds = 0;
    const bool done = CALL(gpu, event_record, gpu->end, gpu->stream) &&
                      CALL(gpu, event_wait, gpu->end) &&
                      CALL(gpu, elapsed, &milliseconds, gpu->start, gpu->end);
    *seconds = (double)milliseconds * 1e-3;
    return done;
}

bool OPERATION(begin_capture)(void *state) {
    enum { CAPTURE_THREAD_LOCAL = 1 };
    gpu_state *gpu = state;
    return CALL(gpu, capture_begin, gpu->stream, CAPTURE_THREAD_LOCAL);
}

bool OPERATION(launch)(void *state, const bench_graph *graph) {
    gpu_state *gpu = state;
    return CALL(gpu, launch, graph->executable, gpu->stream);
}

void OPERATION(forget)(void *state, bench_graph *graph) {
    gpu_state *gpu = state;
    if (graph->executable) gpu->executable_destroy(graph->executable);
    gpu->graph_destroy(graph->graph);
}
