/* Reads column-major operands by 256-bit vectors and transposes them to rows. Codes of up to 8 bits
 * are read as four 64-bit words at once. */
#include "cpu/pack/pack.h"

#if defined(__x86_64__)

#    include "cpu/pack/pack_avx2.h"

enum { WORDS = 4 };
typedef uint64_t word __attribute__((vector_size(32)));

#    include "cpu/pack/pack_columns_body.h"

/* Transposes 32-bit codes: 8 columns of 8 rows at a time. */
INLINE void store_words(const bsmm_pack_columns *c, uint8_t *to) {
    const uint8_t *at = c->base + c->bit / 8;
    for (int i = 0; i < BSMM_PACK_RUN; i += GROUPS, to += GROUPS * 4) {
        __m256i columns[LANES], rows[GROUPS];
        for (int j = 0; j < GROUPS; j++, at += c->step / 8)
            columns[j] = _mm256_loadu_si256((const __m256i *)(const void *)at);
        transpose(columns, rows);
        for (int j = 0; j < LANES; j++)
            _mm256_storeu_si256((__m256i *)(void *)(to + j * BSMM_PACK_PITCH), rows[j]);
    }
}

INLINE __m256i load_two(const uint8_t *at, uint64_t stride) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(at)), load_16(at + stride), 1);
}

/* Transposes 16 columns of 8 rows of 16-bit codes. Columns j and j + 8 are in one register. */
INLINE void transpose_sixteen(const __m256i columns[LANES], __m256i rows[LANES]) {
#    pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256i pair[4];
#    pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            pair[j] = h ? _mm256_unpackhi_epi16(columns[2 * j], columns[2 * j + 1])
                        : _mm256_unpacklo_epi16(columns[2 * j], columns[2 * j + 1]);
        __m256i low = _mm256_unpacklo_epi32(pair[0], pair[1]);
        __m256i high = _mm256_unpacklo_epi32(pair[2], pair[3]);
        rows[4 * h] = _mm256_unpacklo_epi64(low, high);
        rows[4 * h + 1] = _mm256_unpackhi_epi64(low, high);
        low = _mm256_unpackhi_epi32(pair[0], pair[1]);
        high = _mm256_unpackhi_epi32(pair[2], pair[3]);
        rows[4 * h + 2] = _mm256_unpacklo_epi64(low, high);
        rows[4 * h + 3] = _mm256_unpackhi_epi64(low, high);
    }
}

INLINE void store_sixteens(const bsmm_pack_columns *c, uint8_t *to) {
    const uint64_t step = c->step / 8;
    const uint8_t *at = c->base + c->bit / 8;
    for (int i = 0; i < BSMM_PACK_RUN; i += 16, at += 16 * step, to += 32) {
        __m256i columns[LANES], rows[LANES];
#    pragma GCC unroll 8
        for (uint64_t j = 0; j < LANES; j++)
            columns[j] = load_two(at + j * step, 8 * step);
        transpose_sixteen(columns, rows);
#    pragma GCC unroll 8
        for (int j = 0; j < LANES; j++)
            _mm256_storeu_si256((__m256i *)(void *)(to + j * BSMM_PACK_PITCH), rows[j]);
    }
}

TARGET void bsmm_pack_avx2_columns(const bsmm_pack_columns *columns, uint8_t *to) {
    if (columns->bits == 32)
        store_words(columns, to);
    else if (columns->bits == 16)
        store_sixteens(columns, to);
    else
        store_narrow(columns, to);
}

#else

typedef int bsmm_pack_columns_avx2_needs_x86_64;

#endif
