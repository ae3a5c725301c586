/* What the AVX-512 files share. */
#ifndef BSMM_QUANTIZE_LANES_AVX512_H
#define BSMM_QUANTIZE_LANES_AVX512_H

#include "quantize/strip.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 16, WORDS = 32, CHUNK = 64 };

/* The first n lanes, n being anything. */
INLINE __mmask16 first_lanes(int64_t n) {
    return (__mmask16)(n >= LANES ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1);
}

/* which ? a : b, bit by bit. */
INLINE __m512i choose_bits(__m512i which, __m512i a, __m512i b) {
    return _mm512_ternarylogic_epi32(which, a, b, 0xca);
}

/* The factors of blocks, 16 columns at a time; after the last comes the last again. Factors are
 * read one by one: a register of all that were just stored one by one would have to wait for every
 * store before them, those that miss the caches too. */
typedef struct factor_cursor {
    const float *at, *last;
    int64_t left, width;
} factor_cursor;

INLINE factor_cursor factors_from(const float *factors, int64_t cols, int64_t width) {
    int64_t blocks = bsmm_ceil_div(cols, width);
    return (factor_cursor){factors, factors + blocks - 1, width, width};
}

/* That of the next `count` columns. */
INLINE __m512 next_factor(factor_cursor *cursor, int count) {
    __m512 factor = _mm512_set1_ps(*cursor->at);
    cursor->left -= count;
    bool ends = cursor->left <= 0;
    cursor->at += ends && cursor->at != cursor->last;
    cursor->left += ends ? cursor->width : 0;
    return factor;
}

/* For 32 columns, two to a lane: the lower half's lanes are the first sixteen's. */
INLINE __m512 next_factors(factor_cursor *cursor) {
    __m512 first = next_factor(cursor, LANES), second = next_factor(cursor, LANES);
    return _mm512_mask_mov_ps(first, 0xff00, second);
}

#endif
