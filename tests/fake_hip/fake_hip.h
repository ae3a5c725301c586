/* A libamdhip64.so.6 without a GPU, for tests of what the host side does with a driver: device
 * memory is the heap's, launches are counted, and any entry can be told to fail. */
#ifndef FAKE_HIP_H
#define FAKE_HIP_H

#include "amdgpu/runtime/driver.h"

typedef struct fake_hip {
    int devices, minor;  /* of all: 9.minor; 4 */
    int version;         /* 60300000 */
    const char *failing; /* the entry that fails ("hipMalloc"); NULL: none */
    hipError_t failure;  /* how */
    size_t free_bytes;   /* of device memory */
    int current;         /* device */
    int allocations;     /* made and not freed */
    int loads, launches, waits;
    char image[16];                               /* the first bytes of the last module */
    unsigned int grid[3], block[3], shared_bytes; /* of the last launch */
    void *stream;
    int owner; /* the device that owns all memory */
} fake_hip;

/* The exported symbol "fake_hip_state" is one of these. */
extern fake_hip fake_hip_state;

#endif
