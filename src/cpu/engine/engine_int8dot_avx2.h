/* The AVX2 int8 kernels share these functions, which sum small integers by AVX2's multiply-add of
 * bytes.
 *
 * vpmaddubsw adds two products of an unsigned and a signed byte and saturates at 16 bits. The
 * kernels' bytes never saturate it: B's are at most 24 (e2m1) or 120 (e2m3), A's 12 or 60 in
 * magnitude, so that two products are at most 2 * 120 * 60 = 14400.
 *
 * A group is 4 consecutive bytes of K of one row. Sums stay in 16 bits as long as they are at most
 * 32767. That holds over a unit's 8 groups, except if both operands are e2m3: one e2m1 and one e2m3
 * operand give at most 8 * 2 * 1440 = 23040. Two e2m3 operands reach 28800 after 2 groups. Such
 * sums are called `wide` here, and vpmaddwd widens them to 32 bits every two groups. */
#ifndef BSMM_CPU_ENGINE_INT8DOT_AVX2_H
#define BSMM_CPU_ENGINE_INT8DOT_AVX2_H

#include "cpu/pack/pack_int8dot.h"

#include <immintrin.h>

#define BSMM_INT8_INLINE static inline __attribute__((always_inline, target("avx2,fma")))

BSMM_INT8_INLINE __m256i bsmm_int8_load(const uint8_t *from) {
    return _mm256_load_si256((const __m256i *)(const void *)from);
}

BSMM_INT8_INLINE __m256i bsmm_int8_broadcast(const uint8_t *word) {
    return _mm256_set1_epi32(*(const int32_t *)(const void *)word);
}

/* Compilers reorder integer additions, and the reordered code needs more registers than there are.
 * They cannot move additions across this statement. */
BSMM_INT8_INLINE void bsmm_int8_keep(__m256i *sum) {
    __asm__("" : "+x"(*sum));
}

/* Multiplies two groups (`even` and `odd`) of 8 columns of B by the same two groups of a row of
 * A. */
BSMM_INT8_INLINE __m256i bsmm_int8_dot(__m256i even, __m256i x, __m256i odd, __m256i y, bool wide) {
    __m256i part = _mm256_add_epi16(_mm256_maddubs_epi16(even, x), _mm256_maddubs_epi16(odd, y));
    return wide ? _mm256_madd_epi16(part, _mm256_set1_epi16(1)) : part;
}

BSMM_INT8_INLINE void bsmm_int8_add(__m256i *sum, __m256i part, bool wide, bool first) {
    *sum = first ? part : wide ? _mm256_add_epi32(*sum, part) : _mm256_add_epi16(*sum, part);
    bsmm_int8_keep(sum);
}

/* Returns the product of A's scale and B's. In the exponent form, scales are shifted exponents, and
 * adding them multiplies. */
BSMM_INT8_INLINE __m256 bsmm_int8_scale(__m256i a_scale, __m256i b_scale, bool by_exponent) {
    if (by_exponent) return _mm256_castsi256_ps(_mm256_add_epi32(a_scale, b_scale));
    return _mm256_mul_ps(_mm256_castsi256_ps(a_scale), _mm256_castsi256_ps(b_scale));
}

BSMM_INT8_INLINE __m256i bsmm_int8_whole(__m256i sum, bool wide) {
    return wide ? sum : _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}

/* Adds a unit's sum, times its scales, to 8 columns of D. */
BSMM_INT8_INLINE __m256 bsmm_int8_finish(__m256i sum, __m256 scale, __m256 acc) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, acc);
}

/* ---- tiles: up to 4 rows of A times 16 columns ---- */

enum { BSMM_INT8_MR = 4, BSMM_INT8_NR = 16, BSMM_INT8_VECTORS = 2 };

/* Describes the layout of a unit of A by offsets in bytes: from row to row, from an even group to
 * the odd group after it, from an even group to the next even group, and from a row's initial sum
 * to its scale. */
typedef struct bsmm_int8_places {
    int64_t row, odd, pair, scale;
} bsmm_int8_places;

/* Sums the products of one unit, two groups at a time. */
BSMM_INT8_INLINE void bsmm_int8_sum_unit(const uint8_t *a, const bsmm_int8_places *p, int rows,
                                         const uint8_t *b, int64_t unit, bool wide,
                                         __m256i sum[BSMM_INT8_MR][BSMM_INT8_VECTORS]) {
#pragma GCC unroll 4
    for (int64_t g = 0; g < unit / 4; g += 2, a += p->pair, b += 2 * BSMM_INT8_NR * 4) {
        __m256i even[BSMM_INT8_VECTORS], odd[BSMM_INT8_VECTORS];
        for (int v = 0; v < BSMM_INT8_VECTORS; v++) {
            even[v] = bsmm_int8_load(b + 32 * v);
            odd[v] = bsmm_int8_load(b + BSMM_INT8_NR * 4 + 32 * v);
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            __m256i x = bsmm_int8_broadcast(a + r * p->row);
            __m256i y = bsmm_int8_broadcast(a + r * p->row + p->odd);
            for (int v = 0; v < BSMM_INT8_VECTORS; v++)
                bsmm_int8_add(&sum[r][v], bsmm_int8_dot(even[v], x, odd[v], y, wide), wide, g == 0);
        }
    }
}

/* Adds a unit's sums to D's columns. A row's initial sums and scales are loaded before its results
 * are stored: the compiler must assume that a store changes them, and would load them again. */
BSMM_INT8_INLINE void bsmm_int8_add_unit(const uint8_t *a, const uint8_t *begins,
                                         const bsmm_int8_places *p, int rows, const uint8_t *b,
                                         int64_t unit, bool wide, bool by_exponent, float *c,
                                         int64_t pitch) {
    __m256i sum[BSMM_INT8_MR][BSMM_INT8_VECTORS], b_scale[BSMM_INT8_VECTORS];
    bsmm_int8_sum_unit(a, p, rows, b, unit, wide, sum);
    for (int v = 0; v < BSMM_INT8_VECTORS; v++) {
        b_scale[v] = bsmm_int8_load(b + BSMM_INT8_NR * unit + 32 * v);
        bsmm_int8_keep(&b_scale[v]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++, begins += p->row, c += pitch) {
        __m256i begin = bsmm_int8_broadcast(begins);
        __m256i a_scale = bsmm_int8_broadcast(begins + p->scale);
        __m256 total[BSMM_INT8_VECTORS];
        for (int v = 0; v < BSMM_INT8_VECTORS; v++) {
            __m256i whole = _mm256_add_epi32(begin, bsmm_int8_whole(sum[r][v], wide));
            __m256 scale = bsmm_int8_scale(a_scale, b_scale[v], by_exponent);
            total[v] = bsmm_int8_finish(whole, scale, _mm256_loadu_ps(c + 8 * v));
        }
        for (int v = 0; v < BSMM_INT8_VECTORS; v++)
            _mm256_storeu_ps(c + 8 * v, total[v]);
    }
}

#endif
