/* Implements the driver functions for streams, events and graphs. The simulator does work at once
 * when the program submits it to a stream. If the program captures the stream, the simulator does
 * the work when the program launches the graph. */
#include "cuda.h"
#include "cuda_entries.h"
#include "sim.h"
#include <stdlib.h>
#include <string.h>

struct sim_graph {
    sim_work *work;
    size_t count, room;
};
struct sim_stream {
    unsigned flags;
    CUdevice device;
    uint64_t id;
    CUgraph capture;
};
struct sim_event {
    double at;
    int recorded;
};

static void free_graph(CUgraph g) {
    for (size_t k = 0; g && k < g->count; k++)
        free(g->work[k].arguments);
    if (g) free(g->work);
    free(g);
}

static CUresult append(CUgraph g, const sim_work *work) {
    if (g->count == g->room) {
        const size_t room = g->room ? 2 * g->room : 16;
        sim_work *more = realloc(g->work, room * sizeof *more);
        if (!more) return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        g->work = more, g->room = room;
    }
    sim_work *w = &g->work[g->count];
    *w = *work;
    if (w->arguments) {
        w->arguments = malloc(work->argument_bytes + 1);
        if (!w->arguments) return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        memcpy(w->arguments, work->arguments, work->argument_bytes);
    }
    g->count++;
    return CUDA_SUCCESS;
}

/* Advances the time model's clock by the time that the current device needs to read or write
 * `bytes` bytes of its memory. */
static void add_traffic(double bytes) {
    const sim_device *d = sim_device_of(sim_current_device());
    if (d) sim_advance_clock(ptx_traffic_seconds(d->arch, bytes));
}

static CUresult perform(const sim_work *w) {
    if (w->function) return sim_launch(w);
    if (sim_time_mode()) add_traffic((w->from ? 2.0 : 1.0) * (double)w->bytes);
    if (w->from) return memmove(w->to, w->from, w->bytes), CUDA_SUCCESS;
    for (size_t k = 0; k < w->bytes; k += w->unit)
        memcpy((char *)w->to + k, &w->value, w->unit);
    return CUDA_SUCCESS;
}

CUresult sim_submit(CUstream s, const sim_work *work) {
    return (uintptr_t)s > 2 && s->capture ? append(s->capture, work) : perform(work);
}

CU CUresult cuStreamCreate(CUstream *s, unsigned flags) {
    if (!s) return sim_fail(CUDA_ERROR_INVALID_VALUE, "stream is NULL");
    *s = calloc(1, sizeof **s);
    if (!*s) return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    /* `count` is the number of the stream that was created last. The first one gets the number 3,
     * because CUDA's default streams have the numbers 1 and 2. */
    static uint64_t count = 2;
    (*s)->flags = flags, (*s)->device = sim_current_device();
    (*s)->id = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}
CU CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority) {
    return (void)priority, cuStreamCreate(s, flags);
}
CU CUresult cuStreamDestroy_v2(CUstream s) {
    if ((uintptr_t)s <= 2) return sim_fail(CUDA_ERROR_INVALID_HANDLE, "the stream was not created");
    free_graph(s->capture);
    free(s);
    return CUDA_SUCCESS;
}
CU CUresult cuStreamSynchronize(CUstream s) {
    return (void)s, CUDA_SUCCESS;
}
CU CUresult cuStreamQuery(CUstream s) {
    return (void)s, CUDA_SUCCESS;
}
CU CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
    return (void)s, (void)e, (void)flags, CUDA_SUCCESS;
}

static CUdevice device_of(CUstream s) {
    return (uintptr_t)s > 2 ? s->device : sim_current_device();
}
CU CUresult cuStreamGetCtx(CUstream s, CUcontext *context) {
    if (!context) return sim_fail(CUDA_ERROR_INVALID_VALUE, "context is NULL");
    *context = sim_context_of(device_of(s));
    return CUDA_SUCCESS;
}
CU CUresult cuStreamGetDevice(CUstream s, CUdevice *device) {
    if (!device) return sim_fail(CUDA_ERROR_INVALID_VALUE, "device is NULL");
    *device = device_of(s);
    return CUDA_SUCCESS;
}
CU CUresult cuStreamGetFlags(CUstream s, unsigned *flags) {
    if (!flags) return sim_fail(CUDA_ERROR_INVALID_VALUE, "flags is NULL");
    *flags = (uintptr_t)s > 2 ? s->flags : 0;
    return CUDA_SUCCESS;
}
/* All streams have the same priority. */
CU CUresult cuStreamGetPriority(CUstream s, int *priority) {
    (void)s;
    if (!priority) return sim_fail(CUDA_ERROR_INVALID_VALUE, "priority is NULL");
    *priority = 0;
    return CUDA_SUCCESS;
}
CU CUresult cuStreamGetId(CUstream s, unsigned long long *id) {
    if (!id) return sim_fail(CUDA_ERROR_INVALID_VALUE, "id is NULL");
    *id = (uintptr_t)s > 2 ? s->id : (uintptr_t)s;
    return CUDA_SUCCESS;
}

CU CUresult cuStreamIsCapturing(CUstream s, int *status) {
    if (!status) return sim_fail(CUDA_ERROR_INVALID_VALUE, "status is NULL");
    *status = (uintptr_t)s > 2 && s->capture;
    return CUDA_SUCCESS;
}
CU CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    return mode ? CUDA_SUCCESS : sim_fail(CUDA_ERROR_INVALID_VALUE, "mode is NULL");
}
CU CUresult cuStreamBeginCapture_v2(CUstream s, int mode) {
    (void)mode;
    if ((uintptr_t)s <= 2 || s->capture)
        return sim_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                        "the stream is captured already, or the default one");
    s->capture = calloc(1, sizeof *s->capture);
    return s->capture ? CUDA_SUCCESS : sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
}
CU CUresult cuStreamEndCapture(CUstream s, CUgraph *graph) {
    if ((uintptr_t)s <= 2 || !s->capture || !graph)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "the stream is not captured, or graph is NULL");
    *graph = s->capture;
    s->capture = NULL;
    return CUDA_SUCCESS;
}
CU CUresult cuGraphDestroy(CUgraph graph) {
    free_graph(graph);
    return CUDA_SUCCESS;
}
CU CUresult cuGraphExecDestroy(CUgraphExec graph) {
    return cuGraphDestroy(graph);
}
CU CUresult cuGraphInstantiateWithFlags(CUgraphExec *to, CUgraph graph, uint64_t flags) {
    CUresult status = CUDA_SUCCESS;
    (void)flags;
    if (!to || !graph) return sim_fail(CUDA_ERROR_INVALID_VALUE, "executable or graph is NULL");
    *to = calloc(1, sizeof **to);
    if (!*to) return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    for (size_t k = 0; k < graph->count && !status; k++)
        status = append(*to, &graph->work[k]);
    if (status) free_graph(*to), *to = NULL;
    return status;
}
CU CUresult cuGraphLaunch(CUgraphExec graph, CUstream s) {
    CUresult status = CUDA_SUCCESS;
    if (!graph) return sim_fail(CUDA_ERROR_INVALID_HANDLE, "graph is NULL");
    for (size_t k = 0; k < graph->count && !status; k++)
        status = sim_submit(s, &graph->work[k]);
    return status;
}

CU CUresult cuEventCreate(CUevent *e, unsigned flags) {
    (void)flags;
    if (!e) return sim_fail(CUDA_ERROR_INVALID_VALUE, "event is NULL");
    *e = calloc(1, sizeof **e);
    return *e ? CUDA_SUCCESS : sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
}
CU CUresult cuEventDestroy_v2(CUevent e) {
    free(e);
    return CUDA_SUCCESS;
}
CU CUresult cuEventRecord(CUevent e, CUstream s) {
    (void)s;
    if (!e) return sim_fail(CUDA_ERROR_INVALID_HANDLE, "event is NULL");
    e->recorded = 1, e->at = sim_event_time();
    return CUDA_SUCCESS;
}
CU CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags) {
    return (void)flags, cuEventRecord(e, s);
}
CU CUresult cuEventSynchronize(CUevent e) {
    return (void)e, CUDA_SUCCESS;
}
CU CUresult cuEventQuery(CUevent e) {
    return (void)e, CUDA_SUCCESS;
}
CU CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) {
    if (!ms || !a || !b || !a->recorded || !b->recorded)
        return sim_fail(CUDA_ERROR_INVALID_HANDLE, "ms is NULL or an event was not recorded");
    *ms = (float)((b->at - a->at) * 1e3);
    return CUDA_SUCCESS;
}
