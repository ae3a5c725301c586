/* What a recipe is made of: the steps that the CPU's pipeline (src/quantize) and GPU kernels share.
 *
 *     tensor amax -> tensor scale -> block amax -> block scale -> element factor -> rounding
 *
 * Every step is fp32 arithmetic in its project's own order (builds turn contraction into fused
 * multiply-adds off), because the order decides bytes. docs/RECIPES.md tells the differences. */
#ifndef BSMM_RECIPE_STEP_H
#define BSMM_RECIPE_STEP_H

#include "base/scalar.h"

/* How the tensor's scale is chosen. */
typedef enum bsmm_tensor_rule {
    BSMM_TENSOR_NONE = 0, /* one level */
    BSMM_TENSOR_TORCHAO,
    BSMM_TENSOR_TE,
    BSMM_TENSOR_MODELOPT,
    BSMM_TENSOR_COMPRESSED_TENSORS
} bsmm_tensor_rule;

/* How a block's scale is chosen; one row of recipes.c says which project's each is. */
typedef enum bsmm_block_rule {
    BSMM_BLOCK_NONE = 0, /* no scales */
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

/* How a value meets its block's factor. */
typedef enum bsmm_element_step {
    BSMM_STEP_MULTIPLY = 0,
    BSMM_STEP_DIVIDE = 1,
    BSMM_STEP_COMPARE = 2 /* with the rounding bounds times factor: bsmm_coder_run_bounds */
} bsmm_element_step;

/* What happens halfway between two codes. */
typedef enum bsmm_ties {
    BSMM_TIES_EVEN = 0,
    BSMM_TIES_DOWN = 1 /* towards zero: a bound belongs to the value below it; e2m1 only */
} bsmm_ties;

/* The sign of a code whose value or result is zero. */
typedef enum bsmm_zero_sign {
    BSMM_ZERO_KEEPS_SIGN = 0, /* -0 and what rounds to -0 stay negative */
    BSMM_ZERO_PLUS = 1,       /* -0 becomes +0; what rounds to zero keeps its sign (x < 0) */
    BSMM_ZERO_CODE_PLUS = 2,  /* every zero code is +0 */
    BSMM_ZERO_MINUS = 3       /* +0 and -0 become -0; what rounds to zero keeps its sign */
} bsmm_zero_sign;

typedef struct bsmm_recipe_steps {
    bsmm_tensor_rule tensor;
    bsmm_block_rule block;
    bsmm_element_step step;
    bsmm_ties ties;
    bsmm_zero_sign zero_sign;
    bool skips_nan; /* the block's amax ignores NaN */
} bsmm_recipe_steps;

/* One tensor's numbers, as the steps see them. */
typedef struct bsmm_tensor_step {
    float max;                           /* of the element format */
    int emax;                            /* floor(log2(max)) */
    uint32_t mantissa_bits;              /* of the element format */
    uint32_t source_elem;                /* format of the values: f32, f16 or bf16 */
    float source_max, source_min_normal; /* of that format */
    float multiplier;                    /* the second level in both forms; 1 without one */
    float divisor;
    bool pow2; /* BSMM_QUANTIZE_POW2 */
} bsmm_tensor_step;

/* One block's scale code, and what its values meet. */
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
