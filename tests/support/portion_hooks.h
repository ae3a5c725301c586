/* Declares a function by which a test changes the size of portions. A GPU computes a product with a
 * block-scaled D in portions, i.e. ranges of D's rows. A test that calls the function is linked
 * with portion_hooks.c in place of src/core/portions_known.c. */
#ifndef BSMM_TEST_PORTION_HOOKS_H
#define BSMM_TEST_PORTION_HOOKS_H

#include <stdint.h>

/* Makes the library see `bytes` bytes as the largest size of the fp32 results of a portion (a range
 * of D's rows that is computed at a time). 0 makes it see the real size again. */
void bsmm_portion_pretend_most_bytes(uint64_t bytes);

#endif
