/* Declares functions by which tests on emulated processors and simulated GPUs, which are slow, skip
 * some of their products. */
#ifndef BSMM_TEST_SAMPLE_H
#define BSMM_TEST_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if the test should run its next product. With BSMM_TEST_CPU_SAMPLE=n in the
 * environment, one of every n calls returns true. Which of the n calls it is, is chosen at random.
 * Tests vary sizes in a fixed order, so every n-th product could otherwise have the same size.
 * Without this variable, every call returns true. */
bool test_takes_next(void);

/* Returns n if BSMM_TEST_SAMPLE=n is in the environment, otherwise 1. On simulated GPUs, tests then
 * run every n-th product. */
uint32_t test_sample_step(void);

#endif
