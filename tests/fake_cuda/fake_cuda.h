/* A libcuda.so.1 without a GPU, for tests of what the host side does with a driver: device memory
 * is the heap's, launches are counted, and any entry can be told to fail. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "cuda/runtime/driver.h"

typedef struct fake_cuda {
    int devices, capability; /* of all; 90 */
    const char *failing;     /* the entry that fails ("cuMemAlloc_v2"); NULL: none */
    CUresult failure;        /* how */
    size_t free_bytes;       /* of device memory */
    int depth;               /* contexts pushed and not popped */
    int allocations;         /* made and not freed */
    int loads, launches, waits;
    char image[16];        /* the first bytes of the last module */
    CUlaunchConfig config; /* of the last launch; its attributes: */
    CUlaunchAttribute attributes[4];
    int owner; /* the device that owns all memory */
} fake_cuda;

/* The exported symbol "fake_cuda_state" is one of these. */
extern fake_cuda fake_cuda_state;

#endif
