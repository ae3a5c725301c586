/* Visits every kernel of every device of this machine, for tests that iterate over the kernel
 * table. */
#ifndef BSMM_TEST_WALK_H
#define BSMM_TEST_WALK_H

#include "bsmm.h"

#include <stdbool.h>

/* Iterates over the kernels that accept a product, device by device: "cpu", then the GPUs of
 * test_gpu_at. BSMM_TEST_DEVICE excludes other devices. Simulators get only small products. If the
 * environment variable BSMM_TEST_SAMPLE is set to n, simulators get only every n-th of the small
 * products. */
typedef struct test_walk {
    /* The description of the product. While the walk runs, its fields `device` and `kernel` name
     * the current device and kernel; afterwards they are NULL. */
    bsmm_matmul_desc *desc;
    uint32_t device, kernel;
    bsmm_explanation e; /* The library's explanation of the kernel that the walk has reached. */
} test_walk;

test_walk test_walk_begin(bsmm_matmul_desc *desc);
bool test_walk_next(test_walk *walk);
bool test_walk_on_cpu(const test_walk *walk);

/* Returns the number of cpu kernels that a test may expect: 0 if BSMM_TEST_DEVICE excludes the
 * cpu. */
int test_walk_least(int on_the_cpu);

/* Runs bsmm_matmul on the device that `desc` names, with operands in host memory. For a GPU the
 * function copies them to device memory and back, and checks that the memory after D's buffers is
 * unchanged. */
bsmm_status test_multiply(const bsmm_matmul_desc *desc);

#endif
