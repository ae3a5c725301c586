/* Declares the steps by which a recipe quantizes a tensor. The CPU code (src/quantize) and GPU
 * kernels share these steps:
 *
 *   tensor amax -> tensor scale -> block amax -> block scale -> factor for elements -> rounding
 *
 * amax is the largest magnitude of a tensor or block. Every step is computed in fp32, in the same
 * order of operations as in the project that the recipe reproduces, because another order would
 * give other bytes. For the same reason compilers must not contract a product and a sum into a
 * fused multiply-add. docs/RECIPES.md describes how recipes differ. */
#ifndef BSMM_RECIPE_STEP_H
#define BSMM_RECIPE_STEP_H

#include "base/scalar.h"

/* `bsmm_tensor_rule` is the rule that computes the tensor's scale, i.e. the second-level scale. */
typedef enum bsmm_tensor_rule {
    BSMM_TENSOR_NONE = 0, /* BSMM_TENSOR_NONE: the format has no tensor scale. */
    BSMM_TENSOR_TORCHAO,
    BSMM_TENSOR_TE,
    BSMM_TENSOR_MODELOPT,
    BSMM_TENSOR_COMPRESSED_TENSORS,
    /* The caller chose the tensor's scale, as a multiplier (GIVEN) or as a divisor (GIVEN_DIVISOR).
     * The functions of these two rules take this scale as their argument, in place of the tensor's
     * amax. */
    BSMM_TENSOR_GIVEN,
    BSMM_TENSOR_GIVEN_DIVISOR
} bsmm_tensor_rule;

/* `bsmm_block_rule` is the rule that computes a block's scale. The table in src/quantize/recipes.c
 * tells which recipe uses which rule. */
typedef enum bsmm_block_rule {
    BSMM_BLOCK_NONE = 0, /* BSMM_BLOCK_NONE: the format has no block scales. */
    BSMM_BLOCK_E8M0_FLOOR,
    BSMM_BLOCK_E8M0_RCEIL,
    BSMM_BLOCK_E8M0_CEIL,
    BSMM_BLOCK_E8M0_EVEN,
    BSMM_BLOCK_E8M0_QUARK,
    BSMM_BLOCK_E8M0_TORCHAO,
    BSMM_BLOCK_E8M0_TE,
    BSMM_BLOCK_E8M0_MODELOPT,
    BSMM_BLOCK_E8M0_COMPRESSED_TENSORS,
    BSMM_BLOCK_E8M0_GGML,
    BSMM_BLOCK_E8M0_DEEPGEMM,
    BSMM_BLOCK_E4M3_TORCHAO,
    BSMM_BLOCK_E4M3_TE,
    BSMM_BLOCK_E4M3_MODELOPT,
    BSMM_BLOCK_E4M3_COMPRESSED_TENSORS,
    BSMM_BLOCK_E4M3_GGML,
    BSMM_BLOCK_F32_DEEPSEEK,
    BSMM_BLOCK_F32_DEEPGEMM,
    BSMM_BLOCK_F32_TE,
    BSMM_BLOCK_RULES
} bsmm_block_rule;

/* Tells how a value is divided by its block's scale before it is rounded. */
typedef enum bsmm_element_step {
    BSMM_STEP_MULTIPLY = 0,
    BSMM_STEP_DIVIDE = 1,
    /* The value is not divided. It is compared with the rounding bounds of e2m1 (midpoints between
     * its values) times the scale (bsmm_coder_run_bounds). */
    BSMM_STEP_COMPARE = 2
} bsmm_element_step;

/* Tells how a value halfway between two representable values is rounded. */
typedef enum bsmm_ties {
    BSMM_TIES_EVEN = 0,
    BSMM_TIES_DOWN = 1 /* Ties round towards zero. Only e2m1 has this rule. */
} bsmm_ties;

/* Tells which sign an element gets whose magnitude is rounded to zero. */
typedef enum bsmm_zero_sign {
    /* BSMM_ZERO_KEEPS_SIGN: -0 stays -0, and a negative value that rounds to zero becomes -0. */
    BSMM_ZERO_KEEPS_SIGN = 0,
    /* BSMM_ZERO_PLUS: -0 becomes +0, but another negative value that rounds to zero becomes -0. */
    BSMM_ZERO_PLUS = 1,
    /* BSMM_ZERO_CODE_PLUS: every zero becomes +0, also a negative value that rounds to zero. */
    BSMM_ZERO_CODE_PLUS = 2,
    /* BSMM_ZERO_MINUS: +0 and -0 become -0, but another value that rounds to zero keeps its
     * sign. */
    BSMM_ZERO_MINUS = 3
} bsmm_zero_sign;

typedef struct bsmm_recipe_steps {
    bsmm_tensor_rule tensor;
    bsmm_block_rule block;
    bsmm_element_step step;
    bsmm_ties ties;
    bsmm_zero_sign zero_sign;
    /* If `skips_nan` is true, a block's amax ignores NaN. Otherwise a NaN makes amax NaN. */
    bool skips_nan;
} bsmm_recipe_steps;

/* This struct holds what the rules for blocks need to know of one tensor: constants of its formats,
 * and the tensor's scale. */
typedef struct bsmm_tensor_step {
    float max; /* `max` is the largest value of the element format. */
    int emax;  /* `emax` is the exponent of max, i.e. floor(log2(max)). */
    /* `mantissa_bits` is the number of mantissa bits of the element format. */
    uint32_t mantissa_bits;
    /* `source_elem` is the format of the values to be quantized: f32, f16 or bf16. */
    uint32_t source_elem;
    /* `source_max` and `source_min_normal` are the largest and smallest normal value of
     * source_elem. */
    float source_max, source_min_normal;
    /* `multiplier` and `divisor` are the tensor's scale as a factor and as a divisor. Both are 1 if
     * the format has no tensor scale. */
    float multiplier;
    float divisor;
    bool pow2; /* `pow2` is true if scales are rounded to powers of two (BSMM_QUANTIZE_POW2). */
} bsmm_tensor_step;

/* `bsmm_block_step` holds the code of a block's scale, and the factor by which the values of the
 * block are multiplied or divided. */
typedef struct bsmm_block_step {
    uint32_t code;
    float factor;
} bsmm_block_step;

BSMM_SHARED bsmm_block_step bsmm_block_step_of(uint32_t code, float factor) {
    bsmm_block_step step;
    step.code = code;
    step.factor = factor;
    return step;
}

#endif
