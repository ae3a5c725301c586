/* Work that a captured stream keeps: a launch, a copy or a fill. */
#ifndef SIM_GFX9_HIP_GRAPH_H
#define SIM_GFX9_HIP_GRAPH_H
#include "hip.h"
#include "sim.h"

typedef struct hip_graph hip_graph;
typedef struct hip_work {
    hipError_t (*run)(struct hip_work *work);
    struct hip_work *next;
    void *to; /* of a copy or a fill */
    const void *from;
    size_t count, unit;
    uint32_t value;
    hipFunction_t function; /* of a launch, whose arguments are `bytes` */
    gfx9_launch launch;
    size_t size;
    _Alignas(16) uint8_t bytes[];
} hip_work;

hip_graph *hip_graph_new(void);
hipError_t hip_graph_add(hip_graph *graph, const hip_work *work, const void *bytes, size_t size);

/* Returns the address of the pointer to the graph that captures a stream. Returns NULL for the
 * default stream. */
hip_graph **hip_capture_of(hipStream_t stream);
/* Runs a copy or a fill at once. If the stream is being captured, adds the work to the graph
 * instead. */
hipError_t hip_queue(hipStream_t stream, const hip_work *work);
HIP hipError_t hipGraphDestroy(hip_graph *graph);
#endif
