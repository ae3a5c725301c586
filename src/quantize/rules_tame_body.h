/* Defines the fast path that computes e4m3 scales on a CPU. It is for "tame" blocks, i.e. blocks
 * whose largest magnitude (amax) is 0 or neither very large nor very small. Instead of dividing, it
 * looks up the factor of each scale code in a table. This file is included once for each
 * instruction set, after TARGET was defined as the function attributes of that set. TAME_RULES is
 * the resulting table of functions. */
#ifndef BSMM_QUANTIZE_RULES_TAME_BODY_H
#define BSMM_QUANTIZE_RULES_TAME_BODY_H

#include "quantize/rules_body.h"

#define TAME_RULE(name, function)                                                                  \
    TARGET static void tame_##function(bsmm_strip_scales *scales, int64_t n,                       \
                                       const bsmm_tensor_step *tensor) {                           \
        const bsmm_tensor_step t = *tensor;                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            scales->codes[i] = function##_code(bsmm_bits_float(scales->amax[i]), &t, true);        \
    }                                                                                              \
    TARGET static void factors_##function(const bsmm_tensor_step *tensor,                          \
                                          float factors[BSMM_E4M3_CODES]) {                        \
        const bsmm_tensor_step t = *tensor;                                                        \
        for (uint32_t code = 0; code < BSMM_E4M3_CODES; code++)                                    \
            factors[code] = function##_factor(code, &t);                                           \
    }
#define TAME_ROW(name, function) [name] = {tame_##function, factors_##function},

BSMM_RULES_E4M3(TAME_RULE)

#define TAME_RULES .tame = {BSMM_RULES_E4M3(TAME_ROW)}

#endif
