/* Packs integers by 256-bit vectors. It decodes 32 codes of a row at once and transposes 8 rows of
 * 8 groups of 4 bytes in registers. No AVX2 engine multiplies bf16, so the functions for bf16 are
 * the portable ones. pack_floats_avx2.c converts to fp32, and pack_columns_avx2.c reads column
 * order. */
#include "base/cpu.h"
#include "cpu/pack/pack.h"

#if defined(__x86_64__)

#    include "cpu/pack/pack_avx2.h"

#    include <string.h>

enum { RUN = BSMM_PACK_PART };

/* Reads the last n codes of a row, one per byte of the register. n is less than RUN; the remaining
 * bytes are 0. */
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
    /* Packed rows are padded to a multiple of RUN codes. Past the end of K a row of the operand has
     * no codes, so the padding consists of zeros. */
    if (n <= 0) return _mm256_setzero_si256();
    const uint8_t *from = c->row[lane] + k / 8 * bits;
    return n < RUN ? read_last(from, bits, n) : read_codes(from, bits);
}

/* Stores the first `lanes` 32-bit values of a register. */
INLINE void store_lanes(uint8_t *to, __m256i words, int64_t lanes) {
    if (lanes == 8) {
        _mm256_storeu_si256((__m256i *)(void *)to, words);
    } else if (lanes == 4) {
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(words));
        /* Six lanes have a branch of their own, because AVX2's masked store is slow on some
         * processors. */
    } else if (lanes == 6) {
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(words));
        _mm_storel_epi64((__m128i *)(void *)(to + 16), _mm256_extracti128_si256(words, 1));
    } else {
        const __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)lanes), number);
        _mm256_maskstore_epi32((int *)(void *)to, there, words);
    }
}

/* Returns the initial values of the integer sums (bsmm_pack_begin) of a unit, i.e. of `count`
 * groups of 4 elements of K, for 8 rows. Partial sums fit 16 bits: each 16-bit lane adds 8 products
 * of at most 60 * 60 before it is widened. */
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
        .columns = bsmm_pack_avx2_columns,
        .halves = bsmm_pack_portable_halves,
        .words = words,
        .extent = bsmm_pack_portable_extent,
        .floats = bsmm_pack_avx2_floats,
        .reach = bsmm_pack_avx2_reach,
    };
    return bsmm_cpu_features() & BSMM_CPU_AVX2 ? &isa : NULL;
}

_Static_assert(BSMM_PACK_STEPS % GROUPS == 0, "words are read by whole vectors");

#else

const bsmm_pack_isa *bsmm_pack_avx2(void) {
    return NULL;
}

#endif
