/* Holds one kernel launch, copy or fill that a captured stream has recorded in a graph. */
#ifndef SIM_GFX9_HIP_GRAPH_H
#define SIM_GFX9_HIP_GRAPH_H
#include "hip.h"
#include "sim.h"

typedef struct hip_graph hip_graph;
typedef struct hip_work {
    hipError_t (*run)(struct hip_work *work);
    struct hip_work *next;
    void *to; /* The destination of a copy or a fill. */
    const void *from;
    size_t count, unit;
    uint32_t value;
    hipFunction_t function; /* The kernel of a launch, whose arguments are in `bytes`. */
    gfx9_launch launch;
    size_t size;
    _Alignas(16) uint8_t bytes[];
} hip_work;

hip_graph *hip_graph_new(void);
hipError_t hip_graph_add(hip_graph *graph, const hip_work *work, const void *bytes, size_t size);

/* Returns the address at which the stream stores its graph under capture. Returns NULL for the
 * default stream, which cannot be captured. */
hip_graph **hip_capture_of(hipStream_t stream);
/* Does a copy or a fill at once. If the program captures the stream, the function adds the work to
 * the graph instead. */
hipError_t hip_queue(hipStream_t stream, const hip_work *work);
HIP hipError_t hipGraphDestroy(hip_graph *graph);
#endif
