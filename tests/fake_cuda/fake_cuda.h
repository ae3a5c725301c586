/* This is a fake libcuda.so.1 without a GPU, which tests how the host code uses a driver. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "../fake_driver/fake_driver.h"
#include "cuda/runtime/driver.h"

typedef struct fake_cuda {
    fake_driver driver;
    int capability; /* Holds the compute capability times 10; initially it is 90, i.e. 9.0. */
    int depth;      /* Counts the contexts that were pushed and not popped. */
    /* Holds the configuration of the last launch, whose attributes are copied to `attributes`. */
    CUlaunchConfig config;
    CUlaunchAttribute attributes[4];
} fake_cuda;

/* The tests read and change this state of the fake driver by the symbol "fake_cuda_state". */
extern fake_cuda fake_cuda_state;

#endif
