/* Visits every kernel of every device of this machine, for tests that walk the registry. */
#ifndef BSMM_TEST_WALK_H
#define BSMM_TEST_WALK_H

#include "bsmm.h"

#include <stdbool.h>

/* The kernels that accept a product, device by device: "cpu", then the GPUs of test_gpu_at.
 * BSMM_TEST_DEVICE leaves others out. Simulators are given small products alone, and of these every
 * BSMM_TEST_SAMPLEth (all unless set). */
typedef struct test_walk {
    /* The description whose `device` and `kernel` the walk sets: to the current ones, and to NULL
     * at the end. */
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

/* Runs bsmm_matmul for host memory on any device. A GPU gets copies, and the memory after D's
 * buffers is checked afterwards. */
bsmm_status test_multiply(const bsmm_matmul_desc *desc);

#endif
