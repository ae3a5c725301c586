/* The rules over a strip: loops without branches. */
#include "recipe/rules.h"

#include "quantize/recipe.h"

#define STRIP_RULE(name, function)                                                                 \
    static void strip_##function(bsmm_strip_scales *scales, int64_t n,                             \
                                 const bsmm_tensor_step *tensor) {                                 \
        const bsmm_tensor_step t = *tensor; /* which the stores below cannot change */             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            bsmm_block_step step = function(bsmm_bits_float(scales->amax[i]), &t);                 \
            scales->codes[i] = step.code;                                                          \
            scales->factors[i] = step.factor;                                                      \
        }                                                                                          \
    }
BSMM_RULES_E8M0(STRIP_RULE)
BSMM_RULES_E4M3(STRIP_RULE)
BSMM_RULES_F32(STRIP_RULE)

#define STRIP_ROW(name, function) [name] = strip_##function,
static bsmm_strip_rule *const rules[BSMM_BLOCK_RULES] = {
    BSMM_RULES_E8M0(STRIP_ROW) BSMM_RULES_E4M3(STRIP_ROW) BSMM_RULES_F32(STRIP_ROW)};

bsmm_strip_rule *bsmm_strip_rule_of(bsmm_block_rule rule) {
    return rules[rule];
}
