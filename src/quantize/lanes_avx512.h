/* Defines the attributes, constants and vector operations that the AVX-512 files of src/quantize
 * share. */
#ifndef BSMM_QUANTIZE_LANES_AVX512_H
#define BSMM_QUANTIZE_LANES_AVX512_H

#include "quantize/factor_cursor.h"
#include "quantize/strip.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 16, WORDS = 32, CHUNK = 64 };

/* Returns the mask of the first n lanes of 16; n may be negative or above 16. */
INLINE __mmask16 first_lanes(int64_t n) {
    return (__mmask16)(n >= LANES ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1);
}

/* Selects a where the bit of `which` is 1 and b where it is 0, bit by bit. */
INLINE __m512i choose_bits(__m512i which, __m512i a, __m512i b) {
    return _mm512_ternarylogic_epi32(which, a, b, 0xca);
}

/* The next `count` columns lie in one scale block. Returns the factor of this block in all lanes,
 * and moves the cursor past these columns. */
INLINE __m512 next_factor(factor_cursor *cursor, int count) {
    __m512 factor = _mm512_set1_ps(*cursor->at);
    pass_columns(cursor, count);
    return factor;
}

/* Returns the factors of the next 32 columns, for a register of 16-bit values, which has two
 * columns in each 32-bit lane. The lower eight lanes of the result have the factor that the first
 * 16 columns share, and the upper eight lanes have the factor that the last 16 columns share. */
INLINE __m512 next_factors(factor_cursor *cursor) {
    __m512 first = next_factor(cursor, LANES), second = next_factor(cursor, LANES);
    return _mm512_mask_mov_ps(first, 0xff00, second);
}

#endif
