/* Finds the largest magnitude (amax) of each block with AVX-512. While the function reads a block,
 * each lane of a register has the maximum of the values that went through this lane. A block of 16
 * values of 16 bits fills only half a register, so two such blocks share one. At the end, sixteen
 * registers are reduced together, by a transposition, to the maxima of their blocks. Without their
 * sign bits, the codes of f16 and bf16 have the same order as the magnitudes. The codes are
 * therefore compared as 16-bit integers, and are not converted to fp32 before the end. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/lanes_avx512.h"

enum { REGISTERS = LANES, PAIRED = WORDS / 2 };
typedef __m512i vec;
#    define vec_zero _mm512_setzero_si512
#    define vec_load _mm512_loadu_si512

/* Reduces sixteen registers at once: lane i of the result is the maximum of the 32-bit lanes of
 * v[i]. */
INLINE __m512i reduce_dwords(const __m512i v[REGISTERS]) {
    __m512i a[8], b[4], c[2];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_max_epu32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 4; i++)
        b[i] = _mm512_max_epu32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        c[i] = _mm512_max_epu32(_mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0x88),
                                _mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0xdd));
    return _mm512_max_epu32(_mm512_shuffle_i32x4(c[0], c[1], 0x88),
                            _mm512_shuffle_i32x4(c[0], c[1], 0xdd));
}

/* Reduces sixteen registers, each of which holds two blocks of 16-bit values, one block in each
 * 256-bit half. In bits 0 to 127 of the result, 16-bit lane j is the maximum of the block in the
 * lower half of v[j]. In bits 128 to 255, lane j is the maximum of the block in the upper half of
 * v[j]. Bits 256 to 511 hold the maxima of the blocks in v[8 + j] in the same order. */
INLINE __m512i reduce_words(const __m512i v[REGISTERS]) {
    __m512i a[8], b[4], c[2];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_max_epu16(_mm512_unpacklo_epi16(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi16(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 4; i++)
        b[i] = _mm512_max_epu16(_mm512_unpacklo_epi32(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi32(a[2 * i], a[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        c[i] = _mm512_max_epu16(_mm512_unpacklo_epi64(b[2 * i], b[2 * i + 1]),
                                _mm512_unpackhi_epi64(b[2 * i], b[2 * i + 1]));
    return _mm512_max_epu16(_mm512_shuffle_i32x4(c[0], c[1], 0x88),
                            _mm512_shuffle_i32x4(c[0], c[1], 0xdd));
}

/* Converts f16 codes without sign bits to the bits of fp32 values. A shift moves the exponent and
 * the mantissa to their positions in fp32, and a multiplication by 2^112 corrects the exponent
 * bias. Inf and NaN get fp32's largest exponent; a NaN keeps its payload. */
INLINE __m512i f16_bits(__m512i codes) {
    const __m512i special = _mm512_set1_epi32(0x7c00);
    __m512 value = _mm512_castsi512_ps(_mm512_slli_epi32(codes, 13));
    __m512i bits = _mm512_castps_si512(_mm512_mul_ps(value, _mm512_set1_ps(0x1p112f)));
    __mmask16 is_special = _mm512_cmpge_epu32_mask(codes, special);
    return _mm512_mask_or_epi32(bits, is_special, bits, _mm512_set1_epi32(0x7f800000));
}

INLINE void store_words(uint32_t *amax, __m256i words, uint32_t elem) {
    __m512i codes = _mm512_cvtepu16_epi32(words);
    _mm512_storeu_si512(amax,
                        elem == BSMM_ELEM_BF16 ? _mm512_slli_epi32(codes, 16) : f16_bits(codes));
}

/* Returns, lane by lane, the larger of `max` and the magnitude of `values`. */
INLINE __m512i with_f32(__m512i max, __m512i values, bool skips_nan) {
    __m512i a = _mm512_and_si512(values, _mm512_set1_epi32(0x7fffffff));
    if (skips_nan)
        a = _mm512_maskz_mov_epi32(_mm512_cmple_epu32_mask(a, _mm512_set1_epi32(0x7f800000)), a);
    return _mm512_max_epu32(max, a);
}

INLINE __m512i with_words(__m512i max, __m512i values, int inf, bool skips_nan) {
    __m512i a = _mm512_and_si512(values, _mm512_set1_epi16(0x7fff));
    if (skips_nan)
        a = _mm512_maskz_mov_epi16(_mm512_cmple_epu16_mask(a, _mm512_set1_epi16((short)inf)), a);
    return _mm512_max_epu16(max, a);
}

INLINE __m512i load_first(const uint8_t *from, int64_t n, uint32_t elem) {
    if (elem == BSMM_ELEM_F32) return _mm512_maskz_loadu_epi32(first_lanes(n), from);
    return _mm512_maskz_loadu_epi16((1u << n) - 1, from);
}

/* Reduces each register to its maximum and stores the maxima as fp32 bits. If `halves` is set, a
 * register holds two blocks, and each half gives a maximum of its own. */
INLINE void store_maxima(const __m512i max[REGISTERS], bool halves, uint32_t elem, uint32_t *amax) {
    if (elem == BSMM_ELEM_F32) {
        _mm512_storeu_si512(amax, reduce_dwords(max));
        return;
    }
    __m512i parts = reduce_words(max), swapped = _mm512_shuffle_i32x4(parts, parts, 0xb1);
    if (!halves) {
        __m512i all = _mm512_max_epu16(parts, swapped);
        store_words(amax, _mm512_castsi512_si256(_mm512_shuffle_i32x4(all, all, 0x08)), elem);
        return;
    }
    __m512i low = _mm512_unpacklo_epi16(parts, swapped);
    __m512i high = _mm512_unpackhi_epi16(parts, swapped);
    __m512i first = _mm512_shuffle_i32x4(low, high, 0x88);
    __m512i ordered = _mm512_shuffle_i32x4(first, first, 0xd8);
    store_words(amax, _mm512_castsi512_si256(ordered), elem);
    store_words(amax + 16, _mm512_extracti64x4_epi64(ordered, 1), elem);
}

#    include "quantize/amax_body.h"

TARGET void bsmm_amax_avx512(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                             bool skips_nan, uint32_t *amax) {
    amax_any(values, rows, cols, width, skips_nan, amax);
}

#endif
