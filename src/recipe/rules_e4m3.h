/* Rules that give a block an e4m3 scale, below an fp32 scale per tensor. 448 is e4m3's max. */
#ifndef BSMM_RECIPE_RULES_E4M3_H
#define BSMM_RECIPE_RULES_E4M3_H

#include "recipe/step.h"

#include <float.h>
#include <math.h>

enum { BSMM_E4M3_MAX = 448 };

/* NaN passes, as in torch.clamp. */
BSMM_SHARED float bsmm_at_least(float value, float low) {
    return bsmm_select_float(value < low, low, value);
}

/* fp32 rounded to bf16 or f16, to nearest even, and to fp32 again: to 23 - `dropped` bits of
 * mantissa where normal; f16 (min_normal 2^-14) also has subnormals and overflows to Inf. */
BSMM_SHARED float bsmm_round_to(const bsmm_tensor_step *t, float value) {
    uint32_t bits = bsmm_float_bits(value), a = bits & 0x7fffffffu, sign = bits & 0x80000000u;
    uint32_t dropped = t->source_min_normal == 0x1p-14f ? 13 : 16;
    if (t->source_max == FLT_MAX || a > 0x7f800000u) return value;
    uint32_t half = (1u << (dropped - 1)) - 1 + (a >> dropped & 1);
    float rounded = bsmm_bits_float((a + half) >> dropped << dropped);
    if (dropped == 13 && a < 0x38800000u) /* a multiple of 2^-24 */
        rounded = (bsmm_bits_float(a) + 0.5f) - 0.5f;
    if (rounded > t->source_max) rounded = bsmm_bits_float(0x7f800000u);
    return bsmm_bits_float(bsmm_float_bits(rounded) | sign);
}

/* ---- torchao: per_tensor_amax_to_scale, nvfp4_quantize ---- */

/* Of zeros only, or of values so small that 1 / s overflows, torchao makes NaN; here the second
 * level is 1 then. */
BSMM_SHARED void bsmm_tensor_torchao(float amax, bsmm_tensor_step *t) {
    float scale = bsmm_div(amax, BSMM_E4M3_MAX * t->max);
    t->multiplier = isinf(bsmm_div(1, scale)) ? 1 : scale;
    t->divisor = bsmm_div(1, t->multiplier);
}

BSMM_SHARED bsmm_block_step bsmm_e4m3_torchao(float amax, const bsmm_tensor_step *t) {
    float scale = bsmm_at_least(bsmm_div(bsmm_div(amax, t->max), t->multiplier), 0x1p-6f);
    uint32_t code = bsmm_e4m3_code(scale);
    return bsmm_block_step_of(code, bsmm_div(bsmm_div(1, t->multiplier), bsmm_e4m3_value(code)));
}

/* ---- TransformerEngine: quantization_ref_nvfp4.py, core_nvfp4.cuh ---- */

BSMM_SHARED void bsmm_tensor_te(float amax, bsmm_tensor_step *t) {
    float encode = bsmm_div(BSMM_E4M3_MAX * t->max, amax);
    encode = bsmm_select_float(encode > FLT_MAX, FLT_MAX, encode);
    if (amax == 0 || encode == 0) encode = 1;
    t->divisor = encode;
    t->multiplier = bsmm_div(1, encode);
}

BSMM_SHARED bsmm_block_step bsmm_e4m3_te(float amax, const bsmm_tensor_step *t) {
    uint32_t code = bsmm_e4m3_code(bsmm_mul(amax, bsmm_mul(t->divisor, 1 / t->max)));
    float factor = bsmm_div(1, bsmm_mul(bsmm_e4m3_value(code), t->multiplier));
    return bsmm_block_step_of(code, bsmm_select_float(factor > FLT_MAX, FLT_MAX, factor));
}

/* ---- ModelOpt: NVFP4QTensor ---- */

/* Of zeros only, ModelOpt makes NaN; here the second level is 1 then. */
BSMM_SHARED void bsmm_tensor_modelopt(float amax, bsmm_tensor_step *t) {
    float scale = bsmm_div(amax, t->max * BSMM_E4M3_MAX);
    t->multiplier = scale == 0 ? 1 : scale;
    t->divisor = bsmm_div(1, t->multiplier);
}

BSMM_SHARED bsmm_block_step bsmm_e4m3_modelopt(float amax, const bsmm_tensor_step *t) {
    float scale = bsmm_div(amax, bsmm_mul(t->max, t->multiplier));
    uint32_t code = bsmm_e4m3_code(bsmm_select_float(scale == 0, 1, bsmm_at_least(scale, 0x1p-9f)));
    return bsmm_block_step_of(code, bsmm_mul(bsmm_e4m3_value(code), t->multiplier));
}

/* ---- compressed-tensors: generate_gparam, calculate_qparams ---- */

/* torch divides a number by a tensor as reciprocal times number; both, and amax / 6, are rounded to
 * the weight's own type. */
BSMM_SHARED void bsmm_tensor_compressed_tensors(float amax, bsmm_tensor_step *t) {
    float reciprocal = bsmm_round_to(t, bsmm_div(1, bsmm_at_least(amax, t->source_min_normal)));
    float divisor = bsmm_round_to(t, bsmm_mul(reciprocal, BSMM_E4M3_MAX * t->max));
    t->divisor = isfinite(divisor) ? divisor : 1;
    t->multiplier = bsmm_div(1, t->divisor);
}

BSMM_SHARED bsmm_block_step bsmm_e4m3_compressed_tensors(float amax, const bsmm_tensor_step *t) {
    uint32_t code = bsmm_e4m3_code(bsmm_mul(t->divisor, bsmm_round_to(t, bsmm_div(amax, t->max))));
    if (code == 0) code = bsmm_e4m3_code(0.125f);
    return bsmm_block_step_of(code, bsmm_div(bsmm_e4m3_value(code), t->divisor));
}

/* ---- ggml: quantize_row_nvfp4_ref ---- */

/* ggml_fp32_to_ue4m3: half away from zero, and 256 or what rounds to it becomes 448. */
BSMM_SHARED uint32_t bsmm_ggml_e4m3_code(float value) {
    if (!(value > 0)) return 0;
    uint32_t bits = bsmm_float_bits(value);
    if (bits < 0x3c800000u) /* 2^-6 */
        return (uint32_t)fminf(value * 512 + 0.5f, 7);
    uint32_t code = (bits - (120u << 23) + (1u << 19)) >> 20;
    return code < 15u << 3 ? code : 0x7e;
}

BSMM_SHARED bsmm_block_step bsmm_e4m3_ggml(float amax, const bsmm_tensor_step *t) {
    uint32_t code = bsmm_ggml_e4m3_code(bsmm_div(amax, t->max));
    return bsmm_block_step_of(code, bsmm_e4m3_value(code));
}

#endif
