/* These rules give each block an e8m0 scale. Such a scale is a power of two, stored as a byte with
 * the exponent plus 127. Each rule computes the byte from amax, the block's largest magnitude. */
#ifndef BSMM_RECIPE_RULES_E8M0_H
#define BSMM_RECIPE_RULES_E8M0_H

#include "recipe/step.h"

enum { BSMM_E8M0_NAN = 255 };

BSMM_SHARED uint32_t bsmm_clamp_exponent(int exponent, int low, int high) {
    return (uint32_t)(exponent < low ? low : exponent > high ? high : exponent);
}

/* Returns 2^(127 - code), the reciprocal of the scale with that code, which must be at most 254.
 * The result is exact; for code 254 it is the subnormal number 2^-127. The function takes a maximum
 * of two numbers instead of comparing the code with 254, because ptxas of CUDA 13.0 wrongly merges
 * such a comparison with the clamp of the code in a caller. */
BSMM_SHARED float bsmm_e8m0_reciprocal(uint32_t code) {
    uint32_t bits = (254 - code) << 23;
    return bsmm_bits_float(bits > 0x00400000u ? bits : 0x00400000u);
}

/* Returns the code of a block's scale together with the reciprocal of the scale, by which the
 * values of the block are multiplied. If the scale is NaN, the reciprocal is replaced by 0. Finite
 * values of the block then become zeros that keep their signs, as if they were divided by Inf. */
BSMM_SHARED bsmm_block_step bsmm_with_reciprocal(uint32_t code) {
    return bsmm_block_step_of(code, code == BSMM_E8M0_NAN ? 0 : bsmm_e8m0_reciprocal(code));
}

BSMM_SHARED int bsmm_exponent_field(float amax) {
    return (int)(bsmm_float_bits(amax) >> 23);
}

/* Returns the code of the smallest power of two that is not less than `value`, which must be
 * positive. Values up to 2^-127 give code 0. Inf gives 255, and NaN gives at least 255. The
 * function reads the exponent bits, because log2 in fp32 returns a rounded integer for values close
 * to a power of two. */
BSMM_SHARED uint32_t bsmm_ceil_exponent(float value) {
    uint32_t bits = bsmm_float_bits(value), exponent = bits >> 23, mantissa = bits & 0x7fffff;
    if (exponent == 0) return mantissa > 0x400000;
    return exponent + (mantissa != 0);
}

/* Returns log2(value), correctly rounded to fp32, as torch and glibc compute it near powers of two.
 * If a value is next to a power of two, the rounded logarithm may be the exponent of that power,
 * i.e. an integer. The floor or the ceiling of the logarithm is then off by one. Other projects
 * compute such floors and ceilings, and bsmm must make the same error to reproduce their bytes. */
BSMM_SHARED float bsmm_log2_fp32(float value) {
    return (float)bsmm_log2(value);
}

/* Rounds a scale up to a power of two between 2^-126 and 2^127, as DeepGEMM's ceil_to_ue8m0
 * does. */
BSMM_SHARED float bsmm_ceil_to_ue8m0(float scale) {
    uint32_t bits = bsmm_float_bits(scale);
    uint32_t exponent = (bits >> 23) + ((bits & 0x7fffff) != 0);
    if (exponent < 1) exponent = 1;
    return bsmm_bits_float((exponent < 254 ? exponent : 254) << 23);
}

/* Computes the code of a scale by the rule of OCP MX v1.0, section 6.3, which is also the rule
 * `floor`. The scale is the largest power of two that does not exceed amax, divided by the largest
 * power of two of the element format (2^emax). */
BSMM_SHARED uint32_t bsmm_floor_code(float amax, const bsmm_tensor_step *t) {
    if (isnan(amax)) return BSMM_E8M0_NAN;
    return bsmm_clamp_exponent(bsmm_exponent_field(amax) - t->emax, 0, 254);
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_floor(float amax, const bsmm_tensor_step *t) {
    return bsmm_with_reciprocal(bsmm_floor_code(amax, t));
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_ceil(float amax, const bsmm_tensor_step *t) {
    if (isnan(amax)) return bsmm_with_reciprocal(BSMM_E8M0_NAN);
    bool fraction = bsmm_float_bits(amax) & 0x7fffff;
    int exponent = bsmm_exponent_field(amax) + fraction - t->emax;
    return bsmm_with_reciprocal(bsmm_clamp_exponent(exponent, 0, 254));
}

/* Computes the code of a scale by the rule `even`. The rule rounds amax to the number of mantissa
 * bits of the element format, ties up, and then applies the rule of OCP MX to the rounded value.
 * Only the exponent of the rounded value matters. To find it, the function adds half of the last
 * kept mantissa bit to the bits of amax. If amax rounds up to a power of two, this addition carries
 * into the exponent. */
BSMM_SHARED uint32_t bsmm_even_code(float amax, uint32_t mantissa_bits, int emax) {
    uint32_t bits = bsmm_float_bits(amax);
    if (bits > 0x7f800000u) return BSMM_E8M0_NAN;
    bits += 1u << (22 - mantissa_bits);
    return bsmm_clamp_exponent((int)(bits >> 23) - emax, 0, 254);
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_even(float amax, const bsmm_tensor_step *t) {
    return bsmm_with_reciprocal(bsmm_even_code(amax, t->mantissa_bits, t->emax));
}

/* Computes the code of a scale by the rule `rceil`. The scale is the smallest power of two that is
 * not less than `descale`, which is amax / (largest value of the element format). Inf gives code
 * 254, the largest scale (satfinite). */
BSMM_SHARED uint32_t bsmm_rceil_code(float descale) {
    if (isnan(descale)) return BSMM_E8M0_NAN;
    return bsmm_clamp_exponent((int)bsmm_ceil_exponent(descale), 0, 254);
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_rceil(float amax, const bsmm_tensor_step *t) {
    return bsmm_with_reciprocal(bsmm_rceil_code(amax / t->max));
}

/* torchao's rule equals `floor`, except for scales with code 0. Code 0 means 2^-127, but torchao
 * divides the values of such a block by 2^-126. */
BSMM_SHARED bsmm_block_step bsmm_e8m0_torchao(float amax, const bsmm_tensor_step *t) {
    uint32_t code = bsmm_floor_code(amax, t);
    return code ? bsmm_with_reciprocal(code) : bsmm_block_step_of(0, 0x1p126f);
}

/* Computes a scale by TransformerEngine's rule. It differs from the rule `rceil` in three points.
 * First, it multiplies amax by the rounded number 1 / max instead of dividing it by max, the
 * largest value of the element format. Second, a block whose scale is NaN is multiplied by NaN.
 * Third, a block whose scale has code 0 (2^-127) is multiplied by 1 and not by 2^127, as in
 * TransformerEngine's function exp2f_rcp. */
BSMM_SHARED bsmm_block_step bsmm_e8m0_te(float amax, const bsmm_tensor_step *t) {
    uint32_t code = bsmm_rceil_code(amax * (1 / t->max));
    if (code == BSMM_E8M0_NAN) return bsmm_block_step_of(code, bsmm_bits_float(0x7fc00000u));
    return code ? bsmm_with_reciprocal(code) : bsmm_block_step_of(0, 1);
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_modelopt(float amax, const bsmm_tensor_step *t) {
    float exponent = ceilf(fmaxf(bsmm_log2_fp32(amax / t->max), -127));
    if (isnan(amax)) return bsmm_with_reciprocal(BSMM_E8M0_NAN);
    return bsmm_with_reciprocal(bsmm_clamp_exponent((int)fminf(exponent, 127) + 127, 0, 254));
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_ggml(float amax, const bsmm_tensor_step *t) {
    if (!(amax > 0)) return bsmm_with_reciprocal(0);
    float exponent = floorf(bsmm_log2_fp32(amax)) - (float)t->emax + 127;
    return bsmm_with_reciprocal((uint32_t)fminf(fmaxf(exponent, 0), 254));
}

/* AMD Quark's rule rounds amax like the rule `even`. If the rounded amax is 2^128, the scale is the
 * largest one, code 254. A scale of code 0 is stored as code 1, but the values are still divided by
 * 2^-127. */
BSMM_SHARED bsmm_block_step bsmm_e8m0_quark(float amax, const bsmm_tensor_step *t) {
    uint32_t rounded = bsmm_float_bits(amax) + (1u << (22 - t->mantissa_bits));
    if (!isnan(amax) && rounded >= 0x7f800000u) return bsmm_with_reciprocal(254);
    bsmm_block_step step = bsmm_e8m0_even(amax, t);
    if (step.code == 0) step.code = 1;
    return step;
}

/* compressed-tensors computes scales like the rule `even`, which rounds amax to the number of
 * mantissa bits of the element format. Only this number differs: it is 3 for e2m3 elements, whose
 * largest value is 7.5, and 1 for elements of all other formats. */
BSMM_SHARED bsmm_block_step bsmm_e8m0_compressed_tensors(float amax, const bsmm_tensor_step *t) {
    return bsmm_with_reciprocal(bsmm_even_code(amax, t->max == 7.5f ? 3 : 1, t->emax));
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_deepgemm(float amax, const bsmm_tensor_step *t) {
    float scale = bsmm_ceil_to_ue8m0((amax < 1e-4f ? 1e-4f : amax) / t->max);
    return bsmm_with_reciprocal(bsmm_float_bits(scale) >> 23);
}

#endif
