/* Declares functions by which a test visits every kernel of every device of this machine. */
#ifndef BSMM_TEST_WALK_H
#define BSMM_TEST_WALK_H

#include "bsmm.h"

#include <stdbool.h>

/* Holds the state of a loop over all kernels that accept a product, on the cpu and on all GPUs.
 * Simulated GPUs compute only small products, because they are slow. The environment variable
 * BSMM_TEST_SAMPLE=n makes them compute only every n-th small product. */
typedef struct test_walk {
    /* `desc` describes the product. The loop sets its fields `device` and `kernel` to the current
     * device and kernel, and to NULL at the end. */
    bsmm_matmul_desc *desc;
    uint32_t device, kernel;
    bsmm_explanation e; /* `e` is the library's explanation of the current kernel. */
} test_walk;

test_walk test_walk_begin(bsmm_matmul_desc *desc);
bool test_walk_next(test_walk *walk);
bool test_walk_on_cpu(const test_walk *walk);

/* Returns how many cpu kernels a test may expect: 0 if the environment variable BSMM_TEST_DEVICE
 * excludes the cpu, else `on_the_cpu`. */
int test_walk_least(int on_the_cpu);

/* Runs bsmm_matmul on the device that `desc` names. The operands are in host memory. For a GPU, the
 * function copies them to device memory and copies D back, and fails the test if memory past the
 * end of D's buffers has changed. */
bsmm_status test_multiply(const bsmm_matmul_desc *desc);

#endif
