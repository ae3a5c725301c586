/* Rules that give a block an e8m0 scale, a power of two stored as a biased exponent byte. Each rule
 * computes the byte from the block's amax. */
#ifndef BSMM_RECIPE_RULES_E8M0_H
#define BSMM_RECIPE_RULES_E8M0_H

#include "recipe/step.h"

enum { BSMM_E8M0_NAN = 255 };

BSMM_SHARED uint32_t bsmm_clamp_exponent(int exponent, int low, int high) {
    return (uint32_t)(exponent < low ? low : exponent > high ? high : exponent);
}

/* Returns 2^(127 - code) for codes up to 254. The result is exact, including the subnormal 2^-127.
 * The function takes a maximum instead of comparing the code with 254, because ptxas of CUDA 13.0
 * wrongly merges that comparison with the clamp of the code. */
BSMM_SHARED float bsmm_e8m0_reciprocal(uint32_t code) {
    uint32_t bits = (254 - code) << 23;
    return bsmm_bits_float(bits > 0x00400000u ? bits : 0x00400000u);
}

/* Returns the block's code with the reciprocal of its scale as factor. If the scale is NaN, the
 * factor is 0, so that finite values become zeros with their signs, like x / Inf. */
BSMM_SHARED bsmm_block_step bsmm_with_reciprocal(uint32_t code) {
    return bsmm_block_step_of(code, code == BSMM_E8M0_NAN ? 0 : bsmm_e8m0_reciprocal(code));
}

BSMM_SHARED int bsmm_exponent_field(float amax) {
    return (int)(bsmm_float_bits(amax) >> 23);
}

/* Returns the code of the smallest power of two that is at least the positive value. It reads the
 * exponent field, because log2 in fp32 rounds to an integer near a power of two. Values up to
 * 2^-127 give code 0. Inf and NaN give 255 and more. */
BSMM_SHARED uint32_t bsmm_ceil_exponent(float value) {
    uint32_t bits = bsmm_float_bits(value), exponent = bits >> 23, mantissa = bits & 0x7fffff;
    if (exponent == 0) return mantissa > 0x400000;
    return exponent + (mantissa != 0);
}

/* Computes the correctly rounded fp32 log2, as torch and glibc do near powers of two. Values next
 * to a power of two give an integer there, so that floor and ceil of the logarithm are off by one.
 * Recipes must reproduce that. */
BSMM_SHARED float bsmm_log2_fp32(float value) {
    return (float)bsmm_log2(value);
}

/* Rounds a scale up to a power of two from 2^-126 to 2^127, as DeepGEMM's ceil_to_ue8m0 does. */
BSMM_SHARED float bsmm_ceil_to_ue8m0(float scale) {
    uint32_t bits = bsmm_float_bits(scale);
    uint32_t exponent = (bits >> 23) + ((bits & 0x7fffff) != 0);
    if (exponent < 1) exponent = 1;
    return bsmm_bits_float((exponent < 254 ? exponent : 254) << 23);
}

/* The rule of OCP MX v1.0 section 6.3: the largest power of two that is at most amax, divided by
 * the largest power of two of the element format. */
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

/* The rule `even`: rounds amax to the element's mantissa bits, half up, and then applies the OCP
 * rule. */
BSMM_SHARED uint32_t bsmm_even_code(float amax, uint32_t mantissa_bits, int emax) {
    uint32_t bits = bsmm_float_bits(amax);
    if (bits > 0x7f800000u) return BSMM_E8M0_NAN;
    bits += 1u << (22 - mantissa_bits);
    return bsmm_clamp_exponent((int)(bits >> 23) - emax, 0, 254);
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_even(float amax, const bsmm_tensor_step *t) {
    return bsmm_with_reciprocal(bsmm_even_code(amax, t->mantissa_bits, t->emax));
}

/* The rule `rceil`: the smallest power of two that is at least amax / max. Inf gives code 254
 * (satfinite). */
BSMM_SHARED uint32_t bsmm_rceil_code(float descale) {
    if (isnan(descale)) return BSMM_E8M0_NAN;
    return bsmm_clamp_exponent((int)bsmm_ceil_exponent(descale), 0, 254);
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_rceil(float amax, const bsmm_tensor_step *t) {
    return bsmm_with_reciprocal(bsmm_rceil_code(amax / t->max));
}

/* torchao's default mode divides a block with scale byte 0 by 2^-126, although byte 0 means
 * 2^-127. */
BSMM_SHARED bsmm_block_step bsmm_e8m0_torchao(float amax, const bsmm_tensor_step *t) {
    uint32_t code = bsmm_floor_code(amax, t);
    return code ? bsmm_with_reciprocal(code) : bsmm_block_step_of(0, 0x1p126f);
}

/* TransformerEngine's exp2f_rcp gives factor 1 for scale byte 0. */
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

/* AMD Quark computes log2 of the rounded amax, so that an amax that rounds up to 2^128 gives the
 * largest scale. It stores byte 1 in place of byte 0, but still divides by 2^-127. */
BSMM_SHARED bsmm_block_step bsmm_e8m0_quark(float amax, const bsmm_tensor_step *t) {
    uint32_t rounded = bsmm_float_bits(amax) + (1u << (22 - t->mantissa_bits));
    if (!isnan(amax) && rounded >= 0x7f800000u) return bsmm_with_reciprocal(254);
    bsmm_block_step step = bsmm_e8m0_even(amax, t);
    if (step.code == 0) step.code = 1;
    return step;
}

/* compressed-tensors rounds amax to e2m1's one mantissa bit for 4-bit and 8-bit elements, and to
 * e2m3's three bits for 6-bit elements. */
BSMM_SHARED bsmm_block_step bsmm_e8m0_compressed_tensors(float amax, const bsmm_tensor_step *t) {
    return bsmm_with_reciprocal(bsmm_even_code(amax, t->max == 7.5f ? 3 : 1, t->emax));
}

BSMM_SHARED bsmm_block_step bsmm_e8m0_deepgemm(float amax, const bsmm_tensor_step *t) {
    float scale = bsmm_ceil_to_ue8m0((amax < 1e-4f ? 1e-4f : amax) / t->max);
    return bsmm_with_reciprocal(bsmm_float_bits(scale) >> 23);
}

#endif
