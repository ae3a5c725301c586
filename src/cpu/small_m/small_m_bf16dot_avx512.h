/* Defines helper functions of the AVX-512 code that multiplies few rows of A by bf16 dot products.
 * The helpers decode 8-bit codes to bf16, and find the largest and the smallest magnitude of bf16
 * elements. */
#ifndef BSMM_CPU_SMALL_M_BF16DOT_AVX512_H
#define BSMM_CPU_SMALL_M_BF16DOT_AVX512_H

#include "cpu/small_m/small_m_avx512.h"

/* This struct holds the largest and the smallest magnitude of bf16 elements, as bf16 codes without
 * the sign. Zeros must not count as the smallest magnitude. `smallest` is therefore the minimum of
 * the unsigned numbers code - 1, where the code 0 becomes 65535. */
typedef struct bsmm_bf16_extent {
    __m512i largest, smallest;
} bsmm_bf16_extent;

/* Returns the extent of no elements. */
BSMM_SMALL_M_INLINE bsmm_bf16_extent bsmm_bf16_no_extent(void) {
    return (bsmm_bf16_extent){_mm512_setzero_si512(), _mm512_set1_epi16(-1)};
}

/* Includes 32 more elements in the extent. */
BSMM_SMALL_M_INLINE void bsmm_bf16_include(bsmm_bf16_extent *e, __m512i word) {
    __m512i magnitude = _mm512_and_si512(word, _mm512_set1_epi16(0x7fff));
    e->largest = _mm512_max_epu16(e->largest, magnitude);
    e->smallest = _mm512_min_epu16(e->smallest, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
}

/* Decodes 64 8-bit codes to bf16. In each of the four lanes of 128 bits, the first 8 codes go to
 * half[0] and the last 8 codes to half[1]. The tables have 128 entries: table[0] and table[1] give
 * the low byte of bf16 for a code without its sign, table[2] and table[3] the high byte. *largest
 * is the largest magnitude of codes so far, to find Inf and NaN. */
static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512vbmi"))) void
bsmm_bf16_decode_halves(const __m512i table[4], __m512i *largest, __m512i codes, __m512i half[2]) {
    *largest = _mm512_max_epu8(*largest, _mm512_and_si512(codes, _mm512_set1_epi8(0x7f)));
    __m512i low = _mm512_permutex2var_epi8(table[0], codes, table[1]);
    __m512i high = _mm512_permutex2var_epi8(table[2], codes, table[3]);
    high = _mm512_ternarylogic_epi32(high, codes, _mm512_set1_epi8((char)0x80), 0xf8);
    half[0] = _mm512_unpacklo_epi8(low, high);
    half[1] = _mm512_unpackhi_epi8(low, high);
}

/* Decodes 64 8-bit codes to bf16. Lane r of pair[i] becomes pair number i of the four codes in lane
 * r of `word`. The tables and *largest are those of bsmm_bf16_decode_halves. */
static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512vbmi"))) void
bsmm_bf16_decode_bytes(const __m512i table[4], __m512i *largest, __m512i word, __m512i pair[2]) {
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    bsmm_bf16_decode_halves(table, largest, _mm512_shuffle_epi8(word, order), pair);
}

#endif
