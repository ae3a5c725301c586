#include "sample.h"

#include "operand.h"

#include <stdlib.h>

bool test_takes_next(void) {
    static rng r = {1};
    static uint32_t turn, taken;
    const char *sample = getenv("BSMM_TEST_CPU_SAMPLE");
    const uint32_t n = sample ? (uint32_t)strtoul(sample, NULL, 10) : 0;
    if (n == 0) return true;
    if (turn % n == 0) taken = rng_below(&r, n);
    return turn++ % n == taken;
}
