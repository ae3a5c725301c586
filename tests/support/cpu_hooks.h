/* Other processors for tests: linked in the place of src/base/cpu_known.c. */
#ifndef BSMM_TEST_CPU_HOOKS_H
#define BSMM_TEST_CPU_HOOKS_H

#include "base/cpu.h"

/* From now on features outside `mask` count as absent; ~0u ends that. Plans that exist keep their
 * kernels. */
void bsmm_cpu_mask_features(uint32_t mask);

/* From now on `features` count as there, where they are not masked; 0 ends that. Only of
 * BSMM_CPU_TWO_PORTS, which stands for no instruction. */
void bsmm_cpu_add_features(uint32_t features);

/* From now on that is what the second-level cache counts as; 0 ends it. */
void bsmm_cpu_pretend_l2_bytes(uint64_t bytes);

#endif
