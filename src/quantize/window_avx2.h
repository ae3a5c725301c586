/* bf16 values to e2m1 under factors that are powers of two, as integers: 16 in a register.
 *
 * A value's word, doubled, is its magnitude: the exponent is the upper byte. Ties are steps of a
 * quarter of a power of two. To even they belong to the code below or above, as the upper bit of
 * the mantissa is 0 or 1: with that bit added, and 1 subtracted, the upper bits alone tell the
 * code. Less the window they are the place: 4 from above 0.25 on, 10 from 0.75, 13 from above 1.25.
 */
#ifndef BSMM_QUANTIZE_WINDOW_AVX2_H
#define BSMM_QUANTIZE_WINDOW_AVX2_H

#include "quantize/lanes_avx2.h"

#define WINDOW_TARGET TARGET

/* What becomes 0.25, of factor 0 by its exponent, is 4 steps above the window; plus 1. */
enum { WINDOW_BASE = (252 << 8) - (4 << 6) + 1 };

/* Places of 16 values. */
INLINE __m256i place_words(__m256i words, __m256i window) {
    __m256i odd = _mm256_and_si256(_mm256_srli_epi16(words, 6), _mm256_set1_epi16(1));
    __m256i bits = _mm256_add_epi16(_mm256_slli_epi16(words, 1), odd);
    return _mm256_srli_epi16(_mm256_subs_epu16(bits, window), 6);
}

/* Places in bytes to codes without signs. */
INLINE __m256i codes_at(__m256i places) {
    const __m256i from_6 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7));
    places = _mm256_min_epu8(places, _mm256_set1_epi8(21));
    __m256i codes = _mm256_shuffle_epi8(from_6, _mm256_subs_epu8(places, _mm256_set1_epi8(6)));
    return _mm256_and_si256(codes, _mm256_cmpgt_epi8(places, _mm256_set1_epi8(3)));
}

#endif
