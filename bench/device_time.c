/* Measures the time that a device takes to run graphs of work and to copy its memory. */
#include "device.h"

static const uint64_t copied_bytes = (uint64_t)512 << 20;

bool bench_device_record(bench_device *device, bench_work *work, void *context, size_t turns,
                         bench_graph *graph) {
    const bench_device_kind *kind = device->kind;
    *graph = (bench_graph){.turns = turns};
    if (!kind->begin_capture(device->state)) return false;
    bool done = true;
    for (size_t i = 0; i < turns && done; i++)
        done = work(context, i);
    if (done) return kind->end_capture(device->state, graph);
    kind->end_capture(device->state, NULL);
    return false;
}

bool bench_device_time(bench_device *device, const bench_graph *graph, bench_samples *seconds) {
    const bench_device_kind *kind = device->kind;
    double elapsed;
    return kind->start_time(device->state) && kind->launch(device->state, graph) &&
           kind->finish_time(device->state, &elapsed) &&
           !bench_samples_add(seconds, elapsed / (double)graph->turns);
}

/* Returns the time of a graph in seconds, or 0 on failure. It is the shortest of three launches,
 * because the driver defers initialization to the first launch. */
static double time_once(bench_device *device, const bench_graph *graph) {
    bench_samples seconds = {0};
    bool done = true;
    for (int i = 0; i < 3 && done; i++)
        done = bench_device_time(device, graph, &seconds);
    double best = done ? seconds.values[0] : 0;
    for (size_t i = 1; i < seconds.count; i++)
        best = seconds.values[i] < best ? seconds.values[i] : best;
    bench_samples_destroy(&seconds);
    return best;
}

bool bench_device_record_sets(bench_device *device, bench_work *work, void *context, size_t sets,
                              bench_graph *graph) {
    static const double wanted = 1e-3;
    enum { LEAST = 8, MOST = 1024 };
    if (!bench_device_record(device, work, context, sets, graph)) return false;
    if (device->kind->is_simulated) return true;
    double seconds = time_once(device, graph);
    if (seconds <= 0) return false;
    double turns = wanted / seconds < MOST ? wanted / seconds : MOST;
    size_t rounds = ((size_t)(turns > LEAST ? turns : LEAST) + sets - 1) / sets;
    if (rounds <= 1) return true;
    bench_device_forget(device, graph);
    return bench_device_record(device, work, context, rounds * sets, graph);
}

void bench_device_forget(bench_device *device, bench_graph *graph) {
    if (graph->graph) device->kind->forget(device->state, graph);
    *graph = (bench_graph){0};
}

/* Allocates a buffer for copies whose time is measured. The time of a copy on a simulated device
 * does not depend on the bytes, so the buffer is not filled there. */
static bool new_buffer(bench_device *device, uint64_t bytes, void **memory) {
    return device->kind->is_simulated ? bench_device_allocate(device, bytes, memory)
                                      : bench_device_new(device, NULL, bytes, memory);
}

bool bench_device_time_copy(bench_device *device, bench_samples *rates) {
    enum { TIMES = 4 };
    const bench_device_kind *kind = device->kind;
    const int times = bench_device_repeats(device, TIMES);
    double elapsed;
    for (int i = 0; i < 2; i++)
        if (!device->copies[i] && !new_buffer(device, copied_bytes, &device->copies[i]))
            return false;
    if (!kind->start_time(device->state)) return false;
    for (int i = 0; i < times; i++)
        if (!kind->copy(device->state, device->copies[i % 2], device->copies[1 - i % 2],
                        copied_bytes))
            return false;
    return kind->finish_time(device->state, &elapsed) &&
           !bench_samples_add(rates, 2.0 * times * (double)copied_bytes / elapsed);
}
