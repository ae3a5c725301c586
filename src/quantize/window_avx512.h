/* bf16 values to e2m1 under factors that are powers of two, as integers: 32 in a register.
 *
 * A value's word, doubled, is its magnitude: the exponent is the upper byte. Less the word of what
 * becomes 0.25, the window, and with 0 for what is below, its upper bits are its place: two for
 * each step of a quarter of a power of two, and odd for what lies between two steps. All ties of
 * e2m1 are steps, so a place has one code. */
#ifndef BSMM_QUANTIZE_WINDOW_AVX512_H
#define BSMM_QUANTIZE_WINDOW_AVX512_H

#include "quantize/lanes_avx512.h"

#define WINDOW_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

static const uint8_t codes_of_places[64] = {
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, /* 0.25, 0.5: tie at 0.75 */
    2, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 5, 5, 5, 6, 6, /* 1, 2: ties at 1.25, 1.75, 2.5, 3.5 */
    6, 6, 6, 7, 7, 7, 7, 7, 7, 7};                  /* 4: tie at 5 */

/* What factor 0's window would be. */
enum { WINDOW_BASE = 252 << 8 };

/* Places of 32 values, with their signs in bit 7. */
INLINE __m512i place_words(__m512i words, __m512 window) {
    __m512i above = _mm512_subs_epu16(_mm512_slli_epi16(words, 1), _mm512_castps_si512(window));
    above = _mm512_min_epu16(above, _mm512_set1_epi16(0x4ff));
    __m512i up = _mm512_add_epi16(above, _mm512_set1_epi16(0x3f));
    __m512i place = _mm512_add_epi16(_mm512_srli_epi16(above, 6), _mm512_srli_epi16(up, 6));
    return _mm512_ternarylogic_epi32(place, _mm512_srli_epi16(words, 8), _mm512_set1_epi16(0x80),
                                     0xf8);
}

/* Places in bytes to codes with signs. */
WINDOW_TARGET static inline __m512i codes_at(__m512i places) {
    __m512i codes = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(codes_of_places));
    __m512i signs = _mm512_srli_epi16(places, 4);
    return _mm512_ternarylogic_epi32(codes, signs, _mm512_set1_epi8(8), 0xf8);
}

#endif
