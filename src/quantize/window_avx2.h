/* Encodes bf16 values as e2m1 with factors that are powers of two, by integer arithmetic on 16
 * values in a register.
 *
 * Shifting the bits of a bf16 value left by one drops its sign and moves the exponent to the upper
 * byte. The result is called the value's representation. Each power of two spans 256 in the
 * representation, and a quarter of this, 64, is called a step. All rounding bounds of e2m1 are
 * multiples of a step. A value exactly on a bound is a tie. It rounds to the lower code if its
 * upper mantissa bit is 0, else to the higher code. The code below adds that bit and subtracts 1,
 * so that afterwards the bits above the step decide the code, even for ties.
 *
 * Let v be the value that the block's factor turns into 0.25. The "window" of a block is 1 more
 * than the representation of v / 2. The "place" of a value is the number of whole steps by which
 * its representation exceeds the window. The e2m1 code is 1 from place 4 on (above 0.25), 2 from
 * place 10 on (0.75), and 3 from place 13 on (above 1.25). */
#ifndef BSMM_QUANTIZE_WINDOW_AVX2_H
#define BSMM_QUANTIZE_WINDOW_AVX2_H

#include "quantize/lanes_avx2.h"

#define WINDOW_TARGET TARGET

/* find_windows computes the window of a block, which the head of this file defines, from the
 * exponent field of the block's factor: it is WINDOW_BASE minus 256 times this field. WINDOW_BASE
 * is thus the window for a factor with the exponent field 0.
 *
 * Let such a factor turn the value v into 0.25. v has the exponent field 252, so its representation
 * (its bits, shifted left by one) is 252 << 8. The representation of v / 2 is 256 less, i.e. 4 << 6
 * less. The window is 1 more than that. */
enum { WINDOW_BASE = (252 << 8) - (4 << 6) + 1 };

/* Computes the places of 16 bf16 values. The place of a value is the number of whole steps, each a
 * quarter of a power of two, from the window of the value's block up to the value. The window is a
 * little above the value that the block's factor turns into 0.125. Values below the window have the
 * place 0. */
INLINE __m256i place_words(__m256i words, __m256i window) {
    __m256i odd = _mm256_and_si256(_mm256_srli_epi16(words, 6), _mm256_set1_epi16(1));
    __m256i bits = _mm256_add_epi16(_mm256_slli_epi16(words, 1), odd);
    return _mm256_srli_epi16(_mm256_subs_epu16(bits, window), 6);
}

/* Converts places, one per byte, to e2m1 codes without signs. The place of a value says how large
 * its magnitude is after multiplication by its block's factor (place_words): place 0 begins at
 * about 0.125, and each power of two has four places. Places up to 3 have code 0, and places 4 and
 * 5 have code 1. The table from_6 has the codes of places 6 to 21. The code of place 21 is 7, and
 * so are the codes of all larger places. */
INLINE __m256i codes_at(__m256i places) {
    const __m256i from_6 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7));
    places = _mm256_min_epu8(places, _mm256_set1_epi8(21));
    __m256i codes = _mm256_shuffle_epi8(from_6, _mm256_subs_epu8(places, _mm256_set1_epi8(6)));
    return _mm256_and_si256(codes, _mm256_cmpgt_epi8(places, _mm256_set1_epi8(3)));
}

#endif
