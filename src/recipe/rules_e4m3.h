/* These are the rules for nvfp4, which has an e4m3 scale for each block and an fp32 scale for the
 * whole tensor. Each rule is two functions. The function *_code computes the scale's code from
 * amax, the block's largest magnitude. The function *_factor computes from the code the factor by
 * which the block's values are multiplied or divided. A parameter `tame` promises that the
 * arguments are positive or zero, not NaN, and in a range in which a faster computation gives
 * bitwise identical results; bsmm_ratio states the range. */
#ifndef BSMM_RECIPE_RULES_E4M3_H
#define BSMM_RECIPE_RULES_E4M3_H

#include "recipe/step.h"

#include <float.h>

enum { BSMM_E4M3_MAX = 448 };

/* Returns the larger of `value` and `low`. If `value` is NaN, the result is NaN, as in torch.clamp.
 * If `tame` is set, neither argument may be NaN or negative. */
BSMM_SHARED float bsmm_at_least(float value, float low, bool tame) {
    uint32_t bits = bsmm_float_bits(value), least = bsmm_float_bits(low);
    if (tame) return bsmm_bits_float(bits < least ? least : bits);
    return bsmm_select_float(value < low, low, value);
}

/* Encodes a scale as e4m3. If `tame` is set, `value` must not be NaN or negative. */
BSMM_SHARED uint32_t bsmm_e4m3_code_of(float value, bool tame) {
    return tame ? bsmm_e4m3_magnitude(bsmm_float_bits(value)) : bsmm_e4m3_code(value);
}

/* Returns a / b, correctly rounded. If `tame` is set, b must lie between 2^-63 and 2^63, and a must
 * be 0 or lie in the same range. The function then multiplies by 1 / b, which a compiler computes
 * only once for many quotients with the same b.
 *
 * The product q = a * (1 / b) is off by at most 1.5 units in the last place. One correction step, q
 * + (a - q * b) / b, makes it correctly rounded. Markstein's theorem demands two such steps,
 * because the remainder a - q * b may need 25 bits and be rounded. After one step the quotient is
 * off by less than 2^-21 units in the last place. That could change the rounding only if the
 * quotient were so close to the midpoint between two floats, which is possible for few pairs of
 * mantissas. A test of all pairs of mantissas of a and b found no wrong result. */
BSMM_SHARED float bsmm_ratio(float a, float b, bool tame) {
    if (!BSMM_ON_GPU && tame) {
        float reciprocal = 1 / b, q = a * reciprocal;
        return fmaf(fmaf(-q, b, a), reciprocal, q);
    }
    return bsmm_div(a, b);
}

/* Rounds an fp32 value to the format of the tensor's values (bf16 or f16), to nearest even, and
 * returns it as fp32. A normal result keeps 23 - `dropped` mantissa bits. f16, which is recognized
 * by its smallest normal value 2^-14, also has subnormals and overflows to Inf. */
BSMM_SHARED float bsmm_round_to(const bsmm_tensor_step *t, float value) {
    uint32_t bits = bsmm_float_bits(value), a = bits & 0x7fffffffu, sign = bits & 0x80000000u;
    uint32_t dropped = t->source_min_normal == 0x1p-14f ? 13 : 16;
    if (t->source_max == FLT_MAX || a > 0x7f800000u) return value;
    uint32_t half = (1u << (dropped - 1)) - 1 + (a >> dropped & 1);
    float rounded = bsmm_bits_float((a + half) >> dropped << dropped);
    /* An f16 number below 2^-14 is subnormal, i.e. a multiple of 2^-24. In fp32, the numbers from
     * 0.5 to 1 are the multiples of 2^-24. Adding 0.5 therefore rounds to a multiple of 2^-24, and
     * subtracting 0.5 is exact. */
    if (dropped == 13 && a < 0x38800000u) rounded = (bsmm_bits_float(a) + 0.5f) - 0.5f;
    if (rounded > t->source_max) rounded = bsmm_bits_float(0x7f800000u);
    return bsmm_bits_float(bsmm_float_bits(rounded) | sign);
}

/* The functions from here on compute torchao's rule for nvfp4 scales (per_tensor_amax_to_scale,
 * nvfp4_quantize). */

/* Computes torchao's scale of a tensor. If 1 / scale overflows (a tensor of zeros or of tiny
 * values), torchao's results are NaN. The function uses the scale 1 for such a tensor. */
BSMM_SHARED void bsmm_tensor_torchao(float amax, bsmm_tensor_step *t) {
    float scale = bsmm_div(amax, BSMM_E4M3_MAX * t->max);
    t->multiplier = isinf(bsmm_div(1, scale)) ? 1 : scale;
    t->divisor = bsmm_div(1, t->multiplier);
}

BSMM_SHARED uint32_t bsmm_e4m3_torchao_code(float amax, const bsmm_tensor_step *t, bool tame) {
    float scale = bsmm_ratio(bsmm_ratio(amax, t->max, tame), t->multiplier, tame);
    return bsmm_e4m3_code_of(bsmm_at_least(scale, 0x1p-6f, tame), tame);
}

BSMM_SHARED float bsmm_e4m3_torchao_factor(uint32_t code, const bsmm_tensor_step *t) {
    return bsmm_div(bsmm_div(1, t->multiplier), bsmm_e4m3_value(code));
}

/* The functions from here on compute TransformerEngine's rule for nvfp4 scales
 * (quantization_ref_nvfp4.py, core_nvfp4.cuh). */

BSMM_SHARED void bsmm_tensor_te(float amax, bsmm_tensor_step *t) {
    float encode = bsmm_div(BSMM_E4M3_MAX * t->max, amax);
    encode = bsmm_select_float(encode > FLT_MAX, FLT_MAX, encode);
    if (amax == 0 || encode == 0) encode = 1;
    t->divisor = encode;
    t->multiplier = bsmm_div(1, encode);
}

BSMM_SHARED uint32_t bsmm_e4m3_te_code(float amax, const bsmm_tensor_step *t, bool tame) {
    return bsmm_e4m3_code_of(bsmm_mul(amax, bsmm_mul(t->divisor, 1 / t->max)), tame);
}

BSMM_SHARED float bsmm_e4m3_te_factor(uint32_t code, const bsmm_tensor_step *t) {
    float factor = bsmm_div(1, bsmm_mul(bsmm_e4m3_value(code), t->multiplier));
    return bsmm_select_float(factor > FLT_MAX, FLT_MAX, factor);
}

/* The functions from here on compute ModelOpt's rule for nvfp4 scales (NVFP4QTensor). */

/* Computes ModelOpt's scale of a tensor. For a tensor of zeros ModelOpt's results are NaN. The
 * function uses the scale 1 for such a tensor. */
BSMM_SHARED void bsmm_tensor_modelopt(float amax, bsmm_tensor_step *t) {
    float scale = bsmm_div(amax, t->max * BSMM_E4M3_MAX);
    t->multiplier = scale == 0 ? 1 : scale;
    t->divisor = bsmm_div(1, t->multiplier);
}

BSMM_SHARED uint32_t bsmm_e4m3_modelopt_code(float amax, const bsmm_tensor_step *t, bool tame) {
    float scale = bsmm_ratio(amax, bsmm_mul(t->max, t->multiplier), tame);
    scale = bsmm_select_float(scale == 0, 1, bsmm_at_least(scale, 0x1p-9f, tame));
    return bsmm_e4m3_code_of(scale, tame);
}

BSMM_SHARED float bsmm_e4m3_modelopt_factor(uint32_t code, const bsmm_tensor_step *t) {
    return bsmm_mul(bsmm_e4m3_value(code), t->multiplier);
}

/* The functions from here on compute nvfp4 scales by the rule of compressed-tensors
 * (generate_gparam, calculate_qparams). */

/* Computes the divisor of compressed-tensors. torch divides a Python number by a tensor as number *
 * (1 / tensor). The reciprocal 1 / tensor and the product are therefore rounded separately, each to
 * the format of the weights before quantization (f32, f16 or bf16). */
BSMM_SHARED void bsmm_tensor_compressed_tensors(float amax, bsmm_tensor_step *t) {
    float reciprocal =
        bsmm_round_to(t, bsmm_div(1, bsmm_at_least(amax, t->source_min_normal, false)));
    float divisor = bsmm_round_to(t, bsmm_mul(reciprocal, BSMM_E4M3_MAX * t->max));
    t->divisor = isfinite(divisor) ? divisor : 1;
    t->multiplier = bsmm_div(1, t->divisor);
}

BSMM_SHARED uint32_t bsmm_e4m3_compressed_tensors_code(float amax, const bsmm_tensor_step *t,
                                                       bool tame) {
    float scale = bsmm_round_to(t, bsmm_ratio(amax, t->max, tame));
    uint32_t code = bsmm_e4m3_code_of(bsmm_mul(t->divisor, scale), tame);
    return code ? code : bsmm_e4m3_code(0.125f);
}

BSMM_SHARED float bsmm_e4m3_compressed_tensors_factor(uint32_t code, const bsmm_tensor_step *t) {
    return bsmm_div(bsmm_e4m3_value(code), t->divisor);
}

/* The functions from here on compute ggml's rule for nvfp4 scales (quantize_row_nvfp4_ref). */

/* Encodes a scale as ggml_fp32_to_ue4m3 does. It rounds to nearest, ties away from zero. A value
 * that rounds to 256 or more becomes 448, e4m3's largest value. */
BSMM_SHARED uint32_t bsmm_ggml_e4m3_code(float value) {
    if (!(value > 0)) return 0;
    uint32_t bits = bsmm_float_bits(value);
    if (bits < 0x3c800000u) /* e4m3's values below 2^-6 are subnormal, i.e. multiples of 2^-9. */
        return (uint32_t)fminf(value * 512 + 0.5f, 7);
    uint32_t code = (bits - (120u << 23) + (1u << 19)) >> 20;
    return code < 15u << 3 ? code : 0x7e;
}

BSMM_SHARED uint32_t bsmm_e4m3_ggml_code(float amax, const bsmm_tensor_step *t, bool tame) {
    return bsmm_ggml_e4m3_code(bsmm_ratio(amax, t->max, tame));
}

BSMM_SHARED float bsmm_e4m3_ggml_factor(uint32_t code, const bsmm_tensor_step *t) {
    (void)t;
    return bsmm_e4m3_value(code);
}

/* Each rule that chooses e4m3 scales has two functions. One computes the code of a block's scale.
 * The other computes the factor by which the block's values are multiplied or divided. The macros
 * and functions from here on define a third function for each rule, which calls both. */

#define BSMM_E4M3_RULE(rule)                                                                       \
    BSMM_SHARED bsmm_block_step rule(float amax, const bsmm_tensor_step *t) {                      \
        uint32_t code = rule##_code(amax, t, false);                                               \
        return bsmm_block_step_of(code, rule##_factor(code, t));                                   \
    }
BSMM_E4M3_RULE(bsmm_e4m3_torchao)
BSMM_E4M3_RULE(bsmm_e4m3_te)
BSMM_E4M3_RULE(bsmm_e4m3_modelopt)
BSMM_E4M3_RULE(bsmm_e4m3_compressed_tensors)
BSMM_E4M3_RULE(bsmm_e4m3_ggml)
#undef BSMM_E4M3_RULE

#endif
