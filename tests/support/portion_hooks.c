#include "portion_hooks.h"

#include "core/portions.h"

static uint64_t pretended;

void bsmm_portion_pretend_most_bytes(uint64_t bytes) {
    pretended = bytes;
}

uint64_t bsmm_portion_most_bytes(void) {
    return pretended ? pretended : BSMM_PORTION_MOST_BYTES;
}
