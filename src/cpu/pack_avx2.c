/* Packing of integers by 256-bit vectors: 32 codes of a row at once, then 8 rows x 8 words
 * transposed in registers. No engine of AVX2 takes bf16: halves and extents are plain C's. */
#include "base/cpu.h"
#include "cpu/pack.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx2")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_PACK_LANES, RUN = 32, GROUPS = RUN / 4 };

INLINE __m128i load_16(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* ---- codes: RUN of them, one per byte, from RUN * bits / 8 bytes ---- */

INLINE __m256i read_fours(const uint8_t *from) {
    const __m256i mask = _mm256_set1_epi8(0xf);
    __m256i bytes = _mm256_cvtepu8_epi16(load_16(from)); /* code 0 in bits 0-3, code 1 in 4-7 */
    return _mm256_and_si256(_mm256_or_si256(bytes, _mm256_slli_epi16(bytes, 4)), mask);
}

/* Each 3 bytes become a doubleword, whose four codes move into its bytes. */
INLINE __m256i read_sixes(const uint8_t *from) {
    const __m256i spread =
        _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, /* bytes 0 to 11 */
                         4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1); /* 8 to 23 */
    __m256i raw =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(from)), load_16(from + 8), 1);
    __m256i codes = _mm256_setzero_si256(), word = _mm256_shuffle_epi8(raw, spread);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        codes = _mm256_or_si256(codes, _mm256_and_si256(_mm256_slli_epi32(word, 2 * i),
                                                        _mm256_set1_epi32(0x3f << 8 * i)));
    return codes;
}

INLINE __m256i read_codes(const uint8_t *from, uint32_t bits) {
    if (bits == 4) return read_fours(from);
    if (bits == 6) return read_sixes(from);
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

/* The same of a row that has n codes from k on, n < RUN: beyond them 0. */
INLINE __m256i read_last(const uint8_t *from, uint32_t bits, int64_t n) {
    static const _Alignas(32)
        int8_t number[RUN] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                              16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    uint8_t bytes[RUN] = {0};
    memcpy(bytes, from, (size_t)(n * bits + 7) / 8);
    __m256i there = _mm256_cmpgt_epi8(_mm256_set1_epi8((char)n),
                                      _mm256_load_si256((const __m256i *)(const void *)number));
    return _mm256_and_si256(read_codes(bytes, bits), there);
}

INLINE __m256i read_run(const bsmm_pack_codes *c, int lane, int64_t k, uint32_t bits) {
    int64_t n = c->count - k;
    if (n <= 0) return _mm256_setzero_si256(); /* a unit that ends beyond K */
    const uint8_t *from = c->row[lane] + k / 8 * bits;
    return n < RUN ? read_last(from, bits, n) : read_codes(from, bits);
}

/* ---- integers ---- */

/* A table of 64 in four parts, each in both 128-bit lanes. */
typedef struct quarters {
    __m256i part[4];
} quarters;

INLINE quarters quarters_of(const int8_t *table) {
    quarters t;
    for (int i = 0; i < 4; i++)
        t.part[i] = _mm256_broadcastsi128_si256(load_16((const uint8_t *)table + 16 * i));
    return t;
}

/* Shifts bring bits 4 and 5 of a code to where blends look. */
INLINE __m256i look_up(const quarters *t, __m256i codes) {
    __m256i bit4 = _mm256_slli_epi16(codes, 3), bit5 = _mm256_slli_epi16(codes, 2);
    __m256i low = _mm256_and_si256(codes, _mm256_set1_epi8(0xf));
    __m256i first = _mm256_blendv_epi8(_mm256_shuffle_epi8(t->part[0], low),
                                       _mm256_shuffle_epi8(t->part[1], low), bit4);
    __m256i second = _mm256_blendv_epi8(_mm256_shuffle_epi8(t->part[2], low),
                                        _mm256_shuffle_epi8(t->part[3], low), bit4);
    return _mm256_blendv_epi8(first, second, bit5);
}

/* ---- transposition ---- */

/* 8 rows of 8 words: group g of all rows comes to be group[g]. */
INLINE void transpose(const __m256i row[LANES], __m256i group[GROUPS]) {
    __m256i quad[2][4]; /* rows 4 * h to 4 * h + 3 of groups j and j + 4 */
#    pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256i a = _mm256_unpacklo_epi32(row[4 * h], row[4 * h + 1]);
        __m256i b = _mm256_unpackhi_epi32(row[4 * h], row[4 * h + 1]);
        __m256i c = _mm256_unpacklo_epi32(row[4 * h + 2], row[4 * h + 3]);
        __m256i d = _mm256_unpackhi_epi32(row[4 * h + 2], row[4 * h + 3]);
        quad[h][0] = _mm256_unpacklo_epi64(a, c);
        quad[h][1] = _mm256_unpackhi_epi64(a, c);
        quad[h][2] = _mm256_unpacklo_epi64(b, d);
        quad[h][3] = _mm256_unpackhi_epi64(b, d);
    }
#    pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        group[j] = _mm256_permute2x128_si256(quad[0][j], quad[1][j], 0x20);
        group[j + 4] = _mm256_permute2x128_si256(quad[0][j], quad[1][j], 0x31);
    }
}

/* The first words of `words`, as many as there are lanes. */
INLINE void store_lanes(uint8_t *to, __m256i words, int64_t lanes) {
    if (lanes == 8) {
        _mm256_storeu_si256((__m256i *)(void *)to, words);
    } else if (lanes == 4) {
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(words));
    } else {
        const __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)lanes), number);
        _mm256_maskstore_epi32((int *)(void *)to, there, words);
    }
}

/* ---- units ---- */

/* Where the sums of `count` groups begin. 16 bits carry them: a sum of 16 products of at most
 * 60 * 60. */
INLINE __m256i begin_of(const __m256i *group, int count, const bsmm_pack_begin *begin) {
    const __m256i factor = _mm256_set1_epi8((char)begin->factor);
    __m256i sum = _mm256_set1_epi32(begin->plus);
#    pragma GCC unroll 8
    for (int g = 0; g < count; g += 4) {
        __m256i part = _mm256_maddubs_epi16(factor, group[g]);
#    pragma GCC unroll 3
        for (int j = 1; j < 4; j++)
            part = _mm256_add_epi16(part, _mm256_maddubs_epi16(factor, group[g + j]));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(part, _mm256_set1_epi16(-1)));
    }
    return sum;
}

INLINE void store_unit(const bsmm_pack_place *at, uint8_t *to, const __m256i *group, int count,
                       const bsmm_pack_begin *begin) {
#    pragma GCC unroll 8
    for (int g = 0; g < count; g++)
        store_lanes(to + g * at->pitch, group[g], at->lanes);
    if (begin->factor)
        store_lanes(to + count * at->pitch, begin_of(group, count, begin), at->lanes);
}

INLINE void pack_integers(const bsmm_pack_codes *c, const int8_t *table,
                          const bsmm_pack_begin *begin, const bsmm_pack_place *at, int unit_groups,
                          uint32_t bits) {
    const quarters t = quarters_of(table);
    uint8_t *to = at->to;
    for (int64_t g = 0; g < at->groups; g += GROUPS) {
        __m256i row[LANES], group[GROUPS];
        for (int i = 0; i < LANES; i++)
            row[i] =
                i < at->lanes ? look_up(&t, read_run(c, i, g * 4, bits)) : _mm256_setzero_si256();
        transpose(row, group);
        for (int u = 0; u < GROUPS && g + u < at->groups; u += unit_groups, to += at->unit_bytes)
            store_unit(at, to, group + u, unit_groups, begin);
    }
}

INLINE void pack_units(const bsmm_pack_codes *c, const int8_t *table, const bsmm_pack_begin *begin,
                       const bsmm_pack_place *at, uint32_t bits) {
    if (at->unit_groups == 8)
        pack_integers(c, table, begin, at, 8, bits);
    else
        pack_integers(c, table, begin, at, 4, bits);
}

TARGET static void integers(const bsmm_pack_codes *c, const int8_t *table,
                            const bsmm_pack_begin *begin, const bsmm_pack_place *at) {
    if (c->bits == 4)
        pack_units(c, table, begin, at, 4);
    else if (c->bits == 6)
        pack_units(c, table, begin, at, 6);
    else
        pack_units(c, table, begin, at, 8);
}

/* ---- words ---- */

TARGET static void words(const int32_t (*from)[BSMM_PACK_STEPS], int64_t count, int64_t lanes,
                         uint8_t *to, int64_t pitch) {
    for (int64_t i = 0; i < count; i += GROUPS, to += GROUPS * pitch) {
        __m256i row[LANES], group[GROUPS];
        for (int lane = 0; lane < LANES; lane++)
            row[lane] = lane < lanes
                            ? _mm256_loadu_si256((const __m256i *)(const void *)(from[lane] + i))
                            : _mm256_setzero_si256();
        transpose(row, group);
        for (int g = 0; g < GROUPS && i + g < count; g++)
            store_lanes(to + g * pitch, group[g], lanes);
    }
}

const bsmm_pack_isa *bsmm_pack_avx2(void) {
    static const bsmm_pack_isa isa = {
        .integers = integers,
        .columns = bsmm_pack_portable_columns,
        .halves = bsmm_pack_portable_halves,
        .words = words,
        .extent = bsmm_pack_portable_extent,
    };
    return bsmm_cpu_features() & BSMM_CPU_AVX2 ? &isa : NULL;
}

_Static_assert(BSMM_PACK_STEPS % GROUPS == 0, "words are read by whole vectors");

#else

const bsmm_pack_isa *bsmm_pack_avx2(void) {
    return NULL;
}

#endif
