/* Encodes bf16 values as e2m1 by integer arithmetic, 32 values in a register. The factor of each
 * block must be a power of two.
 *
 * The bits of a bf16 value are shifted left by one, which drops the sign and moves the exponent to
 * the upper byte. In these shifted bits, a quarter of a power of two (one step) is 64. The "window"
 * of a block is the shifted bits of the value that the block's factor turns into 0.25. The "place"
 * of a value says how many steps the value lies above the window: it is 2 n for exactly n steps,
 * and 2 n + 1 for a distance between n and n + 1 steps. Values below the window have place 0. All
 * rounding bounds of e2m1 are whole numbers of steps above the window, so each place has exactly
 * one code, which a table gives. */
#ifndef BSMM_QUANTIZE_WINDOW_AVX512_H
#define BSMM_QUANTIZE_WINDOW_AVX512_H

#include "quantize/lanes_avx512.h"

#define WINDOW_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

/* `codes_of_places` is a table from the magnitude of a value to its e2m1 code (without a sign). Let
 * w be the value that the block's factor turns into 0.25. Each range from w * 2^n to w * 2^(n + 1)
 * is divided into four steps of equal size. The index ("place") of a value depends on how many
 * steps it lies above w. The index is 2 n if this number is exactly n, and 2 n + 1 if it lies
 * between n and n + 1. The largest index is 39. */
static const uint8_t codes_of_places[64] = {
    /* Entries 0 to 15 are for values that are less than 1 after scaling. The rounding bounds of
     * e2m1 in this range are 0.25 and 0.75. */
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2,
    /* Entries 16 to 31 are for values from 1 up to 4 after scaling. The rounding bounds of e2m1 in
     * this range are 1.25, 1.75, 2.5 and 3.5. */
    2, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 5, 5, 5, 6, 6,
    /* Entries 32 to 39 are for values of 4 or more after scaling. The only rounding bound of e2m1
     * in this range is 5. */
    6, 6, 6, 7, 7, 7, 7, 7};

/* A value is rounded to an e2m1 code after it is multiplied by its block's factor, a power of two.
 * Let v be the bf16 value that this factor turns into 0.25, the first rounding bound of e2m1. The
 * window of the block is the 16 bits of v, shifted left by one. Its upper byte is the exponent
 * field of v. Its lower byte is 0, because v is a power of two. If the factor has the exponent
 * field e, v has the exponent field 252 - e. find_windows therefore computes the window as
 * WINDOW_BASE - 256 * e. */
enum { WINDOW_BASE = 252 << 8 };

/* Returns the indices of 32 bf16 values in the table codes_of_places. `window` holds the window of
 * the block of each value (WINDOW_BASE says what a window is). Bit 7 of an index is the sign of the
 * value. The difference of a magnitude and its window is a number of 64ths of a step, so shifting
 * it right by 6 gives the whole steps of which the index is made. */
INLINE __m512i place_words(__m512i words, __m512 window) {
    __m512i above = _mm512_subs_epu16(_mm512_slli_epi16(words, 1), _mm512_castps_si512(window));
    above = _mm512_min_epu16(above, _mm512_set1_epi16(0x4ff));
    __m512i up = _mm512_add_epi16(above, _mm512_set1_epi16(0x3f));
    __m512i place = _mm512_add_epi16(_mm512_srli_epi16(above, 6), _mm512_srli_epi16(up, 6));
    return _mm512_ternarylogic_epi32(place, _mm512_srli_epi16(words, 8), _mm512_set1_epi16(0x80),
                                     0xf8);
}

/* Converts the results of place_words, one in each byte, to e2m1 codes. In a byte, bits 0 to 6 are
 * the index of the value's magnitude in the table codes_of_places, and bit 7 is the value's sign.
 * In the result, bits 0 to 2 of a byte are the code of the magnitude, and bit 3 is the sign. */
WINDOW_TARGET static inline __m512i codes_at(__m512i places) {
    __m512i codes = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(codes_of_places));
    __m512i signs = _mm512_srli_epi16(places, 4);
    return _mm512_ternarylogic_epi32(codes, signs, _mm512_set1_epi8(8), 0xf8);
}

#endif
