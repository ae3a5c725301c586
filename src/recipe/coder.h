/* fp32 to codes of 16 bits and fewer, without branches. */
#ifndef BSMM_RECIPE_CODER_H
#define BSMM_RECIPE_CODER_H

#include "recipe/step.h"

/* The constants of one element format (all but f32) under one rule. */
typedef struct bsmm_coder {
    uint32_t shift;      /* fp32 mantissa bits that are rounded away */
    uint32_t rebias;     /* exponent offset and rounding half, as fp32 bits */
    uint32_t min_normal; /* as fp32 bits */
    uint32_t magic;      /* fp32 bits of the number whose ulp is the least subnormal */
    uint32_t max_code;   /* of what overflows; without saturation Inf or, e4m3, NaN */
    uint32_t nan_code, nan_sign;
    uint32_t sign_shift;                       /* from bit 31 to the code's sign bit */
    bool down;                                 /* BSMM_TIES_DOWN */
    uint32_t zero_and, zero_or, zero_code_and; /* bsmm_zero_sign as masks */
} bsmm_coder;

/* The magnitude's code, nearest even: the rounding carry runs into the exponent. */
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

/* What a NaN's sign is kept by: nothing where NaN is one code, or none. */
BSMM_SHARED uint32_t bsmm_coder_nan_mask(const bsmm_coder *k) {
    return k->nan_code == 0 || k->nan_sign ? 0 : UINT32_MAX;
}

/* The code of fp32 bits, nearest even. */
BSMM_SHARED uint32_t bsmm_coder_even(const bsmm_coder *k, uint32_t nan_mask, uint32_t bits) {
    uint32_t a = bits & 0x7fffffffu;
    uint32_t code = bsmm_coder_sign(k, bits, a, bsmm_coder_nearest(k, a));
    uint32_t nan = k->nan_code | ((bits & 0x80000000u) >> k->sign_shift & nan_mask);
    return a > 0x7f800000u ? nan : code;
}

/* The code of fp32 bits under BSMM_TIES_DOWN: a bound belongs to the value below it, so a code is
 * the count of bounds exceeded; magnitudes above `limit` exceed none. */
BSMM_SHARED uint32_t bsmm_coder_down(const bsmm_coder *k, const uint32_t bounds[7], uint32_t limit,
                                     uint32_t bits) {
    uint32_t a = bits & 0x7fffffffu, count = 0;
    for (int j = 0; j < 7; j++)
        count += a > bounds[j];
    return bsmm_coder_sign(k, bits, a, a > limit ? 0 : count);
}

/* Bound j between e2m1's magnitudes: their midpoints. */
BSMM_SHARED float bsmm_e2m1_midpoint(int j) {
    return j < 4 ? 0.25f + 0.5f * (float)j : j == 4 ? 2.5f : j == 5 ? 3.5f : 5.0f;
}

#endif
