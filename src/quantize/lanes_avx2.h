/* Defines the attributes, constants and vector operations that the AVX2 files of src/quantize
 * share. */
#ifndef BSMM_QUANTIZE_LANES_AVX2_H
#define BSMM_QUANTIZE_LANES_AVX2_H

#include "quantize/strip.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 8, WORDS = 16, CHUNK = 32 };

INLINE __m256i load_bits(const void *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

INLINE void store_bits(void *to, __m256i bits) {
    _mm256_storeu_si256((__m256i *)to, bits);
}

#endif
