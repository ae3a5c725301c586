/* Implements the graphs of HIP. An executable graph holds copies of a graph's nodes in an order
 * that respects all dependencies. Nodes without a dependency between them run in an order that
 * BSMM_SIM_SEED varies, so that a program that forgot a dependency fails with some seeds. */
#include "hip_graph.h"
#include <stdlib.h>
#include <string.h>

typedef struct edge {
    hip_work *from, *to;
} edge;
struct hip_graph {
    hip_work **nodes; /* `nodes` holds the nodes in the order in which the program added them. */
    edge *edges;
    size_t count, edge_count;
};

static hipError_t no_memory(void) {
    return hip_fail(hipErrorOutOfMemory, "out of memory");
}

/* Makes room for one more element of `bytes` bytes after `count` elements. */
static bool grow(void *array, size_t count, size_t bytes) {
    void *old, *larger;
    memcpy(&old, array, sizeof old);
    if (count & (count - 1)) return true; /* The capacity is the next power of two. */
    larger = realloc(old, (count ? 2 * count : 1) * bytes);
    if (larger) memcpy(array, &larger, sizeof larger);
    return larger != NULL;
}

static bool has_node(const hip_graph *g, const hip_work *node) {
    for (size_t k = 0; k < g->count; k++)
        if (g->nodes[k] == node) return true;
    return false;
}

static hipError_t add_edge(hip_graph *g, hip_work *from, hip_work *to) {
    if (!has_node(g, from) || !has_node(g, to) || from == to)
        return hip_fail(hipErrorInvalidValue, "a dependency is not between two nodes of the graph");
    if (!grow(&g->edges, g->edge_count, sizeof *g->edges)) return no_memory();
    g->edges[g->edge_count++] = (edge){from, to};
    return hipSuccess;
}

HIP hipError_t hipGraphAddDependencies(hip_graph *g, hip_work *const *from, hip_work *const *to,
                                       size_t count) {
    if (!g || (count && (!from || !to)))
        return hip_fail(hipErrorInvalidValue, "graph, from or to is NULL");
    hipError_t status = hipSuccess;
    for (size_t k = 0; k < count && !status; k++)
        status = add_edge(g, from[k], to[k]);
    return status;
}

hipError_t hip_graph_add(hip_graph *g, const hip_work *work, const void *bytes, size_t size,
                         hip_work *const *after, size_t count, hip_work **made) {
    if (!g || (count && !after))
        return hip_fail(hipErrorInvalidValue, "graph or dependencies is NULL");
    for (size_t k = 0; k < count; k++)
        if (!has_node(g, after[k]))
            return hip_fail(hipErrorInvalidValue, "dependency %zu is no node of the graph", k);
    hip_work *w = malloc(sizeof *w + size);
    if (!w || !grow(&g->nodes, g->count, sizeof(void *))) return free(w), no_memory();
    *w = *work, w->size = size, w->number = g->count;
    if (size) memcpy(w->bytes, bytes, size);
    w->launch.kernarg = w->bytes;
    g->nodes[g->count++] = w;
    hipError_t status = hipSuccess;
    for (size_t k = 0; k < count && !status; k++)
        status = add_edge(g, after[k], w);
    if (made) *made = w;
    return status;
}

hipError_t hip_graph_record(hip_graph *g, const hip_work *work, const void *bytes, size_t size) {
    hip_work *const last = g->count ? g->nodes[g->count - 1] : NULL;
    return hip_graph_add(g, work, bytes, size, &last, last != NULL, NULL);
}

HIP hipError_t hipGraphCreate(hip_graph **graph, unsigned flags) {
    if (!graph || flags) return hip_fail(hipErrorInvalidValue, "graph is NULL or flags is not 0");
    *graph = calloc(1, sizeof **graph);
    return *graph ? hipSuccess : no_memory();
}

HIP hipError_t hipGraphDestroy(hip_graph *g) {
    if (!g) return hip_fail(hipErrorInvalidValue, "graph is NULL");
    for (size_t k = 0; k < g->count; k++)
        free(g->nodes[k]);
    return free(g->nodes), free(g->edges), free(g), hipSuccess;
}

/* Copies up to *count nodes to `nodes`, and stores the number of copied nodes in *count. If `nodes`
 * is NULL, stores the number of all nodes. */
HIP hipError_t hipGraphGetNodes(hip_graph *g, hip_work **nodes, size_t *count) {
    if (!g || !count) return hip_fail(hipErrorInvalidValue, "graph or count is NULL");
    if (!nodes || *count > g->count) *count = g->count;
    if (nodes && *count) memcpy(nodes, g->nodes, *count * sizeof(void *));
    return hipSuccess;
}

/* Copies the nodes of `g` to `made`. A node is copied only after all nodes on which it depends. Of
 * the nodes that may be copied next, a random one is chosen. waits[k] is the number of nodes that
 * must still be copied before node k. It becomes TAKEN when node k has been copied. */
static hipError_t sort_nodes(const hip_graph *g, hip_graph *made, size_t *waits) {
    enum { TAKEN = -1 };
    uint64_t state = hip_setting("BSMM_SIM_SEED", 1);
    for (size_t k = 0; k < g->edge_count; k++)
        waits[g->edges[k].to->number]++;
    while (made->count < g->count) {
        size_t chosen = g->count, ready = 0;
        for (size_t k = 0; k < g->count; k++) {
            if (waits[k]) continue;
            state = state * 6364136223846793005u + 1442695040888963407u;
            if ((state >> 33) % ++ready == 0) chosen = k;
        }
        if (!ready) return hip_fail(hipErrorInvalidValue, "the nodes depend on each other");
        const hip_work *w = g->nodes[chosen];
        const hipError_t status = hip_graph_add(made, w, w->bytes, w->size, NULL, 0, NULL);
        if (status) return status;
        waits[chosen] = (size_t)TAKEN;
        for (size_t k = 0; k < g->edge_count; k++)
            if (g->edges[k].from == w) waits[g->edges[k].to->number]--;
    }
    return hipSuccess;
}

/* An executable graph owns copies of the work, because the program may destroy the original graph
 * before it launches the executable graph. */
HIP hipError_t hipGraphInstantiate(hip_graph **executable, hip_graph *g, void **node, char *log,
                                   size_t size) {
    if (node) *node = NULL;
    if (log && size) *log = 0;
    if (!executable || !g) return hip_fail(hipErrorInvalidValue, "executable or graph is NULL");
    hip_graph *made = *executable = calloc(1, sizeof *made);
    size_t *waits = calloc(g->count + 1, sizeof *waits);
    hipError_t status = made && waits ? sort_nodes(g, made, waits) : no_memory();
    free(waits);
    if (status && made) hipGraphDestroy(made), *executable = NULL;
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
    for (size_t k = 0; k < executable->count && !status; k++)
        if (executable->nodes[k]->run) status = executable->nodes[k]->run(executable->nodes[k]);
    return status;
}

HIP hipError_t hipStreamBeginCapture(hipStream_t s, int mode) {
    (void)mode;
    hip_graph **capture = hip_capture_of(s);
    if (!capture) return hip_fail(hipErrorInvalidValue, "the default stream cannot be captured");
    if (*capture) return hip_fail(hipErrorInvalidValue, "the stream is being captured already");
    return hipGraphCreate(capture, 0);
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
