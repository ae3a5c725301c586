#include "sample.h"

#include "operand.h"

#include <stdlib.h>

/* Returns the number that an environment variable holds, or 1 if it holds none or 0. */
static uint32_t number_in(const char *variable) {
    const char *text = getenv(variable);
    const uint32_t n = text ? (uint32_t)strtoul(text, NULL, 10) : 0;
    return n ? n : 1;
}

uint32_t test_sample_step(void) {
    return number_in("BSMM_TEST_SAMPLE");
}

bool test_takes_next(void) {
    static rng r = {1};
    static uint32_t turn, taken;
    const uint32_t n = number_in("BSMM_TEST_CPU_SAMPLE");
    if (turn % n == 0) taken = rng_below(&r, n);
    return turn++ % n == taken;
}
