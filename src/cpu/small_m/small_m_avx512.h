/* Defines functions that the AVX-512 small-M kernels share. They load bytes of 16 rows of B so that
 * each row is one 32-bit lane of a vector. */
#ifndef BSMM_CPU_SMALL_M_AVX512_H
#define BSMM_CPU_SMALL_M_AVX512_H

#include "cpu/small_m/small_m.h"

#include <immintrin.h>

#define BSMM_SMALL_M_INLINE                                                                        \
    static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512dq,avx512vl")))

/* Loads 16 bytes of each of 16 rows that lie `pitch` bytes apart. Each register of `row` gets four
 * rows, one in each 128 bits: row[i] has the rows i, i + 4, i + 8 and i + 12. */
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

/* Transposes the result of bsmm_load_rows. Lane i of word[d] becomes 32-bit word d of row i. */
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

/* Transposes 32-bit words of 16 rows that bsmm_load_rows has loaded, except for the last step.
 * Afterwards, each 128 bits of word[d] have word d of four rows: first the low 16 bits of the four
 * words, then the high 16 bits of the four words. The last step is a later unpack instruction. It
 * widens bytes to 16 bits and interleaves the low and the high halves, so that all values of a row
 * are in the row's own 32-bit lane. */
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

/* Loads 64 bytes of each of 16 rows. Lane i of word[d] becomes 32-bit word d of row i. The function
 * reads whole cache lines at once. If the stride between rows is a power of two, the 16 lines map
 * to the same sets of a cache, and cannot all stay there. With several smaller reads of a line, the
 * line would be evicted between them. */
BSMM_SMALL_M_INLINE void bsmm_transpose_lines(const uint8_t *b, int64_t pitch, __m512i word[16]) {
    /* part[i][d] holds 32-bit word d of each 128-bit quarter of rows 4 * i to 4 * i + 3. */
    __m512i part[4][4];
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

/* Returns the indices of a byte shuffle for 6-bit elements. In each 16 bytes, the shuffle takes the
 * 12 bytes from byte `skip` on and copies each 3 of them, which hold four elements, to a 32-bit
 * lane. */
BSMM_SMALL_M_INLINE __m512i bsmm_sixes_order(int skip) {
    return _mm512_broadcast_i32x4(
        _mm_add_epi8(_mm_setr_epi8(0, 1, 2, 0, 3, 4, 5, 3, 6, 7, 8, 6, 9, 10, 11, 9),
                     _mm_set1_epi8((char)skip)));
}

/* Loads 12 bytes with 16 6-bit elements of each of 16 rows. Lane i of word[d] gets elements 4 * d
 * to 4 * d + 3 of row i. The function reads 16 bytes of each row, of which it ignores the first
 * `skip`. */
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

/* Loads `count` pieces of 64 bytes from a strip of compact weights, in which the 16 rows are stored
 * side by side. Lane i of word[d] is 32-bit word d of row i, so no transposition is necessary. */
BSMM_SMALL_M_INLINE void bsmm_load_strip(const uint8_t *b, int count, __m512i *word) {
#pragma GCC unroll 16
    for (int d = 0; d < count; d++)
        word[d] = _mm512_loadu_si512(b + 64 * d);
}

/* Loads four 6-bit codes (3 bytes) of each of 16 rows from compact weights, in which the 3-byte
 * pieces of 16 rows are adjacent (a strip). Lane i of the result has 32 bits: its bytes 0 to 2 are
 * the 3 bytes of row i, and byte 3 is a copy of byte 0. The function reads 64 bytes, of which it
 * uses 48. */
static inline
    __attribute__((always_inline, target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"))) __m512i
    bsmm_load_threes(const uint8_t *b) {
    const __m512i lanes =
        _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45);
    const __m512i threes = _mm512_add_epi8(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(0x01010101)),
                                           _mm512_set1_epi32(0x00020100));
    return _mm512_permutexvar_epi8(threes, _mm512_loadu_si512(b));
}

/* Returns the address in B to prefetch while byte number `at` of the rows at s->b is read. A row
 * has `bytes` bytes. The prefetched byte is number at + s->lead of the row. If the row has no such
 * byte, the prefetch continues in the rows at s->next, which are read next: it prefetches their
 * byte number at + s->lead - bytes. */
BSMM_SMALL_M_INLINE const uint8_t *bsmm_small_m_ahead(const bsmm_small_m_span *s, int64_t at,
                                                      int64_t bytes) {
    at += s->lead;
    return at < bytes ? s->b + at : s->next + (at - bytes);
}

/* Prefetches rows 4 * j to 4 * j + 3. Callers prefetch only four rows at a time and compute in
 * between, because many prefetches at once stall the processor. */
BSMM_SMALL_M_INLINE void bsmm_prefetch_rows(const uint8_t *at, int64_t pitch, int64_t j,
                                            int64_t bytes) {
#pragma GCC unroll 4
    for (int64_t r = 4 * j; r < 4 * j + 4; r++)
        for (int64_t i = 0; i < bytes; i += 64)
            _mm_prefetch((const char *)at + r * pitch + i, _MM_HINT_T0);
}

/* Prefetches to L2 one step (32 elements of K) of 16 rows that are stored together in compact
 * weights. More cache lines can be on their way to L2 than to L1, and the hardware prefetcher moves
 * the rows from L2 to L1. */
BSMM_SMALL_M_INLINE void bsmm_prefetch_strip(const uint8_t *at, int64_t j, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)at + j * bytes + i, _MM_HINT_T1);
}

#endif
