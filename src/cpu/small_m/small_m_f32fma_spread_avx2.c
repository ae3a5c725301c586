/* Decodes weights to f16 values, called halves (small_m_f32fma.h). The weights are read as the
 * caller stores them, 8 rows of B and one batch of K (64 or 128 elements) at a time. */
#include "cpu/small_m/small_m_f32fma.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx2")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { GROUP = BSMM_SMALL_M_F32FMA_GROUP };

/* Transposes 8 rows of 16-bit words in each 128-bit part of the registers: word[w] gets word w of
 * rows 0 to 7. */
INLINE void transpose(const __m256i row[GROUP], __m256i word[GROUP]) {
    __m256i pair[GROUP], four[GROUP];
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        pair[2 * i] = _mm256_unpacklo_epi16(row[2 * i], row[2 * i + 1]);
        pair[2 * i + 1] = _mm256_unpackhi_epi16(row[2 * i], row[2 * i + 1]);
    }
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        int from = i / 2 * 4 + i % 2;
        four[2 * i] = _mm256_unpacklo_epi32(pair[from], pair[from + 2]);
        four[2 * i + 1] = _mm256_unpackhi_epi32(pair[from], pair[from + 2]);
    }
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        word[2 * i] = _mm256_unpacklo_epi64(four[i], four[i + 4]);
        word[2 * i + 1] = _mm256_unpackhi_epi64(four[i], four[i + 4]);
    }
}

INLINE void store(uint8_t *to, int64_t i, __m256i halves) {
    _mm256_store_si256((__m256i *)(void *)(to + 32 * i), halves);
}

INLINE __m256i load(const uint8_t *from) {
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

/* Loads 64 bytes, a whole cache line, of each of 8 rows. */
INLINE void load_lines(const uint8_t *b, int64_t pitch, __m256i row[2][GROUP]) {
#    pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++) {
        row[0][i] = load(b + i * pitch);
        row[1][i] = load(b + i * pitch + 32);
    }
}

/* Decodes 4-bit codes. All bits of the f16 value are in its upper byte; its lower byte is 0. */
INLINE void spread_four(const __m256i row[GROUP], uint8_t *to, bsmm_small_m_later *next) {
    const __m256i table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0x30, 0x34, 0x36, 0x38, 0x3a, 0x3c, 0x3e, (char)0x80, (char)0xb0,
                      (char)0xb4, (char)0xb6, (char)0xb8, (char)0xba, (char)0xbc, (char)0xbe));
    const __m256i nibble = _mm256_set1_epi8(0xf), upper = _mm256_set1_epi16((short)0xff00);
    __m256i word[GROUP];
    transpose(row, word);
#    pragma GCC unroll 8
    for (int w = 0; w < GROUP; w++) {
        if (w % 2 == 0) bsmm_small_m_ask(next, 1);
        __m256i even = _mm256_and_si256(word[w], nibble);
        __m256i odd = _mm256_and_si256(_mm256_srli_epi16(word[w], 4), nibble);
        even = _mm256_shuffle_epi8(table, even);
        odd = _mm256_shuffle_epi8(table, odd);
        store(to, 4 * w, _mm256_slli_epi16(even, 8));
        store(to, 4 * w + 1, _mm256_slli_epi16(odd, 8));
        store(to, 4 * w + 2, _mm256_and_si256(even, upper));
        store(to, 4 * w + 3, _mm256_and_si256(odd, upper));
    }
}

TARGET static void spread_fours(const uint8_t *b, int64_t pitch,
                                const bsmm_small_m_f32fma_halves *h, uint8_t *to,
                                bsmm_small_m_later *next, bsmm_small_m_f32fma_seen *codes) {
    __m256i row[2][GROUP];
    (void)h, (void)codes;
    load_lines(b, pitch, row);
    spread_four(row[0], to, next);
    spread_four(row[1], to + BSMM_SMALL_M_F32FMA_GROUP_BYTES(32) / 2, next);
}

/* Decodes 6-bit or 8-bit codes to f16 values. Each code was shifted to the top of its 16-bit
 * lane. */
INLINE __m256i halves_of(__m256i word, const bsmm_small_m_f32fma_halves *h) {
    return _mm256_and_si256(_mm256_sra_epi16(word, _mm_cvtsi32_si128(h->shift)),
                            _mm256_set1_epi16((short)h->mask));
}

/* Loads 24 bytes of 6-bit codes, and spreads the first 12 bytes over the lower half of the register
 * and the last 12 over the upper half. Each 3 bytes hold 4 codes. They become two 16-bit words with
 * two whole codes each: one word has bytes 0 and 1, the other one has bytes 1 and 2. */
INLINE __m256i load_sixes(const uint8_t *at) {
    const __m256i order =
        /* The numbers are byte indices for a shuffle, which works on each half of the register
         * separately. The first 16 indices are for the lower half, whose bytes 0 to 11 are bytes 0
         * to 11 of the codes. The last 16 indices are for the upper half, which was loaded from
         * byte 8 of the codes, so that its bytes 4 to 15 are bytes 12 to 23. */
        _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 4, 5, 5, 6, 7, 8, 8, 9,
                         10, 11, 11, 12, 13, 14, 14, 15);
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(at + 8));
    __m256i both =
        _mm256_blend_epi32(_mm256_castsi128_si256(low), _mm256_broadcastsi128_si256(high), 0xf0);
    return _mm256_shuffle_epi8(both, order);
}

TARGET static void spread_sixes(const uint8_t *b, int64_t pitch,
                                const bsmm_small_m_f32fma_halves *h, uint8_t *to,
                                bsmm_small_m_later *next, bsmm_small_m_f32fma_seen *codes) {
    (void)codes;
    for (int64_t t = 0; t < 2; t++, to += BSMM_SMALL_M_F32FMA_GROUP_BYTES(16) / 2) {
        __m256i row[GROUP], word[GROUP];
#    pragma GCC unroll 8
        for (int i = 0; i < GROUP; i++)
            row[i] = load_sixes(b + i * pitch + 24 * t);
        transpose(row, word);
#    pragma GCC unroll 4
        for (int w = 0; w < GROUP; w += 2) {
            if (w != 0) bsmm_small_m_ask(next, 1);
            store(to, 2 * w, halves_of(_mm256_slli_epi16(word[w], 10), h));
            store(to, 2 * w + 1, halves_of(_mm256_slli_epi16(word[w], 4), h));
            store(to, 2 * w + 2, halves_of(_mm256_slli_epi16(word[w + 1], 6), h));
            store(to, 2 * w + 3, halves_of(word[w + 1], h));
        }
    }
}

TARGET static void spread_eights(const uint8_t *b, int64_t pitch,
                                 const bsmm_small_m_f32fma_halves *h, uint8_t *to,
                                 bsmm_small_m_later *next, bsmm_small_m_f32fma_seen *codes) {
    __m256i most = load(codes->most), most_signed = load(codes->most_signed);
    __m256i row[2][GROUP], word[GROUP];
    load_lines(b, pitch, row);
#    pragma GCC unroll 2
    for (int t = 0; t < 2; t++, to += BSMM_SMALL_M_F32FMA_GROUP_BYTES(16) / 2) {
        transpose(row[t], word);
#    pragma GCC unroll 8
        for (int w = 0; w < GROUP; w++) {
            if (w % 2 == 0) bsmm_small_m_ask(next, 1);
            most = _mm256_max_epu8(most, word[w]);
            most_signed = _mm256_max_epi8(most_signed, word[w]);
            store(to, 2 * w, halves_of(_mm256_slli_epi16(word[w], 8), h));
            store(to, 2 * w + 1, halves_of(word[w], h));
        }
    }
    store(codes->most, 0, most);
    store(codes->most_signed, 0, most_signed);
}

/* Reorders f16 elements of 8 rows of B. They need no decoding, because halves are f16 values too,
 * and Inf and NaN are kept. Each pass of the outer loop reads 64 bytes of each row: a first and a
 * second run of 16 elements of K. A register that is stored holds element i of the first run of all
 * 8 rows in its lower half, and element i of the second run in its upper half. */
TARGET static void spread_sixteens(const uint8_t *b, int64_t pitch,
                                   const bsmm_small_m_f32fma_halves *h, uint8_t *to,
                                   bsmm_small_m_later *next, bsmm_small_m_f32fma_seen *codes) {
    (void)h, (void)codes;
    for (int64_t t = 0; t < 2; t++, to += BSMM_SMALL_M_F32FMA_GROUP_BYTES(16) / 2) {
        __m256i row[2][GROUP], part[GROUP], word[GROUP];
        load_lines(b + 64 * t, pitch, row);
#    pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
#    pragma GCC unroll 8
            for (int i = 0; i < GROUP; i++)
                part[i] = half ? _mm256_permute2x128_si256(row[0][i], row[1][i], 0x31)
                               : _mm256_permute2x128_si256(row[0][i], row[1][i], 0x20);
            transpose(part, word);
#    pragma GCC unroll 8
            for (int w = 0; w < GROUP; w++) {
                if (w % 2 == 0) bsmm_small_m_ask(next, 1);
                store(to, GROUP * half + w, word[w]);
            }
        }
    }
}

TARGET bool bsmm_small_m_f32fma_has_nan(const bsmm_small_m_f32fma_seen *codes) {
    __m256i nan =
        _mm256_or_si256(_mm256_cmpeq_epi8(load(codes->most), _mm256_set1_epi8(-1)),
                        _mm256_cmpeq_epi8(load(codes->most_signed), _mm256_set1_epi8(0x7f)));
    return _mm256_movemask_epi8(nan) != 0;
}

bsmm_small_m_f32fma_spread *bsmm_small_m_f32fma_spread_of(uint32_t bits) {
    if (bits == 16) return spread_sixteens;
    return bits == 4 ? spread_fours : bits == 6 ? spread_sixes : spread_eights;
}

#else

typedef int bsmm_small_m_f32fma_spread_needs_x86_64;

#endif
