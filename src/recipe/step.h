/* The steps of a recipe, which the CPU's pipeline (src/quantize) and GPU kernels share:
 *
 *   tensor amax -> tensor scale -> block amax -> block scale -> element factor -> rounding
 *
 * Every step is fp32 arithmetic in the order of the recipe's own project, because the order decides
 * the bytes. Compilers therefore must not contract a product and a sum into a fused multiply-add.
 * docs/RECIPES.md describes the differences between recipes. */
#ifndef BSMM_RECIPE_STEP_H
#define BSMM_RECIPE_STEP_H

#include "base/scalar.h"

/* The rule for the tensor's scale (the second level). */
typedef enum bsmm_tensor_rule {
    BSMM_TENSOR_NONE = 0, /* the format has no tensor scale */
    BSMM_TENSOR_TORCHAO,
    BSMM_TENSOR_TE,
    BSMM_TENSOR_MODELOPT,
    BSMM_TENSOR_COMPRESSED_TENSORS
} bsmm_tensor_rule;

/* The rule for a block's scale. The rows of recipes.c say which project uses which rule. */
typedef enum bsmm_block_rule {
    BSMM_BLOCK_NONE = 0, /* the format has no block scales */
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

/* The operation that applies the block's factor to a value. */
typedef enum bsmm_element_step {
    BSMM_STEP_MULTIPLY = 0,
    BSMM_STEP_DIVIDE = 1,
    /* Compare the value with the rounding bounds times the factor (bsmm_coder_run_bounds). */
    BSMM_STEP_COMPARE = 2
} bsmm_element_step;

/* The rounding of a value halfway between two codes. */
typedef enum bsmm_ties {
    BSMM_TIES_EVEN = 0,
    BSMM_TIES_DOWN = 1 /* ties are rounded towards zero; only for e2m1 */
} bsmm_ties;

/* The sign of a zero code. */
typedef enum bsmm_zero_sign {
    /* Negative zeros, and negative values that round to zero, stay negative. */
    BSMM_ZERO_KEEPS_SIGN = 0,
    BSMM_ZERO_PLUS = 1,      /* -0 becomes +0; a negative value that rounds to zero gives -0 */
    BSMM_ZERO_CODE_PLUS = 2, /* every code of zero is +0 */
    BSMM_ZERO_MINUS = 3      /* +0 and -0 become -0; a value that rounds to zero keeps its sign */
} bsmm_zero_sign;

typedef struct bsmm_recipe_steps {
    bsmm_tensor_rule tensor;
    bsmm_block_rule block;
    bsmm_element_step step;
    bsmm_ties ties;
    bsmm_zero_sign zero_sign;
    bool skips_nan; /* the largest magnitude of a block ignores NaN */
} bsmm_recipe_steps;

/* The constants and scales of one tensor that the steps need. */
typedef struct bsmm_tensor_step {
    float max;                           /* largest value of the element format */
    int emax;                            /* exponent of that value, floor(log2(max)) */
    uint32_t mantissa_bits;              /* number of mantissa bits of the element format */
    uint32_t source_elem;                /* format of the values: f32, f16 or bf16 */
    float source_max, source_min_normal; /* largest and smallest normal value of source_elem */
    /* The tensor scale as a factor, and below as a divisor; 1 if there is none. */
    float multiplier;
    float divisor;
    bool pow2; /* scales are rounded to powers of two (BSMM_QUANTIZE_POW2) */
} bsmm_tensor_step;

/* The scale code of a block and the factor for its values. */
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
