/* Lists all rules that compute a block's scale from its largest magnitude, and calls a rule by its
 * enum value. */
#ifndef BSMM_RECIPE_RULES_H
#define BSMM_RECIPE_RULES_H

#include "recipe/rules_e4m3.h"
#include "recipe/rules_e8m0.h"
#include "recipe/rules_f32.h"

/* Each list holds the block rules that produce one scale format, as X(enum value of the rule,
 * function that implements it). */
#define BSMM_RULES_E8M0(X)                                                                         \
    X(BSMM_BLOCK_E8M0_FLOOR, bsmm_e8m0_floor)                                                      \
    X(BSMM_BLOCK_E8M0_RCEIL, bsmm_e8m0_rceil)                                                      \
    X(BSMM_BLOCK_E8M0_CEIL, bsmm_e8m0_ceil)                                                        \
    X(BSMM_BLOCK_E8M0_EVEN, bsmm_e8m0_even)                                                        \
    X(BSMM_BLOCK_E8M0_QUARK, bsmm_e8m0_quark)                                                      \
    X(BSMM_BLOCK_E8M0_TORCHAO, bsmm_e8m0_torchao)                                                  \
    X(BSMM_BLOCK_E8M0_TE, bsmm_e8m0_te)                                                            \
    X(BSMM_BLOCK_E8M0_MODELOPT, bsmm_e8m0_modelopt)                                                \
    X(BSMM_BLOCK_E8M0_COMPRESSED_TENSORS, bsmm_e8m0_compressed_tensors)                            \
    X(BSMM_BLOCK_E8M0_GGML, bsmm_e8m0_ggml)                                                        \
    X(BSMM_BLOCK_E8M0_DEEPGEMM, bsmm_e8m0_deepgemm)
#define BSMM_RULES_E4M3(X)                                                                         \
    X(BSMM_BLOCK_E4M3_TORCHAO, bsmm_e4m3_torchao)                                                  \
    X(BSMM_BLOCK_E4M3_TE, bsmm_e4m3_te)                                                            \
    X(BSMM_BLOCK_E4M3_MODELOPT, bsmm_e4m3_modelopt)                                                \
    X(BSMM_BLOCK_E4M3_COMPRESSED_TENSORS, bsmm_e4m3_compressed_tensors)                            \
    X(BSMM_BLOCK_E4M3_GGML, bsmm_e4m3_ggml)
#define BSMM_RULES_F32(X)                                                                          \
    X(BSMM_BLOCK_F32_DEEPSEEK, bsmm_f32_deepseek)                                                  \
    X(BSMM_BLOCK_F32_DEEPGEMM, bsmm_f32_deepgemm)                                                  \
    X(BSMM_BLOCK_F32_TE, bsmm_f32_te)

#define BSMM_RULE_CASE(name, function)                                                             \
case name:                                                                                         \
    return function(amax, t);

/* Applies a block rule to `amax`, the largest magnitude of the block. BSMM_BLOCK_NONE returns code
 * 0 and factor 1. */
BSMM_SHARED bsmm_block_step bsmm_block_by(bsmm_block_rule rule, float amax,
                                          const bsmm_tensor_step *t) {
    switch (rule) {
        BSMM_RULES_E8M0(BSMM_RULE_CASE)
        BSMM_RULES_E4M3(BSMM_RULE_CASE)
        BSMM_RULES_F32(BSMM_RULE_CASE)
    default:
        return bsmm_block_step_of(0, 1);
    }
}

/* Sets the second-level scale that the caller chose, both as a multiplier and as a divisor. If the
 * reciprocal of a multiplier overflows, the divisor is the largest float, as in TransformerEngine's
 * rule. */
BSMM_SHARED void bsmm_tensor_given(float level, bool by_divisor, bsmm_tensor_step *t) {
    float reciprocal = bsmm_div(1, level);
    if (!by_divisor) reciprocal = bsmm_select_float(reciprocal > FLT_MAX, FLT_MAX, reciprocal);
    t->multiplier = by_divisor ? reciprocal : level;
    t->divisor = by_divisor ? level : reciprocal;
}

/* Applies a tensor rule: it sets the second-level scale of *t from `amax`, the largest magnitude of
 * the tensor. With the rules GIVEN and GIVEN_DIVISOR, `amax` is the scale itself. */
BSMM_SHARED void bsmm_tensor_by(bsmm_tensor_rule rule, float amax, bsmm_tensor_step *t) {
    if (rule == BSMM_TENSOR_TORCHAO) bsmm_tensor_torchao(amax, t);
    if (rule == BSMM_TENSOR_TE) bsmm_tensor_te(amax, t);
    if (rule == BSMM_TENSOR_MODELOPT) bsmm_tensor_modelopt(amax, t);
    if (rule == BSMM_TENSOR_COMPRESSED_TENSORS) bsmm_tensor_compressed_tensors(amax, t);
    if (rule == BSMM_TENSOR_GIVEN || rule == BSMM_TENSOR_GIVEN_DIVISOR)
        bsmm_tensor_given(amax, rule == BSMM_TENSOR_GIVEN_DIVISOR, t);
}

#endif
