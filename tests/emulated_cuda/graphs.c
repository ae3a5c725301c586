/* Implements graphs and events of the emulated device, for bench. The emulated device executes work
 * at once while it is captured in a graph. Launching the graph later only advances the emulated
 * clock by the time that this work took. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#pragma GCC visibility push(default)
#define ENTRY(name, symbol, parameters) int symbol parameters;
#include "../../bench/device_cuda.def"
#undef ENTRY
#pragma GCC visibility pop

/* `captured_at` is the time at which the capture began, and `launched` is the emulated time of all
 * launches, both in seconds. */
static double captured_at, launched;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int give(void **to, double value) {
    double *kept = malloc(sizeof *kept);
    if (!kept) return 2; /* Error 2 is CUDA_ERROR_OUT_OF_MEMORY. */
    *kept = value;
    *to = kept;
    return 0;
}

int cuCtxSetCurrent(void *context) {
    (void)context;
    return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
    (void)stream, (void)mode;
    captured_at = now();
    return 0;
}

int cuStreamEndCapture(void *stream, void **graph) {
    (void)stream;
    return give(graph, now() - captured_at);
}

int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
    (void)flags;
    return give(executable, *(double *)graph);
}

int cuGraphLaunch(void *executable, void *stream) {
    (void)stream;
    launched += *(double *)executable;
    return 0;
}

int cuGraphExecDestroy(void *executable) {
    free(executable);
    return 0;
}

int cuGraphDestroy(void *graph) {
    free(graph);
    return 0;
}

int cuEventCreate(void **event, unsigned int flags) {
    (void)flags;
    return give(event, 0);
}

int cuEventRecord(void *event, void *stream) {
    (void)stream;
    *(double *)event = now() + launched;
    return 0;
}

int cuEventSynchronize(void *event) {
    (void)event;
    return 0;
}

int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    *milliseconds = (float)((*(double *)end - *(double *)start) * 1e3);
    return 0;
}
