/* What the small-M kernels' loops share: 16 rows of bytes into lanes. */
#ifndef BSMM_CPU_SMALL_M_AVX512_H
#define BSMM_CPU_SMALL_M_AVX512_H

#include "cpu/small_m/small_m.h"

#include <immintrin.h>

#define BSMM_SMALL_M_INLINE                                                                        \
    static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512dq,avx512vl")))

/* 16 bytes of each of 16 rows: rows i, i + 4, i + 8, i + 12 in the quarters of row[i]. */
BSMM_SMALL_M_INLINE void bsmm_load_rows(const uint8_t *b, int64_t pitch, __m512i row[4]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const uint8_t *at = b + i * pitch;
        __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)at));
        at += 4 * pitch;
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at), 1);
        at += 4 * pitch;
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at), 2);
        at += 4 * pitch;
        row[i] = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at), 3);
    }
}

/* From what bsmm_load_rows gives to dwords: word[d] has dword d of row i in lane i. */
BSMM_SMALL_M_INLINE void bsmm_transpose(const __m512i row[4], __m512i word[4]) {
    __m512i low01 = _mm512_unpacklo_epi32(row[0], row[1]);
    __m512i low23 = _mm512_unpacklo_epi32(row[2], row[3]);
    __m512i high01 = _mm512_unpackhi_epi32(row[0], row[1]);
    __m512i high23 = _mm512_unpackhi_epi32(row[2], row[3]);
    word[0] = _mm512_unpacklo_epi64(low01, low23);
    word[1] = _mm512_unpackhi_epi64(low01, low23);
    word[2] = _mm512_unpacklo_epi64(high01, high23);
    word[3] = _mm512_unpackhi_epi64(high01, high23);
}

/* The same, but of each dword the two pairs of bytes lie apart: each four lanes have four rows'
 * first pairs, and then their second ones. Bytes that are interleaved with others come to lanes. */
BSMM_SMALL_M_INLINE void bsmm_transpose_pairs(const __m512i row[4], __m512i word[4]) {
    __m512i low01 = _mm512_unpacklo_epi16(row[0], row[1]);
    __m512i low23 = _mm512_unpacklo_epi16(row[2], row[3]);
    __m512i high01 = _mm512_unpackhi_epi16(row[0], row[1]);
    __m512i high23 = _mm512_unpackhi_epi16(row[2], row[3]);
    word[0] = _mm512_unpacklo_epi32(low01, low23);
    word[1] = _mm512_unpackhi_epi32(low01, low23);
    word[2] = _mm512_unpacklo_epi32(high01, high23);
    word[3] = _mm512_unpackhi_epi32(high01, high23);
}

/* 64 bytes of each of 16 rows: word[d] has dword d of row i in lane i. Whole cache lines, since
 * rows at a power of two from each other share the sets of a cache and would drive each other out
 * between smaller reads. */
BSMM_SMALL_M_INLINE void bsmm_transpose_lines(const uint8_t *b, int64_t pitch, __m512i word[16]) {
    __m512i part[4][4]; /* [rows 4i to 4i + 3][dword within a quarter] */
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i row[4];
        for (int j = 0; j < 4; j++)
            row[j] = _mm512_loadu_si512(b + (4 * i + j) * pitch);
        bsmm_transpose(row, part[i]);
    }
#pragma GCC unroll 4
    for (int d = 0; d < 4; d++) {
        __m512i low01 = _mm512_shuffle_i32x4(part[0][d], part[1][d], 0x44);
        __m512i high01 = _mm512_shuffle_i32x4(part[0][d], part[1][d], 0xee);
        __m512i low23 = _mm512_shuffle_i32x4(part[2][d], part[3][d], 0x44);
        __m512i high23 = _mm512_shuffle_i32x4(part[2][d], part[3][d], 0xee);
        word[d] = _mm512_shuffle_i32x4(low01, low23, 0x88);
        word[4 + d] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
        word[8 + d] = _mm512_shuffle_i32x4(high01, high23, 0x88);
        word[12 + d] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
    }
}

/* For byte shuffles: three bytes of four elements of 6 bits into each dword, from byte `skip` of
 * each 16 on. */
BSMM_SMALL_M_INLINE __m512i bsmm_sixes_order(int skip) {
    return _mm512_broadcast_i32x4(
        _mm_add_epi8(_mm_setr_epi8(0, 1, 2, 0, 3, 4, 5, 3, 6, 7, 8, 6, 9, 10, 11, 9),
                     _mm_set1_epi8((char)skip)));
}

/* 12 bytes of each of 16 rows, from byte `skip` of the 16 that are loaded: word[d] has elements 4d
 * to 4d + 3 of 6 bits of row i in lane i. */
BSMM_SMALL_M_INLINE void bsmm_load_sixes(const uint8_t *b, int64_t pitch, int skip,
                                         __m512i word[4]) {
    const __m512i threes = bsmm_sixes_order(skip);
    __m512i row[4];
    bsmm_load_rows(b, pitch, row);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        row[i] = _mm512_shuffle_epi8(row[i], threes);
    bsmm_transpose(row, word);
}

/* What to ask for while byte `at` of the rows is read, of `bytes` in each: further along them, and
 * then the beginning of the next ones. */
BSMM_SMALL_M_INLINE const uint8_t *bsmm_small_m_ahead(const bsmm_small_m_span *s, int64_t at,
                                                      int64_t bytes) {
    at += s->lead;
    return at < bytes ? s->b + at : s->next + (at - bytes);
}

/* Asks for rows 4j to 4j + 3. A few at a time, between computation: bursts of prefetches stall. */
BSMM_SMALL_M_INLINE void bsmm_prefetch_rows(const uint8_t *at, int64_t pitch, int64_t j,
                                            int64_t bytes) {
#pragma GCC unroll 4
    for (int64_t r = 4 * j; r < 4 * j + 4; r++)
        for (int64_t i = 0; i < bytes; i += 64)
            _mm_prefetch((const char *)at + r * pitch + i, _MM_HINT_T0);
}

#endif
