/* Converts f32, f16 and bf16 to each other with AVX2, 8 values at a time. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/lanes_avx2.h"

#    include <string.h>

INLINE __m256 load_values(uint32_t elem, const uint8_t *from) {
    if (elem == BSMM_ELEM_F32) return _mm256_loadu_ps((const void *)from);
    __m128i words = _mm_loadu_si128((const void *)from);
    if (elem == BSMM_ELEM_F16) return _mm256_cvtph_ps(words);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}

/* Rounds 8 fp32 values to f16 or bf16, to nearest even. No value may be NaN. */
INLINE __m128i words_of(uint32_t elem, __m256 values) {
    if (elem == BSMM_ELEM_F16) return _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
    __m256i bits = _mm256_castps_si256(values);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
    __m256i words = _mm256_srli_epi32(bits, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

/* Converts 8 values from one 16- or 32-bit format to another. Returns false if a value is NaN. */
INLINE bool cast_eight(uint32_t from_elem, uint32_t to_elem, const uint8_t *from, uint8_t *to) {
    __m256 values = load_values(from_elem, from);
    if (to_elem == BSMM_ELEM_F32)
        _mm256_storeu_ps((void *)to, values);
    else
        _mm_storeu_si128((void *)to, words_of(to_elem, values));
    return _mm256_movemask_ps(_mm256_cmp_ps(values, values, _CMP_UNORD_Q)) == 0;
}

INLINE bool cast_run(uint32_t from_elem, uint32_t to_elem, const uint8_t *from, uint8_t *to,
                     int64_t n) {
    const int64_t size = from_elem == BSMM_ELEM_F32 ? 4 : 2,
                  to_size = to_elem == BSMM_ELEM_F32 ? 4 : 2;
    bool plain = true;
    for (; n >= LANES; n -= LANES, from += LANES * size, to += LANES * to_size)
        plain &= cast_eight(from_elem, to_elem, from, to);
    uint8_t rest[32] = {0}, last[32];
    if (n == 0) return plain;
    memcpy(rest, from, (size_t)(n * size));
    plain &= cast_eight(from_elem, to_elem, rest, last);
    memcpy(to, last, (size_t)(n * to_size));
    return plain;
}

INLINE bool cast_from(uint32_t from_elem, uint32_t to_elem, const void *from, void *to, int64_t n) {
    if (to_elem == BSMM_ELEM_F32) return cast_run(from_elem, BSMM_ELEM_F32, from, to, n);
    if (to_elem == BSMM_ELEM_F16) return cast_run(from_elem, BSMM_ELEM_F16, from, to, n);
    return cast_run(from_elem, BSMM_ELEM_BF16, from, to, n);
}

TARGET bool bsmm_cast_avx2(uint32_t from_elem, uint32_t to_elem, const void *from, void *to,
                           int64_t n) {
    if (from_elem == BSMM_ELEM_F32) return cast_from(BSMM_ELEM_F32, to_elem, from, to, n);
    if (from_elem == BSMM_ELEM_F16) return cast_from(BSMM_ELEM_F16, to_elem, from, to, n);
    return cast_from(BSMM_ELEM_BF16, to_elem, from, to, n);
}

#endif
