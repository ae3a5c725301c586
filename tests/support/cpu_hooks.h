/* Functions with which tests change the processor features and the cache size that the library
 * sees. Tests link this file's functions instead of src/base/cpu_known.c. */
#ifndef BSMM_TEST_CPU_HOOKS_H
#define BSMM_TEST_CPU_HOOKS_H

#include "base/cpu.h"

/* Hides all processor features outside `mask` from the library; ~0u hides none. Existing plans keep
 * their kernels. */
void bsmm_cpu_mask_features(uint32_t mask);

/* Makes the library see `features` as present, unless they are masked; 0 ends this. Use it only for
 * BSMM_CPU_TWO_PORTS, because code for any other feature would execute missing instructions. */
void bsmm_cpu_add_features(uint32_t features);

/* Makes the library see an L2 cache of `bytes` bytes; 0 ends this. */
void bsmm_cpu_pretend_l2_bytes(uint64_t bytes);

#endif
