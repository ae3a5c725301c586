/* Returns the largest size of a portion (a range of D's rows). The function has a file of its own,
 * so that a test can link another definition in its place. With a smaller size, even a small
 * product runs in several portions (tests/support/portion_hooks.c). */
#include "core/portions.h"

uint64_t bsmm_portion_most_bytes(void) {
    return BSMM_PORTION_MOST_BYTES;
}
