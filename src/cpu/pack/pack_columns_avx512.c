/* Reads column-major operands and transposes them to rows by 512-bit byte permutes. The
 * transposition has two stages. First, each register, which holds 8 columns of 8 codes (or 4
 * columns of 8 16-bit codes), is transposed by itself. Then 8 such registers are transposed as a
 * matrix of 8 x 8 words of 64 bits. */
#include "cpu/pack/pack.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_PACK_LANES, RUN = BSMM_PACK_RUN, VECTOR = 64 };

/* These permutations transpose a register. In bytes_to_rows, byte 8 * i + j comes from byte 8 * j +
 * i. halves_to_rows does the same for 8 x 4 values of 16 bits. */
#    define BYTES_OF(i)  i, 8 + i, 16 + i, 24 + i, 32 + i, 40 + i, 48 + i, 56 + i
#    define HALVES_OF(i) i, 8 + i, 16 + i, 24 + i
static const _Alignas(64) uint8_t bytes_to_rows[64] = {BYTES_OF(0), BYTES_OF(1), BYTES_OF(2),
                                                       BYTES_OF(3), BYTES_OF(4), BYTES_OF(5),
                                                       BYTES_OF(6), BYTES_OF(7)};
static const _Alignas(64) uint16_t halves_to_rows[32] = {HALVES_OF(0), HALVES_OF(1), HALVES_OF(2),
                                                         HALVES_OF(3), HALVES_OF(4), HALVES_OF(5),
                                                         HALVES_OF(6), HALVES_OF(7)};

/* `evens` returns the 128-bit parts 0 and 2 of both vectors. `odds` returns parts 1 and 3. */
INLINE __m512i evens(__m512i a, __m512i b) {
    return _mm512_shuffle_i64x2(a, b, 0x88);
}
INLINE __m512i odds(__m512i a, __m512i b) {
    return _mm512_shuffle_i64x2(a, b, 0xdd);
}

/* Transposes 8 x 8 words of 64 bits and stores them. Word i of each of the 8 vectors belongs to row
 * i. */
INLINE void store_rows(const __m512i x[LANES], uint8_t *to, int64_t pitch) {
#    pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m512i pair[4];
#    pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            pair[i] = h ? _mm512_unpackhi_epi64(x[2 * i], x[2 * i + 1])
                        : _mm512_unpacklo_epi64(x[2 * i], x[2 * i + 1]);
        __m512i low = evens(pair[0], pair[1]), high = evens(pair[2], pair[3]);
        _mm512_storeu_si512(to + h * pitch, evens(low, high));
        _mm512_storeu_si512(to + (4 + h) * pitch, odds(low, high));
        low = odds(pair[0], pair[1]);
        high = odds(pair[2], pair[3]);
        _mm512_storeu_si512(to + (2 + h) * pitch, evens(low, high));
        _mm512_storeu_si512(to + (6 + h) * pitch, odds(low, high));
    }
}

/* Reads codes of up to 8 bits from a column-major operand and stores them row by row, one byte per
 * code. Each vector holds 8 bytes of each of 8 columns. The codes of all columns begin at the same
 * bit of a byte, so one constant vector selects them in all columns. */
INLINE void store_bytes(const bsmm_pack_columns *c, uint8_t *to) {
    const uint8_t *at = c->base + c->bit / 8;
    const __m512i codes =
        _mm512_add_epi8(_mm512_set1_epi64((int64_t)(0x0706050403020100u * c->bits)),
                        _mm512_set1_epi8((char)(c->bit % 8)));
    const __m512i mask = _mm512_set1_epi8((char)((1u << c->bits) - 1));
    const __m512i order = _mm512_load_si512(bytes_to_rows);
    __m512i row[LANES];
#    pragma GCC unroll 8
    for (int i = 0; i < LANES; i++) {
        __m512i words = _mm512_setzero_si512();
#    pragma GCC unroll 8
        for (int j = 0; j < 8; j++, at += c->step / 8)
            words = _mm512_mask_broadcastq_epi64(
                words, (__mmask8)(1 << j), _mm_loadl_epi64((const __m128i *)(const void *)at));
        __m512i byte = _mm512_multishift_epi64_epi8(codes, words);
        row[i] = _mm512_permutexvar_epi8(order, _mm512_and_si512(byte, mask));
    }
    store_rows(row, to, BSMM_PACK_SPAN);
}

/* Reads RUN / 2 columns of 16-bit codes. Each vector holds 4 columns of 8 codes. */
INLINE void store_halves(const bsmm_pack_columns *c, uint64_t first, uint8_t *to) {
    const uint8_t *at = c->base + (c->bit + first * c->step) / 8;
    const __m512i order = _mm512_load_si512(halves_to_rows);
    __m512i row[LANES];
#    pragma GCC unroll 8
    for (int i = 0; i < LANES; i++) {
        __m512i columns = _mm512_setzero_si512();
#    pragma GCC unroll 4
        for (int j = 0; j < 4; j++, at += c->step / 8)
            columns =
                _mm512_mask_broadcast_i32x4(columns, (__mmask16)(0xf << 4 * j),
                                            _mm_loadu_si128((const __m128i *)(const void *)at));
        row[i] = _mm512_permutexvar_epi16(order, columns);
    }
    store_rows(row, to, BSMM_PACK_PITCH);
}

TARGET void bsmm_pack_avx512_columns(const bsmm_pack_columns *columns, uint8_t *to) {
    if (columns->bits == 32) {
        bsmm_pack_avx2_columns(columns, to);
        return;
    }
    if (columns->bits == 16) {
        store_halves(columns, 0, to);
        store_halves(columns, RUN / 2, to + VECTOR);
        return;
    }
    store_bytes(columns, to);
}

#endif
