/* Encodes fp32 values as codes of at most 16 bits, without branches. */
#ifndef BSMM_RECIPE_CODER_H
#define BSMM_RECIPE_CODER_H

#include "recipe/step.h"

/* The constants that encode one element format (any but f32) with one rounding rule. */
typedef struct bsmm_coder {
    uint32_t shift;      /* number of fp32 mantissa bits that are rounded away */
    uint32_t rebias;     /* exponent offset and rounding half, as fp32 bits */
    uint32_t min_normal; /* smallest normal number of the element format, as fp32 bits */
    uint32_t magic;      /* fp32 bits of the number whose ulp is the least subnormal */
    /* Code for overflow: the largest; without saturation Inf, or NaN for e4m3. */
    uint32_t max_code;
    uint32_t nan_code, nan_sign;
    uint32_t sign_shift; /* distance from bit 31 to the code's sign bit */
    bool down;           /* ties are rounded towards zero (BSMM_TIES_DOWN) */
    /* Masks that implement the rule for signs of zeros, bsmm_zero_sign. */
    uint32_t zero_and, zero_or, zero_code_and;
} bsmm_coder;

/* Encodes a magnitude, rounded to nearest even. A carry of the rounding may run into the exponent,
 * which gives the right code. */
BSMM_SHARED uint32_t bsmm_coder_nearest(const bsmm_coder *k, uint32_t a) {
    uint32_t normal = (a + k->rebias + (a >> k->shift & 1)) >> k->shift;
    uint32_t small = bsmm_float_bits(bsmm_bits_float(a) + bsmm_bits_float(k->magic)) - k->magic;
    uint32_t code = a < k->min_normal ? small : normal;
    return code < k->max_code ? code : k->max_code;
}

BSMM_SHARED uint32_t bsmm_coder_sign(const bsmm_coder *k, uint32_t bits, uint32_t a,
                                     uint32_t code) {
    uint32_t sign = bits & 0x80000000u;
    sign = a == 0 ? (sign & k->zero_and) | k->zero_or : sign;
    sign &= code == 0 ? k->zero_code_and : UINT32_MAX;
    return code | sign >> k->sign_shift;
}

/* Returns the mask that keeps the sign of a NaN. It clears the sign if the format has a single NaN
 * or none. */
BSMM_SHARED uint32_t bsmm_coder_nan_mask(const bsmm_coder *k) {
    return k->nan_code == 0 || k->nan_sign ? 0 : UINT32_MAX;
}

/* Encodes a float, given as its bits, rounded to nearest even. */
BSMM_SHARED uint32_t bsmm_coder_even(const bsmm_coder *k, uint32_t nan_mask, uint32_t bits) {
    uint32_t a = bits & 0x7fffffffu;
    uint32_t code = bsmm_coder_sign(k, bits, a, bsmm_coder_nearest(k, a));
    uint32_t nan = k->nan_code | ((bits & 0x80000000u) >> k->sign_shift & nan_mask);
    return a > 0x7f800000u ? nan : code;
}

/* Encodes a float, given as its bits, with ties rounded towards zero (BSMM_TIES_DOWN). The code is
 * the number of bounds (midpoints between adjacent values) that the magnitude exceeds. A magnitude
 * equal to a bound belongs to the value below it. A magnitude above `limit` exceeds no bound. */
BSMM_SHARED uint32_t bsmm_coder_down(const bsmm_coder *k, const uint32_t bounds[7], uint32_t limit,
                                     uint32_t bits) {
    uint32_t a = bits & 0x7fffffffu, count = 0;
    BSMM_UNROLL
    for (int j = 0; j < 7; j++)
        count += a > bounds[j];
    return bsmm_coder_sign(k, bits, a, a > limit ? 0 : count);
}

/* Returns midpoint j between adjacent magnitudes of e2m1. */
BSMM_SHARED float bsmm_e2m1_midpoint(int j) {
    return j < 4 ? 0.25f + 0.5f * (float)j : j == 4 ? 2.5f : j == 5 ? 3.5f : 5.0f;
}

#endif
