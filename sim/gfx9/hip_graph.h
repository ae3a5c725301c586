/* Declares graphs and their nodes. A node is one kernel launch, copy or fill, which a program adds
 * by a call (hip_nodes.c) or records by capturing a stream. */
#ifndef SIM_GFX9_HIP_GRAPH_H
#define SIM_GFX9_HIP_GRAPH_H
#include "hip.h"
#include "sim.h"

typedef struct hip_graph hip_graph;
typedef struct hip_work {
    hipError_t (*run)(struct hip_work *work);
    void *to; /* `to` is the destination of a copy or a fill. */
    const void *from;
    /* A copy has `count` bytes a row, and a fill has `count` elements of `unit` bytes a row. A copy
     * or a fill has rows[0] rows in each of rows[1] slices, where 0 means 1. The rows of the
     * destination are to_pitch[0] bytes apart, and its slices are to_pitch[1] bytes apart. */
    size_t count, unit, rows[2], to_pitch[2], from_pitch[2];
    uint32_t value;
    /* `function` is the kernel of a launch, whose arguments are in `bytes`. */
    hipFunction_t function;
    gfx9_launch launch;
    size_t size, number; /* The node is number `number` of its graph. */
    _Alignas(16) uint8_t bytes[];
} hip_work;

/* Adds a node. The node runs after the `count` nodes that `after` lists. Unless `made` is NULL, the
 * function stores the node in *made. `bytes` holds the arguments of a kernel launch. */
hipError_t hip_graph_add(hip_graph *graph, const hip_work *work, const void *bytes, size_t size,
                         hip_work *const *after, size_t count, hip_work **made);
/* Adds work that runs after the last node of a captured graph. */
hipError_t hip_graph_record(hip_graph *graph, const hip_work *work, const void *bytes, size_t size);

/* Returns the address at which the stream stores its graph under capture. Returns NULL for the
 * default stream, which cannot be captured. */
hip_graph **hip_capture_of(hipStream_t stream);
/* Does a copy or a fill at once. If the program captures the stream, the function adds the work to
 * the graph instead. */
hipError_t hip_queue(hipStream_t stream, const hip_work *work);
/* These functions do the work of a node that copies or fills memory. */
hipError_t hip_run_copy(hip_work *work);
hipError_t hip_run_fill(hip_work *work);

/* Holds the arguments of a kernel launch, which come from a launch call or a node of a graph. */
typedef struct hip_call {
    hipFunction_t function;
    uint32_t grid[3], block[3], shared;
    void **params, **extra;
} hip_call;
/* Describes a launch and copies its arguments to *arguments, which the caller frees. */
hipError_t hip_prepare(const hip_call *call, hip_work *work, uint8_t **arguments);
uint64_t hip_setting(const char *name, uint64_t otherwise);
HIP hipError_t hipGraphDestroy(hip_graph *graph);
#endif
