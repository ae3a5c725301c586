/* The processor's features as the rest of the library sees them. This file holds nothing else: a
 * test that defines these functions itself links without this file and pretends to run on another
 * processor (tests/support/cpu_hooks.c). */
#include "base/cpu.h"

uint32_t bsmm_cpu_features(void) {
    return bsmm_cpu_ask_features();
}

uint64_t bsmm_cpu_l2_bytes(void) {
    return bsmm_cpu_ask_l2_bytes();
}
