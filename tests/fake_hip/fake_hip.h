/* A fake libamdhip64.so.6 without a GPU, which tests how the host code uses a driver. Device memory
 * is on the heap, launches are counted, and any function can be made to fail. */
#ifndef FAKE_HIP_H
#define FAKE_HIP_H

#include "amdgpu/runtime/driver.h"

typedef struct fake_hip {
    /* `devices` counts the fake GPUs. Their architecture is gfx9 followed by `minor`; initially
     * `minor` is 4, i.e. gfx94x. */
    int devices, minor;
    int version;         /* The driver reports this version of the runtime; 60300000 means 6.3. */
    const char *failing; /* The name of the function that fails, for example "hipMalloc". NULL: none
                            fails. */
    hipError_t failure;  /* The error that the failing call returns. */
    size_t free_bytes;   /* The free device memory in bytes that the fake driver reports. */
    int current;
    int allocations; /* Counts the allocations that were not freed. */
    int loads, launches, waits;
    int finds;      /* Counts the searches for functions in modules. */
    char image[16]; /* Holds the first bytes of the last module that was loaded. */
    unsigned int grid[3], block[3], shared_bytes; /* Hold the configuration of the last launch. */
    void *stream;
    int owner; /* The number of the device that owns all memory, as the fake driver reports it. */
} fake_hip;

/* The tests read and change this state of the fake driver by the symbol "fake_hip_state". */
extern fake_hip fake_hip_state;

#endif
