/* Selects the scale rules that are compiled for the best instruction set of the processor, and
 * compiles the portable versions of the rules. */
#include "base/cpu.h"

#define TARGET
#include "quantize/rules_body.h"

static const bsmm_rule_set portable = {PLAIN_RULES, .look_up = NULL};

static const bsmm_rule_set *best_set(void) {
#if defined(__x86_64__)
    uint32_t features = bsmm_cpu_features();
    if (features & BSMM_CPU_AVX512) return &bsmm_rules_avx512;
    if (features & BSMM_CPU_AVX2) return &bsmm_rules_avx2;
#endif
    return &portable;
}

bsmm_strip_rule *bsmm_strip_rule_of(bsmm_block_rule rule) {
    return best_set()->rules[rule];
}

bool bsmm_strip_within(const void *values, int64_t n, bsmm_bits_range range) {
    return best_set()->within(values, n, range);
}

static bool is_tame_level(const bsmm_tensor_step *t) {
    return t->multiplier >= 0x1p-60f && t->multiplier <= 0x1p60f;
}

void bsmm_tame_rule_make(bsmm_block_rule rule, const bsmm_tensor_step *tensor,
                         bsmm_tame_rule *made) {
    const bsmm_rule_set *set = best_set();
    const bsmm_tame_halves *halves = &set->tame[rule];
    made->codes = is_tame_level(tensor) ? halves->codes : NULL;
    made->look_up = set->look_up;
    if (made->codes) halves->factors(tensor, made->factors);
}

bool bsmm_tame_rule_apply(const bsmm_tame_rule *rule, bsmm_strip_scales *scales, int64_t n,
                          const bsmm_tensor_step *tensor) {
    /* A block is "tame" if its amax is 0 or lies between 2^-60 and 2^60. The range is given as fp32
     * bits. */
    static const bsmm_bits_range tame = {0x21800000u, 0x5d800000u, 0};
    if (!rule || !rule->codes || !bsmm_strip_within(scales->amax, n, tame)) return false;
    rule->codes(scales, n, tensor);
    rule->look_up(rule->factors, scales->codes, n, scales->factors);
    return true;
}
