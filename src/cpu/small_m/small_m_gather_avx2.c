/* Gathers the scale codes of 16 rows by 128-bit vectors, so that the 16 codes of each scale unit (a
 * range of K with one scale per row) become adjacent. On processors without AVX-512 VBMI,
 * small_m_gather_avx512.c calls the function of this file. */
#include "cpu/small_m/small_m.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx2")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_SMALL_M_LANES };

/* Interleaves the bytes of rows i and i + 8. Four calls, one after another, transpose 16 x 16
 * bytes. */
INLINE void interleave(const __m128i from[LANES], __m128i to[LANES]) {
#    pragma GCC unroll 8
    for (int i = 0; i < LANES / 2; i++) {
        to[2 * i] = _mm_unpacklo_epi8(from[i], from[i + LANES / 2]);
        to[2 * i + 1] = _mm_unpackhi_epi8(from[i], from[i + LANES / 2]);
    }
}

INLINE void gather_sixteen(const uint8_t *const row[LANES], uint64_t column, uint8_t *to) {
    __m128i x[LANES], y[LANES];
#    pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        x[i] = _mm_loadu_si128((const __m128i *)(const void *)(row[i] + column));
    interleave(x, y);
    interleave(y, x);
    interleave(x, y);
    interleave(y, x);
#    pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        _mm_store_si128((__m128i *)(void *)(to + i * LANES), x[i]);
}

/* Loads four scale codes of each of 4 rows, for four consecutive ranges of K, and reorders them:
 * the codes of all rows for the first range come first. */
INLINE __m128i load_four_rows(const uint8_t *const row[4], uint64_t column) {
    const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    int32_t word[4];
    for (int i = 0; i < 4; i++)
        memcpy(&word[i], row[i] + column, sizeof word[i]);
    return _mm_shuffle_epi8(_mm_setr_epi32(word[0], word[1], word[2], word[3]), order);
}

INLINE void gather_four(const uint8_t *const row[LANES], uint64_t column, uint8_t *to) {
    __m128i x[4];
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        x[i] = load_four_rows(row + 4 * i, column);
    __m128i low01 = _mm_unpacklo_epi32(x[0], x[1]), high01 = _mm_unpackhi_epi32(x[0], x[1]);
    __m128i low23 = _mm_unpacklo_epi32(x[2], x[3]), high23 = _mm_unpackhi_epi32(x[2], x[3]);
    __m128i *at = (__m128i *)(void *)to;
    _mm_store_si128(at, _mm_unpacklo_epi64(low01, low23));
    _mm_store_si128(at + 1, _mm_unpackhi_epi64(low01, low23));
    _mm_store_si128(at + 2, _mm_unpacklo_epi64(high01, high23));
    _mm_store_si128(at + 3, _mm_unpackhi_epi64(high01, high23));
}

/* Prefetches the scales of the 16 rows of B that this thread will probably read next. The function
 * assumes that all rows of scales have the same stride. */
INLINE void ask_for_next(const uint8_t *const row[LANES], uint64_t column) {
    int64_t panel = (row[1] - row[0]) * LANES;
    for (int i = 0; i < LANES; i++)
        _mm_prefetch((const char *)row[i] + column + panel, _MM_HINT_T1);
}

TARGET int64_t bsmm_small_m_gather_avx2(const uint8_t *const row[LANES], const uint64_t *columns,
                                        int64_t units, int64_t run, uint8_t *codes) {
    int64_t i = 0;
    if (run >= 16)
        for (; i + 16 <= units; i += 16) {
            if (i % 64 == 0) ask_for_next(row, columns[i]);
            gather_sixteen(row, columns[i], codes + i * LANES);
        }
    if (run >= 4)
        for (; i + 4 <= units; i += 4)
            gather_four(row, columns[i], codes + i * LANES);
    return i;
}

#else

typedef int bsmm_small_m_gather_avx2_needs_x86_64;

#endif
