/* This is a fake libcuda.so.1. Tests use it in place of a GPU and its driver to see which functions
 * of the driver the host code calls. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "../fake_driver/fake_driver.h"
#include "cuda/runtime/driver.h"

typedef struct fake_cuda {
    fake_driver driver;
    /* `capability` is the compute capability times 10. It is 90 at first, i.e. 9.0. */
    int capability;
    int depth; /* `depth` counts the contexts that were pushed and not yet popped. */
    /* `config` is the configuration of the last launch. `attributes` holds a copy of the attributes
     * to which `config` points. */
    CUlaunchConfig config;
    CUlaunchAttribute attributes[4];
} fake_cuda;

/* The tests read and change this state of the fake driver by the symbol "fake_cuda_state". */
extern fake_cuda fake_cuda_state;

#endif
