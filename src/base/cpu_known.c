/* Defines the functions by which the library learns the processor's features and its L2 size. The
 * functions are alone in this file so that a test can link its own definitions in their place and
 * pretend to run on another processor (tests/support/cpu_hooks.c). */
#include "base/cpu.h"

uint32_t bsmm_cpu_features(void) {
    return bsmm_cpu_ask_features();
}

uint64_t bsmm_cpu_l2_bytes(void) {
    return bsmm_cpu_ask_l2_bytes();
}
