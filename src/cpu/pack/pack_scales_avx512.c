/* Packs e8m0 scales: moves each scale code to the position of fp32's exponent bits. The function
 * handles four units (consecutive ranges of K with one scale per row) at once. A 32-bit lane holds
 * the four scale codes that a row has for these units. */
#include "cpu/pack/pack.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

/* Scales outside 2^-MOST to 2^MOST are not packed here but one by one by the caller. */
enum { LANES = BSMM_PACK_LANES, ONE = 127, MOST = 50 };

INLINE __m256i load_codes(const bsmm_pack_exponents *e) {
    int32_t codes[LANES];
    for (int i = 0; i < LANES; i++)
        memcpy(&codes[i], e->row[i] + e->offset, sizeof codes[i]);
    return _mm256_setr_epi32(codes[0], codes[1], codes[2], codes[3], codes[4], codes[5], codes[6],
                             codes[7]);
}

TARGET bool bsmm_pack_avx512_exponents(const bsmm_pack_exponents *e, uint8_t *to) {
    const __m256i lower = _mm256_set1_epi32(e->lower), byte = _mm256_set1_epi32(0xff);
    const __m256 factor = _mm256_set1_ps((float)e->floated);
    const __m256i above = _mm256_set1_epi8(ONE - MOST), range = _mm256_set1_epi8(2 * MOST);
    /* Lanes past the operand's last row get the scale 1. */
    const __mmask32 there = (__mmask32)(((uint64_t)1 << 4 * e->rows) - 1);
    __m256i codes = _mm256_mask_mov_epi8(_mm256_set1_epi8(ONE), there, load_codes(e));
    if (_mm256_cmpgt_epu8_mask(_mm256_sub_epi8(codes, above), range)) return false;
    for (int i = 0; i < BSMM_PACK_EXPONENTS; i++, to += e->unit_bytes) {
        __m256i bits = _mm256_slli_epi32(_mm256_and_si256(codes, byte), 23);
        bits = _mm256_sub_epi32(bits, lower);
        _mm256_storeu_si256((__m256i *)(void *)to, bits);
        if (e->floated)
            _mm256_storeu_ps((float *)(void *)(to + e->pitch),
                             _mm256_mul_ps(_mm256_castsi256_ps(bits), factor));
        codes = _mm256_srli_epi32(codes, 8);
    }
    return true;
}

#else

typedef int bsmm_pack_scales_avx512_needs_x86_64;

#endif
