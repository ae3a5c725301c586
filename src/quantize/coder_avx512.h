/* Rounds and encodes 16 values at a time with AVX-512. The results are bitwise equal to the results
 * of coder.c. */
#ifndef BSMM_QUANTIZE_CODER_AVX512_H
#define BSMM_QUANTIZE_CODER_AVX512_H

#include "quantize/lanes_avx512.h"

/* Holds the constants of a bsmm_coder in vector registers. A bsmm_coder (recipe/coder.h) is a set
 * of constants for encoding fp32 values as codes of one element format by one rounding rule. */
typedef struct vector_coder {
    uint32_t bits;
    bool down; /* `down` is true if ties are rounded towards zero (BSMM_TIES_DOWN). */
    __m512 max;
    __m512i min_normal, ruler;
    /* These masks select the magnitude bits of a code: `magnitude` in each 32-bit lane, and
     * words_magnitude in each 16-bit lane. */
    __m512i magnitude, words_magnitude;
    __m512i nan_code, nan_sign_and, zero_and, zero_or, zero_code_and;
    /* These are shift counts. A sign shift moves the top bit of a lane to the sign bit of a
     * code. */
    __m512i shift, sign_shift, words_sign_shift;
} vector_coder;

INLINE vector_coder vector_coder_of(const bsmm_coder *k, uint32_t bits) {
    const int magnitude = (int)(1u << (bits - 1)) - 1;
    int nan_sign_and = k->nan_code && !k->nan_sign ? -1 : 0;
    int ruler = (int)((k->shift << 23) + 0x00400000u - (k->min_normal >> k->shift));
    return (vector_coder){
        .bits = bits,
        .down = k->down,
        .max = _mm512_castsi512_ps(_mm512_set1_epi32(bsmm_coder_max_bits(k))),
        .min_normal = _mm512_set1_epi32((int)k->min_normal),
        .ruler = _mm512_set1_epi32(ruler),
        .magnitude = _mm512_set1_epi32(magnitude),
        .words_magnitude = _mm512_set1_epi16((short)magnitude),
        .nan_code = _mm512_set1_epi32((int)k->nan_code),
        .nan_sign_and = _mm512_set1_epi32(nan_sign_and),
        .zero_and = _mm512_set1_epi32((int)k->zero_and),
        .zero_or = _mm512_set1_epi32((int)k->zero_or),
        .zero_code_and = _mm512_set1_epi32((int)k->zero_code_and),
        .shift = _mm512_set1_epi32((int)k->shift),
        .sign_shift = _mm512_set1_epi32(32 - (int)bits),
        .words_sign_shift = _mm512_set1_epi16((short)(16 - (int)bits)),
    };
}

/* Encodes magnitudes as e2m1, whose codes 0 to 7 mean 0, 0.5, 1, 1.5, 2, 3, 4 and 6. The code of a
 * magnitude a, not yet rounded to an integer, is 2 a for a up to 2, a + 2 from 2 to 4, and a / 2 +
 * 4 from 4 on. The right one of these three numbers is always the least. The function rounds each
 * of the three to an integer by adding 1.5 * 2^23, whose last mantissa bit is worth 1, and takes
 * the least. */
INLINE __m512i nearest_e2m1(__m512 a) {
    const __m512 integer = _mm512_set1_ps(0x1.8p23f);
    __m512 half = _mm512_fmadd_ps(a, _mm512_set1_ps(0.5f), _mm512_set1_ps(0x1.8p23f + 4));
    __m512 one = _mm512_add_ps(a, _mm512_set1_ps(0x1.8p23f + 2));
    __m512 twice = _mm512_fmadd_ps(a, _mm512_set1_ps(2), integer);
    return _mm512_castps_si512(_mm512_min_ps(_mm512_min_ps(half, one), twice));
}

/* Encodes magnitudes, rounded to nearest even, with the same results as bsmm_coder_nearest. The
 * code is in the lowest 22 bits of each lane; the bits above it are not 0.
 *
 * The function adds a "ruler" to the magnitude. A ruler is an fp32 number that is so large that its
 * last mantissa bit has the same value as the last mantissa bit of the element format at this
 * magnitude. The addition therefore rounds the magnitude to that bit, ties to even.
 *
 * The exponent of the ruler is the exponent of the magnitude (at least that of min_normal) plus
 * k->shift. k->shift is the difference between the numbers of mantissa bits of fp32 and of the
 * element format. The last bits of the ruler are the first code with the exponent of the magnitude,
 * minus 2^(mantissa bits of the element format). The implicit 1 of the magnitude adds 2^(mantissa
 * bits) again, so the last bits of the sum are the code. The last bits of the ruler form an even
 * number, so they do not change the direction of ties. Bit 22 of the ruler is set, so that the sum
 * has the same exponent as the ruler. */
INLINE __m512i nearest_even(const vector_coder *k, __m512 magnitude) {
    if (k->bits == 4) return nearest_e2m1(magnitude);
    __m512i field = _mm512_and_si512(_mm512_castps_si512(magnitude), _mm512_set1_epi32(0x7f800000));
    __m512i exponent = _mm512_max_epu32(field, k->min_normal);
    __m512i ruler = _mm512_add_epi32(_mm512_add_epi32(exponent, k->ruler),
                                     _mm512_srlv_epi32(exponent, k->shift));
    __m512 sum = _mm512_add_ps(magnitude, _mm512_castsi512_ps(ruler));
    return _mm512_sub_epi32(_mm512_castps_si512(sum), exponent);
}

/* Returns |value|, limited to the largest value of the format. NaN becomes the largest value. */
INLINE __m512 clamp(const vector_coder *k, __m512 value) {
    return _mm512_range_ps(value, k->max, 0x0a);
}

/* Holds codes without their sign bits. The sign of code i is the top bit of lane i of `signs`. */
typedef struct signed_codes {
    __m512i codes, signs;
} signed_codes;

/* Applies the coder's rules for the signs of zeros. The masks zero_and, zero_or and zero_code_and
 * hold these rules, as in bsmm_coder_sign. */
INLINE signed_codes signs_by_rules(const vector_coder *k, __m512i a, signed_codes c) {
    __mmask16 is_zero = _mm512_testn_epi32_mask(a, a);
    __mmask16 is_code0 = _mm512_testn_epi32_mask(c.codes, k->magnitude);
    c.signs = _mm512_mask_and_epi32(c.signs, is_zero, c.signs, k->zero_and);
    c.signs = _mm512_mask_or_epi32(c.signs, is_zero, c.signs, k->zero_or);
    c.signs = _mm512_mask_and_epi32(c.signs, is_code0, c.signs, k->zero_code_and);
    return c;
}

/* Applies the coder's rules for zeros and for NaN. In fnuz formats the code of NaN already contains
 * the sign bit. */
INLINE signed_codes apply_rules(const vector_coder *k, __m512i a, signed_codes c) {
    __mmask16 is_nan = _mm512_cmpgt_epu32_mask(a, _mm512_set1_epi32(0x7f800000));
    c = signs_by_rules(k, a, c);
    c.signs = _mm512_mask_and_epi32(c.signs, is_nan, c.signs, k->nan_sign_and);
    c.codes = _mm512_mask_mov_epi32(c.codes, is_nan, k->nan_code);
    return c;
}

/* Encodes values as e2m1 with ties towards zero, as bsmm_coder_down does. It compares the magnitude
 * of each value with the midpoints between neighboring e2m1 values, each of them multiplied by
 * `scale`. The number of products that the magnitude exceeds is the code of the magnitude. Inf
 * gives the largest code if `infinite` is set, else code 0. */
INLINE signed_codes codes_down(const vector_coder *k, __m512i bits, __m512 scale, bool infinite) {
    const __m512i inf = _mm512_set1_epi32(0x7f800000), one = _mm512_set1_epi32(1);
    __m512i a = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    __mmask16 counts = _mm512_cmple_epu32_mask(a, infinite ? inf : _mm512_sub_epi32(inf, one));
    counts &= _mm512_cmp_ps_mask(scale, _mm512_setzero_ps(), _CMP_GT_OQ);
    signed_codes c = {_mm512_setzero_si512(), bits};
#pragma GCC unroll 7
    for (int j = 0; j < 7; j++) {
        __m512 bound = _mm512_mul_ps(scale, _mm512_set1_ps(bsmm_e2m1_midpoint(j)));
        __mmask16 above = _mm512_mask_cmpgt_epu32_mask(counts, a, _mm512_castps_si512(bound));
        c.codes = _mm512_mask_add_epi32(c.codes, above, c.codes, one);
    }
    return signs_by_rules(k, a, c);
}

#endif
