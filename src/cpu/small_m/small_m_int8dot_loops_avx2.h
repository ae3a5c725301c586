/* Defines functions that load elements and scales for the loops of cpu_avx2_int8dot_small_m. */
#ifndef BSMM_CPU_SMALL_M_INT8DOT_LOOPS_AVX2_H
#define BSMM_CPU_SMALL_M_INT8DOT_LOOPS_AVX2_H

#include "cpu/engine/engine_int8dot_avx2.h"
#include "cpu/pack/pack_avx2.h"
#include "cpu/small_m/small_m_int8dot_avx2.h"

#undef TARGET
#undef INLINE
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum {
    /* A panel is COLUMNS rows of B, and gives as many columns of D. A vector has half as many
     * lanes, so each row of A needs two vectors of sums per panel. */
    COLUMNS = BSMM_SMALL_M_LANES,
    PARTS = BSMM_SMALL_M_GROUP / BSMM_INT8_PART_STEPS,
    CHUNK = 8192, /* CHUNK is the number of bytes of a row that are prefetched at once. */
};

INLINE __m256i load_32(const uint8_t *from) {
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE int64_t unit_of(bsmm_int8_scaling scaling) {
    return scaling == BSMM_INT8_EXPONENT ? BSMM_INT8_EXPONENT_UNIT : BSMM_INT8_MULTIPLY_UNIT;
}

/* Loads scales as fp32. If the exponent and mantissa bits of an e4m3 code are moved to f16's
 * positions, the f16 has 2^-8 times the code's value, also for subnormals. */
INLINE __m256i load_scales(const uint8_t *codes, bsmm_int8_scaling scaling) {
    __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)codes);
    if (scaling != BSMM_INT8_E4M3) return _mm256_slli_epi32(_mm256_cvtepu8_epi32(v), 23);
    __m128i half = _mm_slli_epi16(_mm_cvtepi8_epi16(v), 7);
    return _mm256_castps_si256(_mm256_cvtph_ps(_mm_and_si128(half, _mm_set1_epi16((short)0xbfff))));
}

#endif
