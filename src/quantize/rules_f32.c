/* Rules that give a block an fp32 scale, as DeepSeek's fp8 has them. */
#include "quantize/recipe.h"

#include <math.h>

/* NaN passes, as in torch.clamp. */
static float scale_of(float amax, const bsmm_tensor_step *t) {
    return (amax < 1e-4f ? 1e-4f : amax) / t->max;
}

float bsmm_ceil_to_ue8m0(float scale) {
    uint32_t bits = bsmm_float_bits(scale);
    uint32_t exponent = (bits >> 23) + ((bits & 0x7fffff) != 0);
    if (exponent < 1) exponent = 1;
    return bsmm_bits_float((exponent < 254 ? exponent : 254) << 23);
}

/* x / s; kernel.py's exp2(ceil(log2(s))) */
static inline bsmm_block_step f32_deepseek(float amax, const bsmm_tensor_step *t) {
    float scale = scale_of(amax, t);
    if (t->pow2) scale = exp2f(ceilf(bsmm_log2_fp32(scale)));
    return (bsmm_block_step){bsmm_float_bits(scale), scale};
}

/* x * (1 / s) */
static inline bsmm_block_step f32_deepgemm(float amax, const bsmm_tensor_step *t) {
    float scale = scale_of(amax, t);
    if (t->pow2) scale = bsmm_ceil_to_ue8m0(scale);
    return (bsmm_block_step){bsmm_float_bits(scale), 1 / scale};
}

/* TransformerEngine's compute_scale_from_amax: the factor comes first, its reciprocal is stored. */
static inline bsmm_block_step f32_te(float amax, const bsmm_tensor_step *t) {
    float factor = 1;
    if (isfinite(amax) && amax != 0) {
        factor = t->max / amax;
        if (isinf(factor)) factor = (float)bsmm_elem_row(t->source_elem)->max;
        if (t->pow2) factor = bsmm_bits_float(bsmm_float_bits(factor) & 0xff800000u);
    }
    return (bsmm_block_step){bsmm_float_bits(1 / factor), factor};
}

/* ---- over a strip ---- */

void bsmm_f32_deepseek(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(f32_deepseek, s, n, t);
}

void bsmm_f32_deepgemm(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(f32_deepgemm, s, n, t);
}

void bsmm_f32_te(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(f32_te, s, n, t);
}
