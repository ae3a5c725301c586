/* This file has the direct epilogue (epilogue_direct_body.h) with 512-bit vectors. The epilogue
 * loads each vector of a tile's accumulators once, applies all steps of the epilogue in registers,
 * and stores D. */
#include "cpu/epilogue/epilogue_loops.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 16, HALF = 8, NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

typedef __m512 vec;
typedef __m512d dvec;
typedef __mmask16 lanes;

INLINE lanes lanes_left(int64_t left) {
    return (lanes)(left >= LANES ? 0xffff : (1 << left) - 1);
}
INLINE __mmask8 half_lanes(lanes there, int half) {
    return (__mmask8)(half ? there >> HALF : there);
}
INLINE vec load_floats(lanes there, const float *from) {
    return _mm512_maskz_loadu_ps(there, from);
}
INLINE dvec load_doubles(__mmask8 there, const double *from) {
    return _mm512_maskz_loadu_pd(there, from);
}
INLINE vec vec_set1(float value) {
    return _mm512_set1_ps(value);
}
INLINE dvec dvec_set1(double value) {
    return _mm512_set1_pd(value);
}
INLINE dvec dvec_fma(dvec a, dvec b, dvec c) {
    return _mm512_fmadd_pd(a, b, c);
}

INLINE dvec dvec_of(vec values, int half) {
    return _mm512_cvtps_pd(half ? _mm512_extractf32x8_ps(values, 1)
                                : _mm512_castps512_ps256(values));
}

INLINE vec vec_with_one_nan(vec value) {
    __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i nan = _mm512_set1_epi32(0x7fc00000);
    return _mm512_mask_mov_ps(value, is_nan, _mm512_castsi512_ps(nan));
}

INLINE dvec dvec_with_one_nan(dvec value) {
    __mmask8 is_nan = _mm512_cmp_pd_mask(value, value, _CMP_UNORD_Q);
    const __m512i nan = _mm512_set1_epi64(0x7ff8000000000000);
    return _mm512_mask_mov_pd(value, is_nan, _mm512_castsi512_pd(nan));
}

INLINE vec load_values(const uint8_t *from, uint32_t elem, lanes there) {
    if (elem == BSMM_ELEM_F32) return _mm512_maskz_loadu_ps(there, from);
    __m256i words = _mm256_maskz_loadu_epi16(there, from);
    if (elem == BSMM_ELEM_F16) return _mm512_cvtph_ps(words);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

INLINE vec narrow(dvec low, dvec high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high),
                              1);
}

/* Truncates doubles to the 24 significant bits of fp32, for a later rounding to 16 bits, and makes
 * the last remaining bit a sticky bit: it becomes 1 if any cut-off bit is 1. The mask `low` has the
 * bits to cut off. To find out whether one of them is 1, the function adds `low` to them. The sum
 * carries into the last remaining bit unless all of them are 0. */
INLINE dvec cut(dvec value) {
    const __m512i low = _mm512_set1_epi64(0x1fffffff);
    __m512i bits = _mm512_castpd_si512(value);
    __m512i carried = _mm512_add_epi64(_mm512_and_si512(bits, low), low);
    /* The constant 0x54 makes the instruction compute (bits | carried) & ~low. */
    return _mm512_castsi512_pd(_mm512_ternarylogic_epi64(bits, carried, low, 0x54));
}

INLINE bool store_f32(vec value, lanes there, void *to) {
    _mm512_mask_storeu_ps(to, there, value);
    return true;
}

INLINE bool store_f16(vec value, lanes there, void *to) {
    _mm256_mask_storeu_epi16(to, there, _mm512_cvtps_ph(value, NEAREST));
    return true;
}

/* Rounds fp32 values to bf16 and stores them. Each fp32 value was truncated from a double. Its last
 * mantissa bit is a sticky bit, which is set if the truncation lost a bit. Rounding the value to
 * bf16 therefore gives the same result as rounding the double once. This does not hold for
 * subnormal fp32 values. If there is one, the function stores nothing and returns false. */
INLINE bool store_bf16(vec value, lanes there, void *to) {
    __m512i bits = _mm512_castps_si512(value);
    __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(INT32_MAX));
    if (_mm512_mask_cmplt_epu32_mask(_mm512_test_epi32_mask(magnitude, magnitude), magnitude,
                                     _mm512_set1_epi32(1 << 23)))
        return false;
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    _mm256_mask_storeu_epi16(to, there, _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
    return true;
}

#    include "cpu/epilogue/epilogue_direct_body.h"

TARGET int64_t bsmm_cpu_epilogue_f32_avx512(const bsmm_cpu_epilogue_tile *tile) {
    return store_tile(tile, store_f32, 4);
}

TARGET int64_t bsmm_cpu_epilogue_f16_avx512(const bsmm_cpu_epilogue_tile *tile) {
    return store_tile(tile, store_f16, 2);
}

TARGET int64_t bsmm_cpu_epilogue_bf16_avx512(const bsmm_cpu_epilogue_tile *tile) {
    return store_tile(tile, store_bf16, 2);
}

#endif
