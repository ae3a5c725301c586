/* Lets tests pretend to run on another processor. It is linked instead of src/base/cpu_known.c. */
#ifndef BSMM_TEST_CPU_HOOKS_H
#define BSMM_TEST_CPU_HOOKS_H

#include "base/cpu.h"

/* Makes features outside `mask` count as absent; ~0u ends that. Existing plans keep their
 * kernels. */
void bsmm_cpu_mask_features(uint32_t mask);

/* Makes `features` count as present, unless they are masked; 0 ends that. It must only be used for
 * BSMM_CPU_TWO_PORTS, which does not stand for an instruction. */
void bsmm_cpu_add_features(uint32_t features);

/* Makes `bytes` count as the size of L2; 0 ends that. */
void bsmm_cpu_pretend_l2_bytes(uint64_t bytes);

#endif
