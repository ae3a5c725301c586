/* The rules over a strip: loops without branches, once for every processor and once for AVX-512.
 * Rules for e4m3 scales once more, for tame blocks: without divisions, and with a table of what
 * follows from a code. */
#include "recipe/rules.h"

#include "base/cpu.h"
#include "quantize/recipe.h"

#include <string.h>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

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

static bool has_wide(void) {
    return bsmm_cpu_features() & BSMM_CPU_AVX512;
}

bsmm_strip_rule *bsmm_strip_rule_of(bsmm_block_rule rule) {
    return has_wide() ? wide_rules[rule] : plain_rules[rule];
}

/* ---- bounds ---- */

static inline bool all_within(const void *values, int64_t n, bsmm_bits_range range) {
    uint32_t outside = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)values + 4 * i, sizeof bits);
        outside |= (uint32_t)(bits - range.least > range.most - range.least) &
                   (uint32_t)(bits != range.also);
    }
    return !outside;
}

static bool plain_within(const void *values, int64_t n, bsmm_bits_range range) {
    return all_within(values, n, range);
}

#if defined(__x86_64__)
AVX512 static bool wide_within(const void *values, int64_t n, bsmm_bits_range range) {
    return all_within(values, n, range);
}
#else
#    define wide_within plain_within
#endif

bool bsmm_strip_within(const void *values, int64_t n, bsmm_bits_range range) {
    return (has_wide() ? wide_within : plain_within)(values, n, range);
}

/* ---- e4m3 rules without divisions ---- */

typedef struct tame_rule {
    bsmm_strip_rule *codes;
    void (*factors)(const bsmm_tensor_step *tensor, float factors[BSMM_E4M3_CODES]);
} tame_rule;

#define TAME_RULE(name, function)                                                                  \
    AVX512 static void tame_##function(bsmm_strip_scales *scales, int64_t n,                       \
                                       const bsmm_tensor_step *tensor) {                           \
        const bsmm_tensor_step t = *tensor;                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            scales->codes[i] = function##_code(bsmm_bits_float(scales->amax[i]), &t, true);        \
    }                                                                                              \
    AVX512 static void factors_##function(const bsmm_tensor_step *tensor,                          \
                                          float factors[BSMM_E4M3_CODES]) {                        \
        const bsmm_tensor_step t = *tensor;                                                        \
        for (uint32_t code = 0; code < BSMM_E4M3_CODES; code++)                                    \
            factors[code] = function##_factor(code, &t);                                           \
    }
#define TAME_ROW(name, function) [name] = {tame_##function, factors_##function},

#if defined(__x86_64__)
BSMM_RULES_E4M3(TAME_RULE)
static const tame_rule tame_rules[BSMM_BLOCK_RULES] = {BSMM_RULES_E4M3(TAME_ROW)};
#else
static const tame_rule tame_rules[BSMM_BLOCK_RULES] = {{NULL, NULL}};
#    define AVX512
#endif

/* In vectors: what is stored one by one and read back by vectors waits for every store before it.
 */
AVX512 static void look_up(const float *table, const uint32_t *codes, int64_t n, float *factors) {
#if defined(__x86_64__)
    __m512 t[8];
    for (int i = 0; i < 8; i++)
        t[i] = _mm512_loadu_ps(table + 16 * i);
    for (int64_t i = 0; i < n; i += 16) {
        __m512i code = _mm512_loadu_si512(codes + i);
        __mmask16 upper = _mm512_test_epi32_mask(code, _mm512_set1_epi32(64));
        __mmask16 odd = _mm512_test_epi32_mask(code, _mm512_set1_epi32(32));
        __m512 low = _mm512_mask_mov_ps(_mm512_permutex2var_ps(t[0], code, t[1]), odd,
                                        _mm512_permutex2var_ps(t[2], code, t[3]));
        __m512 high = _mm512_mask_mov_ps(_mm512_permutex2var_ps(t[4], code, t[5]), odd,
                                         _mm512_permutex2var_ps(t[6], code, t[7]));
        _mm512_storeu_ps(factors + i, _mm512_mask_mov_ps(low, upper, high));
    }
#else
    for (int64_t i = 0; i < n; i++)
        factors[i] = table[codes[i]];
#endif
}

static bool is_tame_level(const bsmm_tensor_step *t) {
    return t->multiplier >= 0x1p-60f && t->multiplier <= 0x1p60f;
}

void bsmm_tame_rule_make(bsmm_block_rule rule, const bsmm_tensor_step *tensor,
                         bsmm_tame_rule *made) {
    const tame_rule *row = &tame_rules[rule];
    made->codes = has_wide() && is_tame_level(tensor) ? row->codes : NULL;
    if (made->codes) row->factors(tensor, made->factors);
}

bool bsmm_tame_rule_apply(const bsmm_tame_rule *rule, bsmm_strip_scales *scales, int64_t n,
                          const bsmm_tensor_step *tensor) {
    static const bsmm_bits_range tame = {0x21800000u, 0x5d800000u, 0}; /* 2^-60, 2^60 */
    if (!rule || !rule->codes || !bsmm_strip_within(scales->amax, n, tame)) return false;
    rule->codes(scales, n, tensor);
    look_up(rule->factors, scales->codes, n, scales->factors);
    return true;
}
