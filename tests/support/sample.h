/* Declares a function by which tests on slow, emulated processors skip some of their products. */
#ifndef BSMM_TEST_SAMPLE_H
#define BSMM_TEST_SAMPLE_H

#include <stdbool.h>

/* Returns true if the test should run its next product. With BSMM_TEST_CPU_SAMPLE=n in the
 * environment, one call of every n calls returns true, otherwise all calls do. This call is chosen
 * at random, because tests vary sizes in a fixed order. */
bool test_takes_next(void);

#endif
