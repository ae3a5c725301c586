/* Implements the graphs of HIP. While the program captures a stream, the stream's work is appended
 * to a graph instead of being done. A launch of the graph does its work in the order of capture. */
#include "hip_graph.h"
#include "hip.h"
#include <stdlib.h>
#include <string.h>

struct hip_graph {
    hip_work *work; /* Points to the first element of a linked list of work. */
    hip_work **end; /* Points to the pointer that will receive the next element. */
};

hip_graph *hip_graph_new(void) {
    hip_graph *g = calloc(1, sizeof *g);
    if (g) g->end = &g->work;
    return g;
}

hipError_t hip_graph_add(hip_graph *g, const hip_work *work, const void *bytes, size_t size) {
    hip_work *w = malloc(sizeof *w + size);
    if (!w) return hip_fail(hipErrorOutOfMemory, "out of memory");
    *w = *work;
    w->next = NULL, w->size = size;
    if (size) memcpy(w->bytes, bytes, size);
    w->launch.kernarg = w->bytes;
    *g->end = w, g->end = &w->next;
    return hipSuccess;
}

HIP hipError_t hipGraphDestroy(hip_graph *g) {
    if (!g) return hip_fail(hipErrorInvalidValue, "graph is NULL");
    for (hip_work *w = g->work, *next; w; w = next)
        next = w->next, free(w);
    return free(g), hipSuccess;
}

/* An executable graph owns copies of the work, because the program may destroy the captured graph
 * first. */
HIP hipError_t hipGraphInstantiate(hip_graph **executable, hip_graph *g, void **node, char *log,
                                   size_t size) {
    (void)node, (void)log, (void)size;
    if (!executable || !g) return hip_fail(hipErrorInvalidValue, "executable or graph is NULL");
    hip_graph *made = *executable = hip_graph_new();
    hipError_t status = hipSuccess;
    if (!made) return hip_fail(hipErrorOutOfMemory, "out of memory");
    for (const hip_work *w = g->work; w && !status; w = w->next)
        status = hip_graph_add(made, w, w->bytes, w->size);
    if (status) hipGraphDestroy(made), *executable = NULL;
    return status;
}

HIP hipError_t hipGraphInstantiateWithFlags(hip_graph **executable, hip_graph *g,
                                            unsigned long long flags) {
    return (void)flags, hipGraphInstantiate(executable, g, NULL, NULL, 0);
}

HIP hipError_t hipGraphExecDestroy(hip_graph *executable) {
    return hipGraphDestroy(executable);
}

HIP hipError_t hipGraphLaunch(hip_graph *executable, hipStream_t s) {
    hipError_t status = hip_check_stream(s);
    if (!executable) return hip_fail(hipErrorInvalidValue, "executable is NULL");
    for (hip_work *w = executable->work; w && !status; w = w->next)
        status = w->run(w);
    return status;
}

HIP hipError_t hipStreamBeginCapture(hipStream_t s, int mode) {
    (void)mode;
    hip_graph **capture = hip_capture_of(s);
    if (!capture) return hip_fail(hipErrorInvalidValue, "the default stream cannot be captured");
    if (*capture) return hip_fail(hipErrorInvalidValue, "the stream is being captured already");
    *capture = hip_graph_new();
    return *capture ? hipSuccess : hip_fail(hipErrorOutOfMemory, "out of memory");
}

HIP hipError_t hipStreamEndCapture(hipStream_t s, hip_graph **graph) {
    hip_graph **capture = hip_capture_of(s);
    if (!graph || !capture || !*capture)
        return hip_fail(hipErrorInvalidValue, "graph is NULL or the stream is not being captured");
    *graph = *capture, *capture = NULL;
    return hipSuccess;
}

HIP hipError_t hipStreamIsCapturing(hipStream_t s, int *status) {
    hip_graph **capture = hip_capture_of(s);
    if (!status) return hip_fail(hipErrorInvalidValue, "status is NULL");
    *status = capture && *capture;
    return hipSuccess;
}
