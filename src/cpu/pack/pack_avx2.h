/* Defines functions that the packers for 256-bit vectors share. They read codes, look up codes in
 * tables, and transpose groups of 4 bytes. */
#ifndef BSMM_CPU_PACK_AVX2_H
#define BSMM_CPU_PACK_AVX2_H

#include "cpu/pack/pack.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum {
    /* BSMM_PACK_PART is the number of elements of K whose codes, one per byte, fit a register. */
    BSMM_PACK_PART = 32,
    LANES = BSMM_PACK_LANES,
    GROUPS = BSMM_PACK_PART / 4,
};

INLINE __m128i load_16(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

INLINE __m256i read_fours(const uint8_t *from) {
    const __m256i mask = _mm256_set1_epi8(0xf);
    /* A byte holds two codes of 4 bits that are adjacent along K: the first one in bits 0 to 3, the
     * second one in bits 4 to 7. Each byte is widened to 16 bits. A shift by 4 then moves the
     * second code to the low bits of the upper byte. */
    __m256i bytes = _mm256_cvtepu8_epi16(load_16(from));
    return _mm256_and_si256(_mm256_or_si256(bytes, _mm256_slli_epi16(bytes, 4)), mask);
}

/* Expands packed 6-bit codes to bytes. A shuffle copies each 3 bytes, which hold four codes, to a
 * 32-bit lane. Shifts then move the codes to the lane's four bytes. */
INLINE __m256i read_sixes(const uint8_t *from) {
    const __m256i spread =
        /* These are bytes 0 to 11 of the source, for the low half of the register. */
        _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,
                         /* These are bytes 12 to 23 of the source. The high half of the register
                          * was loaded from byte 8 on, so its indices begin at 4. */
                         4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    __m256i raw =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(from)), load_16(from + 8), 1);
    __m256i codes = _mm256_setzero_si256(), word = _mm256_shuffle_epi8(raw, spread);
#pragma GCC unroll 4
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

/* This struct is a table of 64 bytes in four registers. Both 128-bit halves of a register hold the
 * same 16 bytes, because a byte shuffle cannot cross the halves. */
typedef struct quarters {
    __m256i part[4];
} quarters;

INLINE quarters quarters_of(const void *table) {
    quarters t;
    for (int i = 0; i < 4; i++)
        t.part[i] = _mm256_broadcastsi128_si256(load_16((const uint8_t *)table + 16 * i));
    return t;
}

/* Looks up 6-bit codes in a table. The shuffles use bits 0 to 3 of a code. The blends then select
 * by bits 4 and 5, which are shifted to the top bit of each byte because a blend tests that bit. */
INLINE __m256i look_up(const quarters *t, __m256i codes) {
    __m256i bit4 = _mm256_slli_epi16(codes, 3), bit5 = _mm256_slli_epi16(codes, 2);
    __m256i low = _mm256_and_si256(codes, _mm256_set1_epi8(0xf));
    __m256i first = _mm256_blendv_epi8(_mm256_shuffle_epi8(t->part[0], low),
                                       _mm256_shuffle_epi8(t->part[1], low), bit4);
    __m256i second = _mm256_blendv_epi8(_mm256_shuffle_epi8(t->part[2], low),
                                        _mm256_shuffle_epi8(t->part[3], low), bit4);
    return _mm256_blendv_epi8(first, second, bit5);
}

/* Transposes 8 rows of 8 groups of 4 bytes: the groups with number g of all rows become
 * group[g]. */
INLINE void transpose(const __m256i row[LANES], __m256i group[GROUPS]) {
    __m256i quad[2][4]; /* quad[h][j] holds rows 4 * h to 4 * h + 3 of groups j and j + 4. */
#pragma GCC unroll 2
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
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        group[j] = _mm256_permute2x128_si256(quad[0][j], quad[1][j], 0x20);
        group[j + 4] = _mm256_permute2x128_si256(quad[0][j], quad[1][j], 0x31);
    }
}

#endif
