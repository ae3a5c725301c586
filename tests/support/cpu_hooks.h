/* Declares functions by which a test changes the processor features and the cache size that the
 * library detects. A test that calls these functions is linked with cpu_hooks.c in place of
 * src/base/cpu_known.c. */
#ifndef BSMM_TEST_CPU_HOOKS_H
#define BSMM_TEST_CPU_HOOKS_H

#include "base/cpu.h"

/* Hides all processor features outside `mask` from the library. ~0u hides no feature. Plans that
 * already exist keep their kernels. */
void bsmm_cpu_mask_features(uint32_t mask);

/* Makes the library believe that the processor has the features `features`. 0 undoes this. A test
 * should add only BSMM_CPU_TWO_PORTS, because code for any other missing feature would execute
 * instructions that the processor lacks. */
void bsmm_cpu_add_features(uint32_t features);

/* Makes the library see an L2 cache of `bytes` bytes. 0 makes it see the real L2 cache again. */
void bsmm_cpu_pretend_l2_bytes(uint64_t bytes);

#endif
