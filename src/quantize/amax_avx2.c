/* Finds the largest magnitude (amax) of each block with AVX2. While a loop reads the values, each
 * block has one register, and each lane of the register holds the maximum of some of the block's
 * values. At the end, a reduction turns the registers of eight blocks into one register with the
 * eight maxima. Magnitudes of f16 and bf16 are compared as 16-bit integers, because their codes
 * without the sign have the same order. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/lanes_avx2.h"

#    include <string.h>

enum { REGISTERS = LANES, PAIRED = 0 };
typedef __m256i vec;
#    define vec_zero _mm256_setzero_si256
#    define vec_load load_bits

/* Reduces eight registers at once: lane i of the result is the maximum of the 32-bit lanes of
 * v[i]. */
INLINE __m256i reduce_dwords(const __m256i v[REGISTERS]) {
    __m256i a[4], b[2];
    for (int i = 0; i < 4; i++)
        a[i] = _mm256_max_epu32(_mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        b[i] = _mm256_max_epu32(_mm256_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                                _mm256_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    return _mm256_max_epu32(_mm256_permute2x128_si256(b[0], b[1], 0x20),
                            _mm256_permute2x128_si256(b[0], b[1], 0x31));
}

/* Reduces eight registers at once: 16-bit lane i of the result is the maximum of the 16-bit lanes
 * of v[i]. */
INLINE __m128i reduce_words(const __m256i v[REGISTERS]) {
    __m256i a[4], b[2];
    for (int i = 0; i < 4; i++)
        a[i] = _mm256_max_epu16(_mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]),
                                _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        b[i] = _mm256_max_epu16(_mm256_unpacklo_epi32(a[2 * i], a[2 * i + 1]),
                                _mm256_unpackhi_epi32(a[2 * i], a[2 * i + 1]));
    __m256i c =
        _mm256_max_epu16(_mm256_unpacklo_epi64(b[0], b[1]), _mm256_unpackhi_epi64(b[0], b[1]));
    return _mm_max_epu16(_mm256_castsi256_si128(c), _mm256_extracti128_si256(c, 1));
}

/* Converts f16 codes without sign bits to the bits of fp32 values. A shift moves the exponent and
 * the mantissa to their positions in fp32, and a multiplication by 2^112 corrects the exponent
 * bias. Inf and NaN get fp32's largest exponent; a NaN keeps its payload. */
INLINE __m256i f16_bits(__m256i codes) {
    __m256 value = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 13));
    __m256i bits = _mm256_castps_si256(_mm256_mul_ps(value, _mm256_set1_ps(0x1p112f)));
    __m256i is_special = _mm256_cmpgt_epi32(codes, _mm256_set1_epi32(0x7bff));
    return _mm256_or_si256(bits, _mm256_and_si256(is_special, _mm256_set1_epi32(0x7f800000)));
}

/* Reduces each register to its maximum and stores the maxima as fp32 bits. */
INLINE void store_maxima(const __m256i max[REGISTERS], bool halves, uint32_t elem, uint32_t *amax) {
    (void)halves;
    if (elem == BSMM_ELEM_F32) {
        store_bits(amax, reduce_dwords(max));
        return;
    }
    __m256i codes = _mm256_cvtepu16_epi32(reduce_words(max));
    store_bits(amax, elem == BSMM_ELEM_BF16 ? _mm256_slli_epi32(codes, 16) : f16_bits(codes));
}

/* Returns, lane by lane, the larger of `max` and the magnitude of `values`. */
INLINE __m256i with_f32(__m256i max, __m256i values, bool skips_nan) {
    __m256i a = _mm256_and_si256(values, _mm256_set1_epi32(0x7fffffff));
    if (skips_nan) a = _mm256_andnot_si256(_mm256_cmpgt_epi32(a, _mm256_set1_epi32(0x7f800000)), a);
    return _mm256_max_epu32(max, a);
}

INLINE __m256i with_words(__m256i max, __m256i values, int inf, bool skips_nan) {
    __m256i a = _mm256_and_si256(values, _mm256_set1_epi16(0x7fff));
    if (skips_nan) a = _mm256_andnot_si256(_mm256_cmpgt_epi16(a, _mm256_set1_epi16((short)inf)), a);
    return _mm256_max_epu16(max, a);
}

/* Loads the first n values of a row into a register and sets the other lanes to 0. */
INLINE __m256i load_first(const uint8_t *from, int64_t n, uint32_t elem) {
    uint8_t copy[4 * LANES] = {0};
    memcpy(copy, from, (size_t)(n * (elem == BSMM_ELEM_F32 ? 4 : 2)));
    return load_bits(copy);
}

#    include "quantize/amax_body.h"

TARGET void bsmm_amax_avx2(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                           bool skips_nan, uint32_t *amax) {
    amax_any(values, rows, cols, width, skips_nan, amax);
}

#endif
