/* Rounds 8 fp32 values at a time and encodes them as elements, with AVX2. The results are bitwise
 * equal to the results of coder.c. */
#ifndef BSMM_QUANTIZE_CODER_AVX2_H
#define BSMM_QUANTIZE_CODER_AVX2_H

#include "quantize/lanes_avx2.h"

/* Holds the constants of a bsmm_coder in vector registers. A bsmm_coder (recipe/coder.h) is a set
 * of constants for encoding fp32 values as codes of one element format by one rounding rule. */
typedef struct vector_coder {
    uint32_t bits;
    int sign_shift; /* `sign_shift` is the distance from bit 31 to the code's sign bit. */
    bool down;      /* `down` is true if ties are rounded towards zero (BSMM_TIES_DOWN). */
    __m256 max;
    __m256i min_normal, ruler, shift;
    __m256i magnitude; /* `magnitude` is the mask of the magnitude bits of a code. */
    __m256i nan_code, nan_sign_and, zero_and, zero_or, zero_code_and;
} vector_coder;

INLINE vector_coder vector_coder_of(const bsmm_coder *k, uint32_t bits) {
    const int nan_sign_and = k->nan_code && !k->nan_sign ? -1 : 0;
    const int ruler = (int)((k->shift << 23) + 0x00400000u - (k->min_normal >> k->shift));
    return (vector_coder){
        .bits = bits,
        .sign_shift = 32 - (int)bits,
        .down = k->down,
        .max = _mm256_castsi256_ps(_mm256_set1_epi32(bsmm_coder_max_bits(k))),
        .min_normal = _mm256_set1_epi32((int)k->min_normal),
        .ruler = _mm256_set1_epi32(ruler),
        .shift = _mm256_set1_epi32((int)k->shift),
        .magnitude = _mm256_set1_epi32((int)(1u << (bits - 1)) - 1),
        .nan_code = _mm256_set1_epi32((int)k->nan_code),
        .nan_sign_and = _mm256_set1_epi32(nan_sign_and),
        .zero_and = _mm256_set1_epi32((int)k->zero_and),
        .zero_or = _mm256_set1_epi32((int)k->zero_or),
        .zero_code_and = _mm256_set1_epi32((int)k->zero_code_and),
    };
}

/* Encodes magnitudes as e2m1, rounded to nearest even. For values of e2m1, the code of a magnitude
 * a is 2 * a up to 2, a + 2 from 2 to 4, and a / 2 + 4 from 4 on. It is always the smallest of
 * these three numbers.
 *
 * Each of the three is computed and rounded to an integer by one addition to `a`. The added
 * constant is so large that the last mantissa bit of the sum is worth 1/2, 1 or 2. The lowest bits
 * of the sum are then the rounded number. The function returns the smallest of the three, in the
 * lowest bits of each lane; the bits above the code are not 0. */
INLINE __m256i nearest_e2m1(__m256 a) {
    __m256i twice = _mm256_castps_si256(_mm256_add_ps(a, _mm256_set1_ps(0x1.8p22f)));
    __m256i one = _mm256_castps_si256(_mm256_add_ps(a, _mm256_set1_ps(0x1.8p23f + 2)));
    __m256i half = _mm256_castps_si256(_mm256_add_ps(a, _mm256_set1_ps(0x1.8p24f + 8)));
    return _mm256_min_epu16(_mm256_min_epu16(half, one), twice);
}

/* Encodes magnitudes, rounded to nearest even, with the results of bsmm_coder_nearest. The code is
 * in the lowest 16 bits of each lane; the bits above it are not 0.
 *
 * The function adds a "ruler" to the magnitude. A ruler is an fp32 number that is so large that its
 * last mantissa bit has the same value as the last mantissa bit of the element format at this
 * magnitude. The addition therefore rounds the magnitude to that bit, ties to even.
 *
 * The exponent of the ruler is the exponent of the magnitude (at least that of min_normal) plus
 * k->shift, the number of mantissa bits that fp32 has more than the element format. The last bits
 * of the ruler are the first code with the exponent of the magnitude, minus 2^(mantissa bits of the
 * element format). The implicit 1 of the magnitude adds this number again, so the last bits of the
 * sum are the code. The last bits of the ruler form an even number, so they do not change the
 * direction of ties. Bit 22 of the ruler is set, so that the sum and the ruler have the same
 * exponent. */
INLINE __m256i nearest_even(const vector_coder *k, __m256 magnitude) {
    if (k->bits == 4) return nearest_e2m1(magnitude);
    __m256i field = _mm256_and_si256(_mm256_castps_si256(magnitude), _mm256_set1_epi32(0x7f800000));
    __m256i exponent = _mm256_max_epi32(field, k->min_normal);
    __m256i ruler = _mm256_add_epi32(_mm256_add_epi32(exponent, k->ruler),
                                     _mm256_srlv_epi32(exponent, k->shift));
    return _mm256_castps_si256(_mm256_add_ps(magnitude, _mm256_castsi256_ps(ruler)));
}

INLINE __m256i magnitude_bits(__m256 value) {
    return _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(0x7fffffff));
}

/* Returns |value|, limited to the largest value of the format. NaN becomes the largest value. */
INLINE __m256 clamp(const vector_coder *k, __m256 value) {
    return _mm256_min_ps(_mm256_castsi256_ps(magnitude_bits(value)), k->max);
}

/* Holds codes without their sign bits. The sign of code i is the top bit of lane i of `signs`. */
typedef struct signed_codes {
    __m256i codes, signs;
} signed_codes;

/* Returns the bitwise AND of `x` and `and` in the lanes whose bits are set in `which`, and `x` in
 * the other lanes. */
INLINE __m256i and_where(__m256i which, __m256i x, __m256i and) {
    return _mm256_andnot_si256(_mm256_andnot_si256(and, which), x);
}

/* Applies the coder's rules for the signs of zeros. zero_and and zero_or are masks that clear and
 * set the sign of a value that is itself zero. zero_code_and is a mask that clears the sign of a
 * value whose code is zero, i.e. of a value that was rounded to zero. */
INLINE signed_codes signs_by_rules(const vector_coder *k, __m256i a, signed_codes c) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i is_zero = _mm256_cmpeq_epi32(a, zero);
    __m256i is_code0 = _mm256_cmpeq_epi32(_mm256_and_si256(c.codes, k->magnitude), zero);
    c.signs = and_where(is_zero, c.signs, k->zero_and);
    c.signs = _mm256_or_si256(c.signs, _mm256_and_si256(is_zero, k->zero_or));
    c.signs = and_where(is_code0, c.signs, k->zero_code_and);
    return c;
}

/* Applies the coder's rules for zeros and for NaN. In fnuz formats the code of NaN already contains
 * the sign bit. */
INLINE signed_codes apply_rules(const vector_coder *k, __m256i a, signed_codes c) {
    __m256i is_nan = _mm256_cmpgt_epi32(a, _mm256_set1_epi32(0x7f800000));
    c = signs_by_rules(k, a, c);
    c.signs = and_where(is_nan, c.signs, k->nan_sign_and);
    c.codes = _mm256_blendv_epi8(c.codes, k->nan_code, is_nan);
    return c;
}

/* Encodes values as e2m1 with ties towards zero, as bsmm_coder_down does. The magnitudes of e2m1
 * elements in ascending order have the codes 0 to 7. The code of a value x is therefore the number
 * of midpoints b between neighboring magnitudes for which |x| exceeds b * scale. Inf gives code 7
 * if `infinite` is set, else code 0. A NaN gives code 0, as does every value if the scale is not
 * positive. */
INLINE signed_codes codes_down(const vector_coder *k, __m256i bits, __m256 scale, bool infinite) {
    __m256i a = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    __m256i beyond = _mm256_cmpgt_epi32(a, _mm256_set1_epi32(0x7f800000 - !infinite));
    __m256i positive = _mm256_castps_si256(_mm256_cmp_ps(scale, _mm256_setzero_ps(), _CMP_GT_OQ));
    signed_codes c = {_mm256_setzero_si256(), bits};
#pragma GCC unroll 7
    for (int j = 0; j < 7; j++) {
        __m256 bound = _mm256_mul_ps(scale, _mm256_set1_ps(bsmm_e2m1_midpoint(j)));
        c.codes = _mm256_sub_epi32(c.codes, _mm256_cmpgt_epi32(a, _mm256_castps_si256(bound)));
    }
    c.codes = _mm256_and_si256(c.codes, _mm256_andnot_si256(beyond, positive));
    return signs_by_rules(k, a, c);
}

#endif
