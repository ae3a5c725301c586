/* Declares the tables of functions that compute the scales of many adjacent blocks (a strip) at
 * once. Each table is compiled for one instruction set. */
#ifndef BSMM_QUANTIZE_RULE_SET_H
#define BSMM_QUANTIZE_RULE_SET_H

#include "quantize/recipe.h"

/* `bsmm_tame_halves` holds two functions, which are the two steps of the fast path for e4m3 scales:
 * from a block's largest magnitude (amax) to its scale code, and from the scale code to the block's
 * factor. The fast path is for blocks with a moderate amax ("tame" blocks, recipe.h). Both
 * functions are NULL if a rule has no fast path. */
typedef struct bsmm_tame_halves {
    bsmm_strip_rule *codes;
    void (*factors)(const bsmm_tensor_step *tensor, float factors[BSMM_E4M3_CODES]);
} bsmm_tame_halves;

typedef struct bsmm_rule_set {
    bsmm_strip_rule *rules[BSMM_BLOCK_RULES];
    /* Does the work of bsmm_strip_within: tells whether all n values lie in a range of fp32
     * bits. */
    bool (*within)(const void *values, int64_t n, bsmm_bits_range range);
    bsmm_tame_halves tame[BSMM_BLOCK_RULES];

    /* Computes factors[i] = table[codes[i]] for n codes. It may write factors past n, up to a whole
     * register. */
    void (*look_up)(const float *table, const uint32_t *codes, int64_t n, float *factors);
} bsmm_rule_set;

#if defined(__x86_64__)
extern const bsmm_rule_set bsmm_rules_avx2, bsmm_rules_avx512;
#endif

#endif
