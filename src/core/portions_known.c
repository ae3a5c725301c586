/* Defines the function that tells the largest size of a portion of D's rows. It is alone in this
 * file so that a test can link its own definition in its place, and run small products in several
 * portions (tests/support/portion_hooks.c). */
#include "core/portions.h"

uint64_t bsmm_portion_most_bytes(void) {
    return BSMM_PORTION_MOST_BYTES;
}
