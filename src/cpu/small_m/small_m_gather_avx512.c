/* Gathers the scale codes of 16 rows, so that the 16 codes of each scale unit (a range of K with
 * one scale per row) become adjacent. The code is for scale layouts in which 4 or 16 codes of a row
 * are adjacent along K. */
#include "base/cpu.h"
#include "cpu/small_m/small_m.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_avx512.h"

#    include <string.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

/* Stores the scale codes of four scale units (ranges of K with one scale per row) in the order
 * to[4][16]. Lane i of `word` holds the four codes of row i. */
INLINE void store_four(__m512i word, uint8_t *to) {
    const __m512i rows = _mm512_set4_epi32(0x3c383430, 0x2c282420, 0x1c181410, 0x0c080400);
    const __m512i unit =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_inserti128_si256(_mm256_setzero_si256(),
                                                                          _mm_set1_epi8(1), 1)),
                           _mm256_inserti128_si256(_mm256_set1_epi8(2), _mm_set1_epi8(3), 1), 1);
    _mm512_store_si512(to, _mm512_permutexvar_epi8(_mm512_add_epi8(rows, unit), word));
}

INLINE __m128i load_sixteen(const uint8_t *at) {
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

INLINE void gather_sixteen(const uint8_t *const row[BSMM_SMALL_M_LANES], uint64_t column,
                           uint8_t *to) {
    __m512i quarters[4], word[4];
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i v = _mm512_castsi128_si512(load_sixteen(row[i] + column));
        v = _mm512_inserti32x4(v, load_sixteen(row[i + 4] + column), 1);
        v = _mm512_inserti32x4(v, load_sixteen(row[i + 8] + column), 2);
        quarters[i] = _mm512_inserti32x4(v, load_sixteen(row[i + 12] + column), 3);
    }
    bsmm_transpose(quarters, word);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        store_four(word[i], to + i * 4 * BSMM_SMALL_M_LANES);
}

/* Loads the scale codes of a row for `count` (1 to 4) consecutive ranges of K. The result has four
 * codes: if `count` is less than 4, the last code is repeated. */
INLINE int32_t load_codes(const uint8_t *at, int count) {
    uint32_t v = 0;
    memcpy(&v, at, count == 3 ? 2 : (size_t)count);
    if (count == 1) v *= 0x01010101;
    if (count == 2) v |= (v >> 8) * 0x01010000;
    if (count == 3) v |= at[2] * 0x01010000u;
    return (int32_t)v;
}

INLINE __m128i load_four_rows(const uint8_t *const row[4], uint64_t column, int count) {
    __m128i v = _mm_cvtsi32_si128(load_codes(row[0] + column, count));
    v = _mm_insert_epi32(v, load_codes(row[1] + column, count), 1);
    v = _mm_insert_epi32(v, load_codes(row[2] + column, count), 2);
    return _mm_insert_epi32(v, load_codes(row[3] + column, count), 3);
}

/* Gathers the scale codes of 16 rows for `count` (1 to 4) consecutive ranges of K. If there are
 * fewer than four ranges, the function stores the codes of the last range again in place of the
 * missing ones. */
INLINE void gather_few(const uint8_t *const row[BSMM_SMALL_M_LANES], uint64_t column, int count,
                       uint8_t *to) {
    __m512i word = _mm512_castsi128_si512(load_four_rows(row, column, count));
    word = _mm512_inserti32x4(word, load_four_rows(row + 4, column, count), 1);
    word = _mm512_inserti32x4(word, load_four_rows(row + 8, column, count), 2);
    store_four(_mm512_inserti32x4(word, load_four_rows(row + 12, column, count), 3), to);
}

/* Gathers the scale codes of the last `count` (1 to 3) scale units, i.e. ranges of K with one scale
 * per row, and fills the remaining units up to 4 with copies of the last unit's codes. If columns[]
 * does not give the padding units the same offset as the last unit, the function stores nothing.
 * Returns the number of units that were stored, padding included: 4 or 0. */
INLINE int64_t gather_last(const uint8_t *const row[BSMM_SMALL_M_LANES], const uint64_t *columns,
                           int64_t count, uint8_t *to) {
    if (columns[3] != columns[count - 1]) return 0;
    if (count == 1)
        gather_few(row, columns[0], 1, to);
    else if (count == 2)
        gather_few(row, columns[0], 2, to);
    else
        gather_few(row, columns[0], 3, to);
    return 4;
}

/* Prefetches the scales of the 16 rows of B that this thread will probably read next. The function
 * assumes that all rows of scales have the same stride. */
INLINE void prefetch_next(const uint8_t *const row[BSMM_SMALL_M_LANES], uint64_t column) {
    int64_t panel = (row[1] - row[0]) * BSMM_SMALL_M_LANES;
    for (int i = 0; i < BSMM_SMALL_M_LANES; i++)
        _mm_prefetch((const char *)row[i] + column + panel, _MM_HINT_T1);
}

TARGET static int64_t gather_by_512(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                    const uint64_t *columns, int64_t units, int64_t run,
                                    uint8_t *codes) {
    int64_t i = 0;
    if (run >= 16)
        for (; i + 16 <= units; i += 16) {
            if (i % 64 == 0) prefetch_next(row, columns[i]);
            gather_sixteen(row, columns[i], codes + i * BSMM_SMALL_M_LANES);
        }
    if (run >= 4)
        for (; i + 4 <= units; i += 4)
            gather_few(row, columns[i], 4, codes + i * BSMM_SMALL_M_LANES);
    if (run >= 4 && i < units)
        i += gather_last(row, columns + i, units - i, codes + i * BSMM_SMALL_M_LANES);
    return i;
}

int64_t bsmm_small_m_gather_runs(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                 const uint64_t *columns, int64_t units, int64_t run,
                                 uint8_t *codes) {
    bool has_512 = bsmm_cpu_features() & BSMM_CPU_AVX512_VBMI;
    return (has_512 ? gather_by_512 : bsmm_small_m_gather_avx2)(row, columns, units, run, codes);
}

#else

int64_t bsmm_small_m_gather_runs(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                 const uint64_t *columns, int64_t units, int64_t run,
                                 uint8_t *codes) {
    (void)row, (void)columns, (void)units, (void)run, (void)codes;
    return 0;
}

#endif
