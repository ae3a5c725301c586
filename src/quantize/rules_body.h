/* Defines the functions that compute the scales of many adjacent blocks (a strip) at once. A file
 * includes this file after it has defined TARGET, the function attributes of its instruction set.
 * The functions are loops without branches that a compiler can vectorize. PLAIN_RULES is the
 * resulting table of functions. */
#ifndef BSMM_QUANTIZE_RULES_BODY_H
#define BSMM_QUANTIZE_RULES_BODY_H

#include "quantize/rule_set.h"
#include "recipe/rules.h"

#include <string.h>

/* The loop works on a copy of *tensor. The compiler then knows that the stores to `scales` do not
 * change the copy, and need not load its fields again in each iteration. */
#define STRIP_RULE(name, function)                                                                 \
    TARGET static void strip_##function(bsmm_strip_scales *scales, int64_t n,                      \
                                        const bsmm_tensor_step *tensor) {                          \
        const bsmm_tensor_step t = *tensor;                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            bsmm_block_step step = function(bsmm_bits_float(scales->amax[i]), &t);                 \
            scales->codes[i] = step.code;                                                          \
            scales->factors[i] = step.factor;                                                      \
        }                                                                                          \
    }
#define STRIP_ROW(name, function) [name] = strip_##function,
#define EVERY_RULE(X)             BSMM_RULES_E8M0(X) BSMM_RULES_E4M3(X) BSMM_RULES_F32(X)

EVERY_RULE(STRIP_RULE)

TARGET static bool all_within(const void *values, int64_t n, bsmm_bits_range range) {
    uint32_t outside = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)values + 4 * i, sizeof bits);
        outside |= (uint32_t)(bits - range.least > range.most - range.least) &
                   (uint32_t)(bits != range.also);
    }
    return !outside;
}

#define PLAIN_RULES .rules = {EVERY_RULE(STRIP_ROW)}, .within = all_within

#endif
