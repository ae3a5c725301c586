/* Multiplies a tile of few rows of A by a packed panel of weights, by FMAs in the order of K. A
 * panel is packed only if elements are NaN, or if scales are NaN, negative or too far apart. Such
 * panels are rare, so this loop is simple and keeps only one row's accumulators in a register. */
#include "cpu/pack/pack_f32fma.h"
#include "cpu/small_m/small_m_f32fma.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx2,fma")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_SMALL_M_LANES, HALF = LANES / 2, SEGMENT = BSMM_F32FMA_SEGMENT_UNIT };

/* A packed unit has `unit` elements of K. Adds the products of one packed unit to the accumulators
 * of one row of A and 8 rows of B. `a` points to the row's elements, which are `width` floats
 * apart. `b` points to the elements of half of a panel, which has 16 rows of B. */
INLINE __m256 add_unit(__m256 sum, const float *a, const float *b, int64_t width, int64_t unit) {
    for (int64_t k = 0; k < unit; k++)
        sum = _mm256_fmadd_ps(_mm256_set1_ps(a[k * width]), _mm256_loadu_ps(b + k * LANES), sum);
    return sum;
}

INLINE void multiply_unit(const float *a, const float *b, int64_t width, bool segmented,
                          float *acc) {
    const int64_t unit = segmented ? SEGMENT : BSMM_F32FMA_FOLDED_UNIT;
    for (int64_t r = 0; r < width; r++)
        for (int64_t half = 0; half < LANES; half += HALF) {
            float *at = acc + r * BSMM_SMALL_M_COLUMNS + half;
            __m256 before = _mm256_loadu_ps(at);
            __m256 sum = segmented ? _mm256_setzero_ps() : before;
            sum = add_unit(sum, a + r, b + half, width, unit);
            if (segmented)
                sum = _mm256_fmadd_ps(_mm256_mul_ps(sum, _mm256_set1_ps(a[unit * width + r])),
                                      _mm256_loadu_ps(b + unit * LANES + half), before);
            _mm256_storeu_ps(at, sum);
        }
}

INLINE void multiply(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                     bool segmented, float *acc) {
    const int64_t unit = segmented ? SEGMENT : BSMM_F32FMA_FOLDED_UNIT;
    for (int64_t u = 0; u < units; u++) {
        multiply_unit((const float *)(const void *)a, (const float *)(const void *)b, width,
                      segmented, acc);
        a += BSMM_F32FMA_UNIT_BYTES(width, unit);
        b += BSMM_F32FMA_UNIT_BYTES(LANES, unit);
    }
}

TARGET static void multiply_folded(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                                   float *acc) {
    multiply(a, b, width, units, false, acc);
}

TARGET static void multiply_segmented(const uint8_t *a, const uint8_t *b, int64_t width,
                                      int64_t units, float *acc) {
    multiply(a, b, width, units, true, acc);
}

void (*const bsmm_small_m_f32fma_packed[2])(const uint8_t *a, const uint8_t *b, int64_t width,
                                            int64_t units,
                                            float *acc) = {multiply_folded, multiply_segmented};

#else

typedef int bsmm_small_m_f32fma_packed_needs_x86_64;

#endif
