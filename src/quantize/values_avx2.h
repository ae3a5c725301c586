/* Decodes 32 codes of 4, 6 or 8 bits to four registers of floats with AVX2.
 *
 * - 4 bits: a byte shuffle looks up the two bytes of the bf16 value of each code in a table.
 * - 8 bits: the code is shifted into the bit fields of f16, whose exponent field is at least as
 *   wide. A multiplication by a power of two corrects the difference of the exponent biases. NaN
 *   codes are replaced.
 * - 6 bits: the codes are moved to the upper bits of bytes, and then handled as codes of 8 bits. */
#ifndef BSMM_QUANTIZE_VALUES_AVX2_H
#define BSMM_QUANTIZE_VALUES_AVX2_H

#include "quantize/lanes_avx2.h"

enum { PARTS = CHUNK / LANES };

/* This struct holds the constants of a decode job in registers. */
typedef struct vector_values {
    /* For 4-bit codes, these tables hold the low and the high byte of each code's value as bf16. */
    __m256i low_bytes, high_bytes;
    __m256 magnitudes;
    __m256i nan_base, nan_mask, last_nan, field; /* These are constants for 8-bit codes. */
    __m128i shift;
    __m256 bias, level;
} vector_values;

INLINE __m256i twice(const void *from) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(from));
}

INLINE vector_values vector_values_of(const bsmm_decode_job *job) {
    const int shift = job->mantissa_bits + 6 - (int)job->bits;
    return (vector_values){
        .low_bytes = twice(job->low_bytes),
        .high_bytes = twice(job->high_bytes),
        .magnitudes = _mm256_loadu_ps(job->table),
        .nan_base = _mm256_set1_epi8((char)job->nan_base),
        .nan_mask = _mm256_set1_epi8((char)job->nan_mask),
        .last_nan = _mm256_set1_epi8((char)(job->nans - 1)),
        .field = _mm256_set1_epi16((int16_t)(0x8000 | 0x7f00 >> shift)),
        .shift = _mm_cvtsi32_si128(shift),
        .bias = _mm256_set1_ps(job->bias),
        .level = _mm256_set1_ps(job->other),
    };
}

/* Decodes 32 codes of 4 bits. The unpack instructions work within 128-bit halves of registers, so
 * the bytes are first arranged such that the columns end up in order. */
INLINE void values4(const vector_values *v, const uint8_t *codes, __m256 x[PARTS]) {
    const __m256i fours =
        /* Each index selects a source byte, which has two codes, for a byte of the register; -1
         * gives a zero byte. The first 16 indices fill the lower half of the register, and the last
         * 16 fill the upper half. */
        _mm256_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 2, -1, 3, -1, 6,
                         -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
    __m256i words = _mm256_shuffle_epi8(twice(codes), fours), zero = _mm256_setzero_si256();
    __m256i code = _mm256_or_si256(words, _mm256_slli_epi16(words, 4));
    code = _mm256_and_si256(code, _mm256_set1_epi8(0xf));
    __m256i low = _mm256_shuffle_epi8(v->low_bytes, code);
    __m256i high = _mm256_shuffle_epi8(v->high_bytes, code);
    __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
    x[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, first));
    x[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, first));
    x[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, second));
    x[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, second));
}

/* Expands 32 packed codes of 6 bits to 32 bytes. Each code becomes the upper six bits of a byte.
 * The function first moves two adjacent codes to bits 4 to 15 of each 16-bit lane, and then
 * separates the two codes. */
INLINE __m256i codes6(const uint8_t *codes) {
    const __m256i pairs =
        /* The numbers are indices of bytes for a shuffle, which works on each 128-bit half of the
         * register separately. The lower half was loaded from byte 0 of the codes, and its first 16
         * codes are bytes 0 to 11. The upper half was loaded from byte 8, so the next 16 codes
         * (bytes 12 to 23) are its bytes 4 to 15. */
        _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 4, 5, 5, 6, 7, 8, 8, 9,
                         10, 11, 11, 12, 13, 14, 14, 15);
    __m256i bytes = _mm256_castsi128_si256(_mm_loadu_si128((const void *)codes));
    bytes = _mm256_inserti128_si256(bytes, _mm_loadu_si128((const void *)(codes + 8)), 1);
    __m256i words = _mm256_shuffle_epi8(bytes, pairs);
    words = _mm256_blend_epi16(_mm256_slli_epi16(words, 4), words, 0xaa);
    __m256i even = _mm256_and_si256(_mm256_srli_epi16(words, 2), _mm256_set1_epi16(0xfc));
    return _mm256_or_si256(even, _mm256_and_si256(words, _mm256_set1_epi16((int16_t)0xfc00)));
}

/* Converts 8-bit codes, which are in the upper bytes of 16-bit lanes, to f16 codes. */
INLINE __m256i f16_codes(const vector_values *v, __m256i words) {
    return _mm256_and_si256(_mm256_sra_epi16(words, v->shift), v->field);
}

INLINE __m256 floats(const vector_values *v, __m128i f16) {
    return _mm256_mul_ps(_mm256_cvtph_ps(f16), v->bias);
}

/* Decodes 32 codes of 8 bits to four registers of 8 floats. Normally the floats have the order of
 * the codes. If `pairs` is set, each pair of registers (16 codes) has the values of the codes with
 * even indices in one register, and those with odd indices in the other one. */
INLINE void values8(const vector_values *v, __m256i codes, bool has_nans, bool pairs,
                    __m256 x[PARTS]) {
    const __m256i zero = _mm256_setzero_si256(), quiet = _mm256_set1_epi16(0x7e00);
    __m256i first = pairs ? _mm256_slli_epi16(codes, 8) : _mm256_unpacklo_epi8(zero, codes);
    __m256i second = pairs ? codes : _mm256_unpackhi_epi8(zero, codes);
    first = f16_codes(v, first), second = f16_codes(v, second);
    __m256i above = _mm256_and_si256(_mm256_sub_epi8(codes, v->nan_base), v->nan_mask);
    __m256i nan = _mm256_cmpeq_epi8(_mm256_min_epu8(above, v->last_nan), above);
    if (has_nans && _mm256_movemask_epi8(nan)) {
        __m256i low = pairs ? _mm256_slli_epi16(nan, 8) : _mm256_unpacklo_epi8(zero, nan);
        __m256i high = pairs ? nan : _mm256_unpackhi_epi8(zero, nan);
        first = _mm256_blendv_epi8(first, quiet, _mm256_srai_epi16(low, 8));
        second = _mm256_blendv_epi8(second, quiet, _mm256_srai_epi16(high, 8));
    }
    x[0] = floats(v, _mm256_castsi256_si128(first));
    x[1] = floats(v, _mm256_castsi256_si128(second));
    x[2] = floats(v, _mm256_extracti128_si256(first, 1));
    x[3] = floats(v, _mm256_extracti128_si256(second, 1));
}

#endif
