/* Makes one CUDA graph for each class of batches, i.e. for 1, 2, 4, ... and 512 rows. With a graph,
 * the products of all layers need a single launch. The file opens the CUDA driver by dlopen, so
 * that the program compiles without NVIDIA's headers. */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_ORDINAL = 9, NON_BLOCKING = 1, CAPTURE_THREAD_LOCAL = 1 };

struct engine_graphs {
    int (*attribute)(void *value, int attribute, uint64_t pointer);
    int (*device)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*create_stream)(void **stream, unsigned flags);
    int (*destroy_stream)(void *stream);
    int (*begin)(void *stream, int mode);
    int (*end)(void *stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, void *stream);
    int (*destroy_executable)(void *executable);
    int (*destroy_graph)(void *graph);
    void *executables[ENGINE_CLASSES];
};

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {
    {"cuPointerGetAttribute", offsetof(engine_graphs, attribute)},
    {"cuDeviceGet", offsetof(engine_graphs, device)},
    {"cuDevicePrimaryCtxRetain", offsetof(engine_graphs, retain)},
    {"cuCtxSetCurrent", offsetof(engine_graphs, set_current)},
    {"cuStreamCreate", offsetof(engine_graphs, create_stream)},
    {"cuStreamDestroy_v2", offsetof(engine_graphs, destroy_stream)},
    {"cuStreamBeginCapture_v2", offsetof(engine_graphs, begin)},
    {"cuStreamEndCapture", offsetof(engine_graphs, end)},
    {"cuGraphInstantiateWithFlags", offsetof(engine_graphs, instantiate)},
    {"cuGraphLaunch", offsetof(engine_graphs, launch)},
    {"cuGraphExecDestroy", offsetof(engine_graphs, destroy_executable)},
    {"cuGraphDestroy", offsetof(engine_graphs, destroy_graph)},
};

static bool succeeded(int result, const char *call) {
    if (result) fprintf(stderr, "%s: CUDA error %d\n", call, result);
    return result == 0;
}

/* Finds the functions of the driver that bsmm has opened. A simulated GPU has a driver of its own.
 */
static bool find_functions(const char *device, engine_graphs *g) {
    const bool simulated = strncmp(device, "sim:", 4) == 0;
    const char *file = simulated ? "libbsmm_sim_cuda.so.1" : "libcuda.so.1";
    void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; library && i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = dlsym(library, functions[i].symbol);
        memcpy((char *)g + functions[i].offset, &symbol, sizeof symbol);
        if (symbol) continue;
        fprintf(stderr, "%s has no %s\n", file, functions[i].symbol);
        return false;
    }
    if (!library) fprintf(stderr, "%s is not loaded\n", file);
    return library != NULL;
}

/* Makes the context in which bsmm has allocated memory the current one, and creates a stream in
 * it. */
static bool make_stream(engine *e, const engine_graphs *g) {
    int ordinal = 0, device = 0;
    void *context;
    return succeeded(g->attribute(&ordinal, DEVICE_ORDINAL, (uintptr_t)e->hidden), "ordinal") &&
           succeeded(g->device(&device, ordinal), "device") &&
           succeeded(g->retain(&context, device), "context") &&
           succeeded(g->set_current(context), "context") &&
           succeeded(g->create_stream(&e->stream, NON_BLOCKING), "stream");
}

/* Captures the products of a batch in a graph. The stream records the work and runs nothing. Even
 * if a product fails, the capture must end, because the stream is unusable otherwise. */
static bool capture(const engine *e, engine_graphs *g, int index) {
    void *graph = NULL;
    if (!succeeded(g->begin(e->stream, CAPTURE_THREAD_LOCAL), "begin capture")) return false;
    const bool queued = engine_queue(e, (int64_t)1 << index);
    const bool captured = succeeded(g->end(e->stream, &graph), "end capture");
    const bool made = queued && captured &&
                      succeeded(g->instantiate(&g->executables[index], graph, 0), "instantiate");
    if (graph) g->destroy_graph(graph);
    return made;
}

bool engine_capture(engine *e) {
    const bool nvidia =
        strncmp(e->device, "cuda:", 5) == 0 || strncmp(e->device, "sim:sm_", 7) == 0;
    if (!nvidia) return true;
    e->graphs = calloc(1, sizeof *e->graphs);
    if (!e->graphs || !find_functions(e->device, e->graphs) || !make_stream(e, e->graphs))
        return false;
    for (int index = 0; index < ENGINE_CLASSES; index++)
        if (!capture(e, e->graphs, index)) return false;
    return true;
}

bool engine_launch(const engine *e, int index) {
    return succeeded(e->graphs->launch(e->graphs->executables[index], e->stream), "launch");
}

void engine_free_graphs(engine *e) {
    engine_graphs *g = e->graphs;
    if (!g) return;
    for (int index = 0; index < ENGINE_CLASSES; index++)
        if (g->executables[index]) g->destroy_executable(g->executables[index]);
    if (e->stream) g->destroy_stream(e->stream);
    free(g);
    e->graphs = NULL;
    e->stream = NULL;
}
