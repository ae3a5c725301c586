/* What the library takes the processor for: what it is. Nothing else stands here, so that a test
 * that defines these functions links without this file (tests/support/cpu_hooks.c). */
#include "base/cpu.h"

uint32_t bsmm_cpu_features(void) {
    return bsmm_cpu_ask_features();
}

uint64_t bsmm_cpu_l2_bytes(void) {
    return bsmm_cpu_ask_l2_bytes();
}
