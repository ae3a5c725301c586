/* Every kernel of every device that this machine has, for tests that walk the registry. */
#ifndef BSMM_TEST_WALK_H
#define BSMM_TEST_WALK_H

#include "bsmm.h"

#include <stdbool.h>

/* The kernels that accept a product, device by device: "cpu", then "cuda:0" where there is one (the
 * first walk says "skipped: no CUDA device" where not). BSMM_TEST_DEVICE=cpu or cuda leaves the
 * other out. */
typedef struct test_walk {
    bsmm_matmul_desc *desc; /* device and kernel are set to the current ones, at the end to NULL */
    uint32_t device, kernel;
    bsmm_explanation e; /* of the current one */
} test_walk;

test_walk test_walk_begin(bsmm_matmul_desc *desc);
bool test_walk_next(test_walk *walk);
bool test_walk_on_cpu(const test_walk *walk);

/* How many kernels of the cpu a test may expect: 0 where BSMM_TEST_DEVICE leaves the cpu out. */
int test_walk_least(int on_the_cpu);

/* bsmm_matmul of host memory on any device: a GPU gets copies, and what lies behind D's buffers is
 * checked afterwards. */
bsmm_status test_multiply(const bsmm_matmul_desc *desc);

#endif
