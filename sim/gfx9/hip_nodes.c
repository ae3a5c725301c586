/* Implements the functions of HIP that add nodes to a graph. The structs have the layout of the
 * structs in HIP's headers. */
#include "hip_graph.h"
#include <stdlib.h>

typedef struct {
    uint32_t x, y, z;
} dim3;
typedef struct {
    dim3 block;
    void **extra, *function;
    dim3 grid;
    void **params;
    uint32_t shared;
} hipKernelNodeParams;
typedef struct {
    void *to;
    uint32_t unit;
    size_t height, pitch;
    uint32_t value;
    size_t width;
} hipMemsetParams;
/* Describes a position in memory by the coordinates x, y and z. If `array` is NULL, the memory is a
 * pitched buffer, and x is in bytes. */
typedef struct {
    void *array;
    size_t at[3];
    struct {
        char *memory;
        size_t pitch, width, height;
    } pointer;
} hip_place;
typedef struct {
    hip_place from, to;
    size_t extent[3];
    int kind;
} hipMemcpy3DParms;

/* Adds a node that copies or fills memory. */
static hipError_t add(hip_work **node, hip_graph *g, hip_work *const *after, size_t count,
                      const hip_work *work) {
    if (!node) return hip_fail(hipErrorInvalidValue, "node is NULL");
    return hip_graph_add(g, work, NULL, 0, after, count, node);
}

HIP hipError_t hipGraphAddEmptyNode(hip_work **node, hip_graph *g, hip_work *const *after,
                                    size_t count) {
    return add(node, g, after, count, &(hip_work){0});
}

HIP hipError_t hipGraphAddKernelNode(hip_work **node, hip_graph *g, hip_work *const *after,
                                     size_t count, const hipKernelNodeParams *p) {
    if (!node || !p) return hip_fail(hipErrorInvalidValue, "node or its parameters is NULL");
    if (!p->function) return hip_fail(hipErrorInvalidHandle, "func is NULL");
    const hip_call call = {.function = p->function,
                           .grid = {p->grid.x, p->grid.y, p->grid.z},
                           .block = {p->block.x, p->block.y, p->block.z},
                           .shared = p->shared,
                           .params = p->params,
                           .extra = p->extra};
    hip_work work = {0};
    uint8_t *arguments = NULL;
    hipError_t status = hip_prepare(&call, &work, &arguments);
    if (!status)
        status = hip_graph_add(g, &work, work.launch.kernarg, work.launch.kernarg_size, after,
                               count, node);
    return free(arguments), status;
}

HIP hipError_t hipGraphAddMemcpyNode1D(hip_work **node, hip_graph *g, hip_work *const *after,
                                       size_t count, void *to, const void *from, size_t bytes,
                                       int kind) {
    (void)kind;
    return add(node, g, after, count,
               &(hip_work){.run = hip_run_copy, .to = to, .from = from, .count = bytes});
}

/* Returns the address of the element at p->at in a pitched buffer. Stores the distance in bytes
 * between rows in pitch[0] and between slices in pitch[1]. */
static char *address_of(const hip_place *p, size_t pitch[2]) {
    pitch[0] = p->pointer.pitch, pitch[1] = p->pointer.pitch * p->pointer.height;
    return p->pointer.memory + p->at[0] + p->at[1] * pitch[0] + p->at[2] * pitch[1];
}

HIP hipError_t hipGraphAddMemcpyNode(hip_work **node, hip_graph *g, hip_work *const *after,
                                     size_t count, const hipMemcpy3DParms *p) {
    if (!p) return hip_fail(hipErrorInvalidValue, "the node's parameters are NULL");
    if (p->from.array || p->to.array)
        return hip_fail(hipErrorNotSupported, "a copy of an array is not simulated");
    if (!p->from.pointer.memory || !p->to.pointer.memory || !p->extent[0] || !p->extent[1] ||
        !p->extent[2])
        return hip_fail(hipErrorInvalidValue, "a pointer or a part of the extent is 0");
    hip_work work = {
        .run = hip_run_copy, .count = p->extent[0], .rows = {p->extent[1], p->extent[2]}};
    work.to = address_of(&p->to, work.to_pitch);
    work.from = address_of(&p->from, work.from_pitch);
    return add(node, g, after, count, &work);
}

HIP hipError_t hipGraphAddMemsetNode(hip_work **node, hip_graph *g, hip_work *const *after,
                                     size_t count, const hipMemsetParams *p) {
    if (!p) return hip_fail(hipErrorInvalidValue, "the node's parameters are NULL");
    if ((p->unit != 1 && p->unit != 2 && p->unit != 4) || !p->width || !p->height)
        return hip_fail(hipErrorInvalidValue,
                        "elementSize is %u; must be 1, 2 or 4; width and height must not be 0",
                        p->unit);
    return add(node, g, after, count,
               &(hip_work){.run = hip_run_fill,
                           .to = p->to,
                           .count = p->width,
                           .unit = p->unit,
                           .rows = {p->height},
                           .to_pitch = {p->pitch},
                           .value = p->value});
}
