/* Rows from sums to D in one pass, in registers: what bsmm_finish_scale, bsmm_finish_add without C
 * and bias, and bsmm_finish_store do one after another, with the same roundings. */
#include "cpu/finish_loops.h"

#if defined(__x86_64__)

#    include <immintrin.h>

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

INLINE __m512 narrow_sticky(const __m512d half[2]) {
    const __m512d sticky[2] = {cut(half[0]), cut(half[1])};
    return narrow(sticky);
}

TARGET bool bsmm_finish_f32_avx512(const bsmm_finish_row *row, void *to) {
    for (int64_t i = 0; i < row->cols; i += LANES) {
        __mmask16 lanes = lanes_left(row->cols - i);
        __m512d half[2];
        finish_lanes(row, i, lanes, half);
        _mm512_mask_storeu_ps((float *)to + i, lanes, narrow(half));
    }
    return true;
}

TARGET bool bsmm_finish_f16_avx512(const bsmm_finish_row *row, void *to) {
    for (int64_t i = 0; i < row->cols; i += LANES) {
        __mmask16 lanes = lanes_left(row->cols - i);
        __m512d half[2];
        finish_lanes(row, i, lanes, half);
        _mm256_mask_storeu_epi16((uint16_t *)to + i, lanes,
                                 _mm512_cvtps_ph(narrow_sticky(half), NEAREST));
    }
    return true;
}

INLINE bool has_subnormal(const __m512d half[2]) {
    const __m512d smallest = _mm512_set1_pd(0x1p-126), zero = _mm512_setzero_pd();
    __mmask8 found = 0;
    for (int i = 0; i < 2; i++)
        found |= _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(half[i], zero, _CMP_NEQ_OQ),
                                         _mm512_abs_pd(half[i]), smallest, _CMP_LT_OQ);
    return found;
}

/* Double rounding is none where fp32 is normal. */
TARGET bool bsmm_finish_bf16_avx512(const bsmm_finish_row *row, void *to) {
    for (int64_t i = 0; i < row->cols; i += LANES) {
        __mmask16 lanes = lanes_left(row->cols - i);
        __m512d half[2];
        finish_lanes(row, i, lanes, half);
        if (has_subnormal(half)) return false;
        __m512i bits = _mm512_castps_si512(narrow_sticky(half));
        __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        bits = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
        _mm256_mask_storeu_epi16((uint16_t *)to + i, lanes,
                                 _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
    }
    return true;
}

#endif
