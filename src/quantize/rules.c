/* The rules over a strip: loops without branches, once for every processor and once for AVX-512. */
#include "recipe/rules.h"

#include "base/cpu.h"
#include "quantize/recipe.h"

/* The stores cannot change what `t` holds: it is a copy. */
#define STRIP_RULE(target, prefix, function)                                                       \
    target static void prefix##function(bsmm_strip_scales *scales, int64_t n,                      \
                                        const bsmm_tensor_step *tensor) {                          \
        const bsmm_tensor_step t = *tensor;                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            bsmm_block_step step = function(bsmm_bits_float(scales->amax[i]), &t);                 \
            scales->codes[i] = step.code;                                                          \
            scales->factors[i] = step.factor;                                                      \
        }                                                                                          \
    }
#define EVERY_RULE(X) BSMM_RULES_E8M0(X) BSMM_RULES_E4M3(X) BSMM_RULES_F32(X)

#define PLAIN_RULE(name, function) STRIP_RULE(, plain_, function)
#define PLAIN_ROW(name, function)  [name] = plain_##function,
EVERY_RULE(PLAIN_RULE)
static bsmm_strip_rule *const plain_rules[BSMM_BLOCK_RULES] = {EVERY_RULE(PLAIN_ROW)};

#if defined(__x86_64__)
#    define AVX512                    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#    define WIDE_RULE(name, function) STRIP_RULE(AVX512, wide_, function)
#    define WIDE_ROW(name, function)  [name] = wide_##function,
EVERY_RULE(WIDE_RULE)
static bsmm_strip_rule *const wide_rules[BSMM_BLOCK_RULES] = {EVERY_RULE(WIDE_ROW)};
#else
#    define wide_rules plain_rules
#endif

bsmm_strip_rule *bsmm_strip_rule_of(bsmm_block_rule rule) {
    return bsmm_cpu_features() & BSMM_CPU_AVX512 ? wide_rules[rule] : plain_rules[rule];
}
