/* A fake libcuda.so.1 without a GPU, which tests how the host code uses a driver. Device memory is
 * on the heap, launches are counted, and any function can be made to fail. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "cuda/runtime/driver.h"

typedef struct fake_cuda {
    /* `devices` counts the fake GPUs. `capability` is their compute capability times 10; it is
       initially 90, i.e. 9.0. */
    int devices, capability;
    /* The name of the function that fails, for example "cuMemAlloc_v2". NULL: none fails. */
    const char *failing;
    CUresult failure;  /* The error that the failing call returns. */
    size_t free_bytes; /* The free device memory in bytes that the fake driver reports. */
    int depth;         /* Counts the contexts that were pushed and not popped. */
    int allocations;   /* Counts the allocations that were not freed. */
    int loads, launches, waits;
    char image[16]; /* Holds the first bytes of the last module that was loaded. */
    /* Holds the configuration of the last launch, whose attributes are copied to `attributes`. */
    CUlaunchConfig config;
    CUlaunchAttribute attributes[4];
    int owner; /* The number of the device that owns all memory, as the fake driver reports it. */
} fake_cuda;

/* The tests read and change this state of the fake driver by the symbol "fake_cuda_state". */
extern fake_cuda fake_cuda_state;

#endif
