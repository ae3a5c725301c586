/* Encodes fp32 values as element codes of at most 16 bits, without branches. */
#ifndef BSMM_RECIPE_CODER_H
#define BSMM_RECIPE_CODER_H

#include "recipe/step.h"

/* These constants describe how fp32 values are encoded in one element format (any format but f32)
 * with one rounding rule. */
typedef struct bsmm_coder {
    /* `shift` is the number of fp32 mantissa bits that the element format lacks. */
    uint32_t shift;
    /* `rebias` is added to fp32 bits. It changes the exponent bias to that of the element format,
     * and adds almost half of the last kept bit, so that the following shift rounds. */
    uint32_t rebias;
    /* `min_normal` is the smallest normal number of the element format, as fp32 bits. */
    uint32_t min_normal;
    /* `magic` has the fp32 bits of a number whose last mantissa bit has the value of the format's
     * smallest subnormal. Adding this number rounds a magnitude to a multiple of the subnormal. */
    uint32_t magic;
    /* `max_code` is the code of a value that overflows: with saturation the largest finite code,
     * else Inf (NaN for e4m3). */
    uint32_t max_code;
    uint32_t nan_code, nan_sign;
    /* `sign_shift` is the shift that moves the sign from bit 31 of an fp32 value to the code's sign
     * bit. */
    uint32_t sign_shift;
    bool down; /* `down` is true if ties are rounded towards zero (BSMM_TIES_DOWN). */
    /* These masks implement the recipe's rule for the signs of zeros (bsmm_zero_sign). zero_and and
     * zero_or are applied to values that are zero. zero_code_and is applied to all values whose
     * code is zero, which includes small values that are rounded to zero. A mask without effect
     * leaves the sign as it is. */
    uint32_t zero_and, zero_or, zero_code_and;
} bsmm_coder;

/* Rounds a magnitude (fp32 bits without sign) to nearest even and returns its code. A carry out of
 * the mantissa increments the exponent, which gives the right code, that of the next power of two.
 */
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

/* Returns the mask that selects the sign of a NaN. The mask is all ones if a NaN keeps its sign,
 * and 0 if the format has only one NaN or none. */
BSMM_SHARED uint32_t bsmm_coder_nan_mask(const bsmm_coder *k) {
    return k->nan_code == 0 || k->nan_sign ? 0 : UINT32_MAX;
}

/* Encodes a float, given as its fp32 bits, rounded to nearest even. nan_mask is the result of
 * bsmm_coder_nan_mask. */
BSMM_SHARED uint32_t bsmm_coder_even(const bsmm_coder *k, uint32_t nan_mask, uint32_t bits) {
    uint32_t a = bits & 0x7fffffffu;
    uint32_t code = bsmm_coder_sign(k, bits, a, bsmm_coder_nearest(k, a));
    uint32_t nan = k->nan_code | ((bits & 0x80000000u) >> k->sign_shift & nan_mask);
    return a > 0x7f800000u ? nan : code;
}

/* Encodes a float, given as its fp32 bits, as e2m1. Ties are rounded towards zero (BSMM_TIES_DOWN).
 * `bounds` holds the fp32 bits of the 7 midpoints between adjacent magnitudes of e2m1, multiplied
 * by the block's scale. The code is the number of midpoints that the magnitude exceeds, so a tie
 * gets the smaller code. A magnitude above `limit` (Inf or NaN) has no nearest code and gets code
 * 0. */
BSMM_SHARED uint32_t bsmm_coder_down(const bsmm_coder *k, const uint32_t bounds[7], uint32_t limit,
                                     uint32_t bits) {
    uint32_t a = bits & 0x7fffffffu, count = 0;
    BSMM_UNROLL
    for (int j = 0; j < 7; j++)
        count += a > bounds[j];
    return bsmm_coder_sign(k, bits, a, a > limit ? 0 : count);
}

/* Returns midpoint number j (0 to 6) between adjacent magnitudes of e2m1. */
BSMM_SHARED float bsmm_e2m1_midpoint(int j) {
    return j < 4 ? 0.25f + 0.5f * (float)j : j == 4 ? 2.5f : j == 5 ? 3.5f : 5.0f;
}

#endif
