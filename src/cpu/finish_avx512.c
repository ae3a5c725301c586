/* Tiles from sums to D in one pass, in registers: what bsmm_finish_scale, bsmm_finish_add and
 * bsmm_finish_store do one after another, with the same roundings.
 *
 * Where all that a sum is multiplied by is one power of two and nothing is added, fp32 does: the
 * product is exact, or it overflows or is subnormal as the result does. Only alpha may be negative,
 * for it alone makes a sum of zeros -0. */
#include "cpu/finish_loops.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 16, HALF = 8, NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

INLINE __mmask16 lanes_left(int64_t left) {
    return (__mmask16)(left >= LANES ? 0xffff : (1 << left) - 1);
}

/* ---- one power of two ---- */

static bool is_power_of_two(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t exponent = bits >> 52 & 0x7ff;
    return (bits & ((1ull << 52) - 1)) == 0 && exponent > 1023 - 60 && exponent < 1023 + 60;
}

INLINE bool are_ones(const double *factors, int64_t n) {
    const __m512d one = _mm512_set1_pd(1);
    __mmask8 other = 0;
    for (int64_t i = 0; i < n; i += HALF) {
        __mmask8 lanes = (__mmask8)(n - i >= HALF ? 0xff : (1 << (n - i)) - 1);
        other |= _mm512_mask_cmp_pd_mask(lanes, _mm512_maskz_loadu_pd(lanes, factors + i), one,
                                         _CMP_NEQ_UQ);
    }
    return other == 0;
}

/* Part of a row: sums, and what they are multiplied by. */
typedef struct part {
    const float *acc;
    const double *column_factors;
    double factor, alpha;
} part;

INLINE __m512 times_factor(const part *p, __mmask16 lanes) {
    const __m512 factor = _mm512_set1_ps((float)(p->factor * p->alpha));
    __m512 acc = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, p->acc), _mm512_setzero_ps());
    __m512 value = _mm512_mul_ps(acc, factor); /* acc is not -0 */
    __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i nan = _mm512_set1_epi32(0x7fc00000);
    return _mm512_mask_mov_ps(value, is_nan, _mm512_castsi512_ps(nan));
}

/* ---- any factors ---- */

INLINE __m512d finish_half(const part *p, int half, __mmask8 lanes, __m256 acc) {
    __m512d factor = _mm512_mul_pd(_mm512_set1_pd(p->factor),
                                   _mm512_maskz_loadu_pd(lanes, p->column_factors + half * HALF));
    __m512d value = _mm512_fmadd_pd(_mm512_cvtps_pd(acc), factor, _mm512_setzero_pd()); /* no -0 */
    return _mm512_mul_pd(value, _mm512_set1_pd(p->alpha));
}

INLINE __m512d with_one_nan(__m512d value) {
    __mmask8 is_nan = _mm512_cmp_pd_mask(value, value, _CMP_UNORD_Q);
    const __m512i nan = _mm512_set1_epi64(0x7ff8000000000000);
    return _mm512_mask_mov_pd(value, is_nan, _mm512_castsi512_pd(nan));
}

INLINE __m512 load_values(const uint8_t *from, uint32_t elem, __mmask16 lanes) {
    if (elem == BSMM_ELEM_F32) return _mm512_maskz_loadu_ps(lanes, from);
    __m256i words = _mm256_maskz_loadu_epi16(lanes, from);
    if (elem == BSMM_ELEM_F16) return _mm512_cvtph_ps(words);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

/* At a place in the tile. */
INLINE void add_values(const bsmm_finish_added *added, int64_t row, int64_t col, __mmask16 lanes,
                       __m512d half[2]) {
    const int64_t bytes = added->elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint8_t *from = added->from + row * added->pitch + col * bytes;
    const __m512 values = load_values(from, added->elem, lanes);
    const __m512d factor = _mm512_set1_pd(added->factor);
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(values));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(values, 1));
    half[0] = _mm512_add_pd(half[0], _mm512_mul_pd(factor, low));
    half[1] = _mm512_add_pd(half[1], _mm512_mul_pd(factor, high));
}

INLINE __m512 narrow(__m512d low, __m512d high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high),
                              1);
}

/* As sticky_bits of finish_loops.c. */
INLINE __m512d cut(__m512d value) {
    const __m512i low = _mm512_set1_epi64(0x1fffffff);
    __m512i bits = _mm512_castpd_si512(value);
    __m512i carried = _mm512_add_epi64(_mm512_and_si512(bits, low), low);
    /* (bits | carried) & ~low */
    return _mm512_castsi512_pd(_mm512_ternarylogic_epi64(bits, carried, low, 0x54));
}

/* Finished lanes as fp32, rounded, or with a sticky last bit; t: the tile, where something is added
 * to its row `row`. */
INLINE __m512 times_factors(const part *p, __mmask16 lanes, bool sticky, const bsmm_finish_tile *t,
                            int64_t row) {
    __m512 acc = _mm512_maskz_loadu_ps(lanes, p->acc);
    __m512d half[2] = {
        finish_half(p, 0, (__mmask8)lanes, _mm512_castps512_ps256(acc)),
        finish_half(p, 1, (__mmask8)(lanes >> HALF), _mm512_extractf32x8_ps(acc, 1))};
    for (int i = 0; t && i < t->added_count; i++)
        add_values(&t->added[i], row, p->column_factors - t->column_factors, lanes, half);
    __m512d low = with_one_nan(half[0]), high = with_one_nan(half[1]);
    return sticky ? narrow(cut(low), cut(high)) : narrow(low, high);
}

/* ---- the last rounding of 16 values ---- */

/* False, and the row takes another way. */
typedef bool store_lanes(__m512 value, __mmask16 lanes, void *to);

INLINE bool store_f32(__m512 value, __mmask16 lanes, void *to) {
    _mm512_mask_storeu_ps(to, lanes, value);
    return true;
}

INLINE bool store_f16(__m512 value, __mmask16 lanes, void *to) {
    _mm256_mask_storeu_epi16(to, lanes, _mm512_cvtps_ph(value, NEAREST));
    return true;
}

/* Two roundings are one where fp32 is normal: not where a value is subnormal. */
INLINE bool store_bf16(__m512 value, __mmask16 lanes, void *to) {
    __m512i bits = _mm512_castps_si512(value);
    __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(INT32_MAX));
    if (_mm512_mask_cmplt_epu32_mask(_mm512_test_epi32_mask(magnitude, magnitude), magnitude,
                                     _mm512_set1_epi32(1 << 23)))
        return false;
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    _mm256_mask_storeu_epi16(to, lanes, _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
    return true;
}

/* ---- rows ---- */

INLINE bool finish_row(part p, int64_t cols, bool one, const bsmm_finish_tile *t, int64_t row,
                       store_lanes *store, int64_t bytes, uint8_t *to) {
    for (; cols > 0; cols -= LANES) {
        __mmask16 lanes = lanes_left(cols);
        __m512 value = one ? times_factor(&p, lanes) : times_factors(&p, lanes, bytes == 2, t, row);
        if (!store(value, lanes, to)) return false;
        p.acc += LANES;
        p.column_factors += LANES;
        to += LANES * bytes;
    }
    return true;
}

INLINE int64_t finish_rows(const bsmm_finish_tile *t, store_lanes *store, int64_t bytes) {
    bool ones = is_power_of_two(t->alpha) && are_ones(t->column_factors, t->cols), one = false;
    part p = {t->acc, t->column_factors, 0, t->alpha};
    uint8_t *to = t->to;
    for (int64_t r = 0; r < t->rows; r++, p.acc += t->pitch, to += t->to_pitch) {
        if (r == 0 || p.factor != t->factors[r])
            one = ones && t->factors[r] > 0 && is_power_of_two(t->factors[r]);
        p.factor = t->factors[r];
        bool done = one ? finish_row(p, t->cols, true, NULL, r, store, bytes, to)
                        : finish_row(p, t->cols, false, NULL, r, store, bytes, to);
        if (!done) return r;
    }
    return t->rows;
}

/* The same with C, bias or both. */
INLINE int64_t finish_added_rows(const bsmm_finish_tile *t, store_lanes *store, int64_t bytes) {
    part p = {t->acc, t->column_factors, 0, t->alpha};
    uint8_t *to = t->to;
    for (int64_t r = 0; r < t->rows; r++, p.acc += t->pitch, to += t->to_pitch) {
        p.factor = t->factors[r];
        if (!finish_row(p, t->cols, false, t, r, store, bytes, to)) return r;
    }
    return t->rows;
}

INLINE int64_t finish_tile(const bsmm_finish_tile *t, store_lanes *store, int64_t bytes) {
    if (t->added_count) return finish_added_rows(t, store, bytes);
    return finish_rows(t, store, bytes);
}

TARGET int64_t bsmm_finish_f32_avx512(const bsmm_finish_tile *tile) {
    return finish_tile(tile, store_f32, 4);
}

TARGET int64_t bsmm_finish_f16_avx512(const bsmm_finish_tile *tile) {
    return finish_tile(tile, store_f16, 2);
}

TARGET int64_t bsmm_finish_bf16_avx512(const bsmm_finish_tile *tile) {
    return finish_tile(tile, store_bf16, 2);
}

#endif
