/* This file has the direct epilogue (epilogue_direct_body.h) with 256-bit vectors. The epilogue
 * loads each vector of a tile's accumulators once, applies all steps in registers, and stores D.
 * AVX2's masked loads and stores are slow, and it has none for 16-bit values. A selection of lanes
 * (type `lanes`) is therefore just the number of lanes, and an incomplete vector is copied through
 * a small buffer. */
#include "cpu/epilogue/epilogue_loops.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx2,fma,f16c")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 8, HALF = 4, NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

typedef __m256 vec;
typedef __m256d dvec;
typedef int64_t lanes;

INLINE lanes lanes_left(int64_t left) {
    return left >= LANES ? LANES : left;
}
INLINE lanes half_lanes(lanes there, int half) {
    lanes left = there - half * HALF;
    return left >= HALF ? HALF : left < 0 ? 0 : left;
}

INLINE __m256i load_whole(const void *from) {
    return _mm256_loadu_si256(from);
}

/* Loads the first `bytes` bytes of a vector; the other bytes are 0. */
INLINE __m256i load_bytes(const void *from, int64_t bytes) {
    uint8_t room[LANES * 4] = {0};
    memcpy(room, from, (size_t)bytes);
    return load_whole(room);
}

INLINE vec load_floats(lanes there, const float *from) {
    return _mm256_castsi256_ps(there == LANES ? load_whole(from) : load_bytes(from, there * 4));
}
INLINE dvec load_doubles(lanes there, const double *from) {
    return _mm256_castsi256_pd(there == HALF ? load_whole(from) : load_bytes(from, there * 8));
}
INLINE vec vec_set1(float value) {
    return _mm256_set1_ps(value);
}
INLINE dvec dvec_set1(double value) {
    return _mm256_set1_pd(value);
}
INLINE dvec dvec_fma(dvec a, dvec b, dvec c) {
    return _mm256_fmadd_pd(a, b, c);
}

INLINE dvec dvec_of(vec values, int half) {
    return _mm256_cvtps_pd(half ? _mm256_extractf128_ps(values, 1)
                                : _mm256_castps256_ps128(values));
}

INLINE vec vec_with_one_nan(vec value) {
    const vec nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(value, nan, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
}

INLINE dvec dvec_with_one_nan(dvec value) {
    const dvec nan = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff8000000000000));
    return _mm256_blendv_pd(value, nan, _mm256_cmp_pd(value, value, _CMP_UNORD_Q));
}

INLINE vec load_values(const uint8_t *from, uint32_t elem, lanes there) {
    if (elem == BSMM_ELEM_F32) return load_floats(there, (const float *)(const void *)from);
    __m128i words = there == LANES ? _mm_loadu_si128((const __m128i *)(const void *)from)
                                   : _mm256_castsi256_si128(load_bytes(from, there * 2));
    if (elem == BSMM_ELEM_F16) return _mm256_cvtph_ps(words);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}

INLINE vec narrow(dvec low, dvec high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high),
                                1);
}

/* Truncates doubles to fp32's 24 significant bits, for a later rounding to 16 bits. It sets the
 * last remaining bit if any cleared bit was set (a sticky bit). `low` is a mask of the cleared
 * bits. Adding this mask to the value of these bits carries into the last remaining bit unless
 * these bits are all 0. */
INLINE dvec cut(dvec value) {
    const __m256i low = _mm256_set1_epi64x(0x1fffffff);
    __m256i bits = _mm256_castpd_si256(value);
    __m256i carried = _mm256_add_epi64(_mm256_and_si256(bits, low), low);
    return _mm256_castsi256_pd(_mm256_andnot_si256(low, _mm256_or_si256(bits, carried)));
}

INLINE void store_bytes(void *to, __m256i value, int64_t bytes) {
    uint8_t room[LANES * 4];
    _mm256_storeu_si256((__m256i *)(void *)room, value);
    memcpy(to, room, (size_t)bytes);
}

INLINE bool store_f32(vec value, lanes there, void *to) {
    if (there == LANES)
        _mm256_storeu_ps(to, value);
    else
        store_bytes(to, _mm256_castps_si256(value), there * 4);
    return true;
}

INLINE bool store_words(__m128i words, lanes there, void *to) {
    if (there == LANES)
        _mm_storeu_si128(to, words);
    else
        store_bytes(to, _mm256_castsi128_si256(words), there * 2);
    return true;
}

INLINE bool store_f16(vec value, lanes there, void *to) {
    return store_words(_mm256_cvtps_ph(value, NEAREST), there, to);
}

/* Rounds fp32 values to bf16 and stores them. The last mantissa bit of each fp32 value is a sticky
 * bit of the double from which it was converted, so the result equals one rounding from double. If
 * an fp32 value is subnormal, its sticky bit may be lost. The function then stores nothing and
 * returns false. */
INLINE bool store_bf16(vec value, lanes there, void *to) {
    __m256i bits = _mm256_castps_si256(value);
    __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(INT32_MAX));
    __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(1 << 23), magnitude);
    __m256i is_zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
    if (!_mm256_testc_si256(is_zero, is_small)) return false;
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
    bits = _mm256_srli_epi32(bits, 16);
    __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x8);
    return store_words(_mm256_castsi256_si128(words), there, to);
}

#    include "cpu/epilogue/epilogue_direct_body.h"

TARGET int64_t bsmm_cpu_epilogue_f32_avx2(const bsmm_cpu_epilogue_tile *tile) {
    return store_tile(tile, store_f32, 4);
}

TARGET int64_t bsmm_cpu_epilogue_f16_avx2(const bsmm_cpu_epilogue_tile *tile) {
    return store_tile(tile, store_f16, 2);
}

TARGET int64_t bsmm_cpu_epilogue_bf16_avx2(const bsmm_cpu_epilogue_tile *tile) {
    return store_tile(tile, store_bf16, 2);
}

#endif
