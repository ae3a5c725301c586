/* These rules give each block an fp32 scale, as in DeepSeek's FP8 checkpoints. */
#ifndef BSMM_RECIPE_RULES_F32_H
#define BSMM_RECIPE_RULES_F32_H

#include "recipe/rules_e8m0.h"

/* Returns max(amax, 1e-4) / (largest value of the element format), where amax is the block's
 * largest magnitude. If amax is NaN, the result is NaN, as in torch.clamp. */
BSMM_SHARED float bsmm_scale_of(float amax, const bsmm_tensor_step *t) {
    return bsmm_div(bsmm_select_float(amax < 1e-4f, 1e-4f, amax), t->max);
}

/* Rounds a scale up to a power of two by exp2(ceil(log2(scale))) in fp32. Inf and NaN are returned
 * unchanged. */
BSMM_SHARED float bsmm_ceil_pow2(float scale) {
    if (!isfinite(scale)) return scale;
    return bsmm_pow2((int)ceilf(bsmm_log2_fp32(scale)));
}

/* DeepSeek's rule divides each value by the block's scale. If scales must be powers of two (pow2),
 * the scale is rounded up to a power of two by exp2(ceil(log2(scale))), as in DeepSeek's
 * kernel.py. */
BSMM_SHARED bsmm_block_step bsmm_f32_deepseek(float amax, const bsmm_tensor_step *t) {
    float scale = bsmm_scale_of(amax, t);
    if (t->pow2) scale = bsmm_ceil_pow2(scale);
    return bsmm_block_step_of(bsmm_float_bits(scale), scale);
}

/* DeepGEMM's rule multiplies each value by the reciprocal of the block's scale. */
BSMM_SHARED bsmm_block_step bsmm_f32_deepgemm(float amax, const bsmm_tensor_step *t) {
    float scale = bsmm_scale_of(amax, t);
    if (t->pow2) scale = bsmm_ceil_to_ue8m0(scale);
    return bsmm_block_step_of(bsmm_float_bits(scale), bsmm_div(1, scale));
}

/* TransformerEngine's rule (compute_scale_from_amax) computes first the factor that multiplies the
 * values, and stores the factor's reciprocal as the block's scale. */
BSMM_SHARED bsmm_block_step bsmm_f32_te(float amax, const bsmm_tensor_step *t) {
    float factor = 1;
    if (isfinite(amax) && amax != 0) {
        factor = bsmm_div(t->max, amax);
        if (isinf(factor)) factor = t->source_max;
        if (t->pow2) factor = bsmm_bits_float(bsmm_float_bits(factor) & 0xff800000u);
    }
    return bsmm_block_step_of(bsmm_float_bits(bsmm_div(1, factor)), factor);
}

#endif
