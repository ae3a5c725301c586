/* Multiplies a tile of few rows of A by a packed panel of weights. A panel is packed only if
 * elements are Inf or NaN, or if scales are NaN, negative or too far apart. Such panels are rare,
 * so this loop is simple and keeps only one row's accumulators in a register. */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_bf16dot.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_SMALL_M_LANES };

/* Adds the products of one pair of elements of K. A has pairs of bf16, or fp32 values with the odd
 * elements of all rows before the even ones. */
INLINE __m512 add_pair(__m512 acc, const uint8_t *a, __m512i b, int64_t width, int64_t r,
                       bool by_fma) {
    const float *wide = (const float *)(const void *)a;
    if (!by_fma)
        return _mm512_dpbf16_ps(
            acc, (__m512bh)_mm512_set1_epi32(((const int32_t *)(const void *)a)[r]), (__m512bh)b);
    __m512 odd = _mm512_castsi512_ps(_mm512_maskz_mov_epi16(0xaaaaaaaa, b));
    __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(b, 16));
    acc = _mm512_fmadd_ps(_mm512_set1_ps(wide[r]), odd, acc);
    return _mm512_fmadd_ps(_mm512_set1_ps(wide[width + r]), even, acc);
}

INLINE __m512 add_pairs(__m512 acc, const uint8_t *a, const uint8_t *b, int64_t width, int64_t r,
                        int64_t unit, bool by_fma) {
    for (int64_t i = 0; i < unit / 2; i++)
        acc = add_pair(acc, a + i * width * (by_fma ? 8 : 4), _mm512_loadu_si512(b + i * LANES * 4),
                       width, r, by_fma);
    return acc;
}

INLINE void multiply_folded(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                            float *acc, bool by_fma) {
    const int64_t unit = BSMM_BF16_FOLDED_UNIT, b_bytes = BSMM_BF16_UNIT_BYTES(LANES, unit);
    const int64_t a_bytes =
        by_fma ? BSMM_BF16_WIDE_UNIT_BYTES(width, unit) : BSMM_BF16_UNIT_BYTES(width, unit);
    for (int64_t r = 0; r < width; r++, acc += BSMM_SMALL_M_COLUMNS) {
        __m512 sum = _mm512_loadu_ps(acc);
        for (int64_t u = 0; u < units; u++)
            sum = add_pairs(sum, a + u * a_bytes, b + u * b_bytes, width, r, unit, by_fma);
        _mm512_storeu_ps(acc, sum);
    }
}

INLINE void multiply_segments(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                              float *acc, bool by_fma) {
    const int64_t unit = BSMM_BF16_SEGMENT_UNIT, pairs_bytes = width * unit * (by_fma ? 4 : 2);
    for (int64_t u = 0; u < units; u++) {
        const float *a_scales = (const float *)(const void *)(a + pairs_bytes);
        __m512 column = _mm512_loadu_ps(b + LANES * unit * 2);
        for (int64_t r = 0; r < width; r++) {
            float *at = acc + r * BSMM_SMALL_M_COLUMNS;
            __m512 sum = add_pairs(_mm512_setzero_ps(), a, b, width, r, unit, by_fma);
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a_scales[r]), column);
            _mm512_storeu_ps(at, _mm512_fmadd_ps(sum, scale, _mm512_loadu_ps(at)));
        }
        a += by_fma ? BSMM_BF16_WIDE_UNIT_BYTES(width, unit) : BSMM_BF16_UNIT_BYTES(width, unit);
        b += BSMM_BF16_UNIT_BYTES(LANES, unit);
    }
}

TARGET static void dots_folded(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                               float *acc) {
    multiply_folded(a, b, width, units, acc, false);
}

TARGET static void dots_segmented(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                                  float *acc) {
    multiply_segments(a, b, width, units, acc, false);
}

TARGET static void fmas_folded(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                               float *acc) {
    multiply_folded(a, b, width, units, acc, true);
}

TARGET static void fmas_segmented(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                                  float *acc) {
    multiply_segments(a, b, width, units, acc, true);
}

void (*const bsmm_small_m_bf16_packed[2][2])(const uint8_t *a, const uint8_t *b, int64_t width,
                                             int64_t units, float *acc) = {
    {dots_folded, dots_segmented},
    {fmas_folded, fmas_segmented},
};

#else

typedef int bsmm_small_m_bf16_packed_needs_x86_64;

#endif
