/* Rows from sums to D in one pass, in registers: what bsmm_finish_scale, bsmm_finish_add without C
 * and bias, and bsmm_finish_store do one after another, with the same roundings.
 *
 * Where all that a sum is multiplied by is one power of two, fp32 does: the product is exact, or it
 * overflows or is subnormal as the result does. */
#include "cpu/finish_loops.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 16, HALF = 8, NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

INLINE __m512d finish_half(const bsmm_finish_row *row, int64_t i, __mmask8 lanes, __m256 acc) {
    __m512d factor = _mm512_mul_pd(_mm512_set1_pd(row->factor),
                                   _mm512_maskz_loadu_pd(lanes, row->column_factors + i));
    __m512d value = _mm512_mul_pd(_mm512_cvtps_pd(acc), factor);
    value = _mm512_mul_pd(value, _mm512_set1_pd(row->alpha));
    __mmask8 is_nan = _mm512_cmp_pd_mask(value, value, _CMP_UNORD_Q);
    const __m512i nan = _mm512_set1_epi64(0x7ff8000000000000);
    return _mm512_mask_mov_pd(value, is_nan, _mm512_castsi512_pd(nan));
}

INLINE void finish_lanes(const bsmm_finish_row *row, int64_t i, __mmask16 lanes, __m512d half[2]) {
    __m512 acc = _mm512_maskz_loadu_ps(lanes, row->acc + i);
    half[0] = finish_half(row, i, (__mmask8)lanes, _mm512_castps512_ps256(acc));
    half[1] = finish_half(row, i + HALF, (__mmask8)(lanes >> HALF), _mm512_extractf32x8_ps(acc, 1));
}

/* ---- one power of two ---- */

static bool is_power_of_two(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t exponent = bits >> 52 & 0x7ff;
    return (bits & ((1ull << 52) - 1)) == 0 && exponent > 1023 - 60 && exponent < 1023 + 60;
}

TARGET static bool has_one_factor(const bsmm_finish_row *row) {
    if (!is_power_of_two(row->factor) || !is_power_of_two(row->alpha)) return false;
    const __m512d one = _mm512_set1_pd(1);
    __mmask8 other = 0;
    for (int64_t i = 0; i < row->cols; i += HALF) {
        __mmask8 lanes = (__mmask8)(row->cols - i >= HALF ? 0xff : (1 << (row->cols - i)) - 1);
        other |= _mm512_mask_cmp_pd_mask(
            lanes, _mm512_maskz_loadu_pd(lanes, row->column_factors + i), one, _CMP_NEQ_UQ);
    }
    return other == 0;
}

INLINE __m512 times_factor(const bsmm_finish_row *row, int64_t i, __mmask16 lanes, __m512 factor) {
    __m512 value = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, row->acc + i), factor);
    __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i nan = _mm512_set1_epi32(0x7fc00000);
    return _mm512_mask_mov_ps(value, is_nan, _mm512_castsi512_ps(nan));
}

/* ---- any factors ---- */

INLINE __mmask16 lanes_left(int64_t left) {
    return (__mmask16)(left >= LANES ? 0xffff : (1 << left) - 1);
}

INLINE __m512 narrow(const __m512d half[2]) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(half[0])),
                              _mm512_cvtpd_ps(half[1]), 1);
}

/* As sticky_bits of finish_loops.c. */
INLINE __m512d cut(__m512d value) {
    const __m512i low = _mm512_set1_epi64(0x1fffffff);
    __m512i bits = _mm512_castpd_si512(value);
    __m512i carried = _mm512_add_epi64(_mm512_and_si512(bits, low), low);
    /* (bits | carried) & ~low */
    return _mm512_castsi512_pd(_mm512_ternarylogic_epi64(bits, carried, low, 0x54));
}

/* Finished lanes as fp32, rounded, or with a sticky last bit. */
INLINE __m512 finished(const bsmm_finish_row *row, int64_t i, __mmask16 lanes, bool sticky) {
    __m512d half[2];
    finish_lanes(row, i, lanes, half);
    const __m512d cuts[2] = {cut(half[0]), cut(half[1])};
    return narrow(sticky ? cuts : half);
}

/* ---- rows ---- */

TARGET bool bsmm_finish_f32_avx512(const bsmm_finish_row *row, void *to) {
    bool one = has_one_factor(row);
    __m512 factor = _mm512_set1_ps((float)(row->factor * row->alpha));
    for (int64_t i = 0; i < row->cols; i += LANES) {
        __mmask16 lanes = lanes_left(row->cols - i);
        __m512 value = one ? times_factor(row, i, lanes, factor) : finished(row, i, lanes, false);
        _mm512_mask_storeu_ps((float *)to + i, lanes, value);
    }
    return true;
}

TARGET bool bsmm_finish_f16_avx512(const bsmm_finish_row *row, void *to) {
    bool one = has_one_factor(row);
    __m512 factor = _mm512_set1_ps((float)(row->factor * row->alpha));
    for (int64_t i = 0; i < row->cols; i += LANES) {
        __mmask16 lanes = lanes_left(row->cols - i);
        __m512 value = one ? times_factor(row, i, lanes, factor) : finished(row, i, lanes, true);
        _mm256_mask_storeu_epi16((uint16_t *)to + i, lanes, _mm512_cvtps_ph(value, NEAREST));
    }
    return true;
}

/* Two roundings are one where fp32 is normal: a row with a subnormal value goes another way. */
TARGET bool bsmm_finish_bf16_avx512(const bsmm_finish_row *row, void *to) {
    bool one = has_one_factor(row);
    __m512 factor = _mm512_set1_ps((float)(row->factor * row->alpha));
    const __m512i smallest = _mm512_set1_epi32(1 << 23);
    for (int64_t i = 0; i < row->cols; i += LANES) {
        __mmask16 lanes = lanes_left(row->cols - i);
        __m512i bits = _mm512_castps_si512(one ? times_factor(row, i, lanes, factor)
                                               : finished(row, i, lanes, true));
        __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(INT32_MAX));
        if (_mm512_mask_cmplt_epu32_mask(_mm512_test_epi32_mask(magnitude, magnitude), magnitude,
                                         smallest))
            return false;
        __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        bits = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
        _mm256_mask_storeu_epi16((uint16_t *)to + i, lanes,
                                 _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
    }
    return true;
}

#endif
