/* Lets tests on emulated processors leave out some of their products. */
#ifndef BSMM_TEST_SAMPLE_H
#define BSMM_TEST_SAMPLE_H

#include <stdbool.h>

/* Returns true if the test shall run its next product. If the environment has
 * BSMM_TEST_CPU_SAMPLE=n, one of n successive calls returns true, else all calls do. The place of
 * this call among the n is random, because tests try the values of a size in a fixed order. */
bool test_takes_next(void);

#endif
