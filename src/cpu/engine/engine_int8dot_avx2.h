/* This file computes dot products of small integers by AVX2's vpmaddubsw, for the AVX2 int8
 * kernels.
 *
 * vpmaddubsw multiplies unsigned bytes (of B) by signed bytes (of A) and adds pairs of products
 * with saturation to 16 bits. Saturation never occurs here. B's bytes are at most 24 (from e2m1) or
 * 120 (from e2m3), and A's bytes are at most 12 or 60 in magnitude, so the sum of a pair is at most
 * 14400 = 2 * 120 * 60.
 *
 * A group is 4 consecutive bytes of K of one row, and a unit (a range of K with one scale per row)
 * has at most 8 groups. If at most one operand is e2m3, the sum of a unit fits 16 bits: it is at
 * most 23040 = 8 * 2 * 1440. With two e2m3 operands, the sum of 2 groups already reaches 28800. The
 * parameter `wide` is then true, and vpmaddwd converts the sums to 32 bits after every 2 groups. */
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

/* Prevents the compiler from moving integer additions across this point. Compilers otherwise
 * reorder the additions, and the reordered code needs more registers than the processor has. */
BSMM_INT8_INLINE void bsmm_int8_keep(__m256i *sum) {
    __asm__("" : "+x"(*sum));
}

/* Multiplies two groups (4 consecutive bytes along K each) of one row of A by the same two groups
 * of 8 rows of B. Each 32-bit lane is for one row of B. `even` has the first group of these rows,
 * and `odd` the second one. x and y have the two groups of A, repeated in all lanes. Returns the
 * sums of the products for each row of B: one 32-bit sum if `wide` is true, else two 16-bit sums in
 * the halves of the lane, which the caller adds later. */
BSMM_INT8_INLINE __m256i bsmm_int8_dot(__m256i even, __m256i x, __m256i odd, __m256i y, bool wide) {
    __m256i part = _mm256_add_epi16(_mm256_maddubs_epi16(even, x), _mm256_maddubs_epi16(odd, y));
    return wide ? _mm256_madd_epi16(part, _mm256_set1_epi16(1)) : part;
}

BSMM_INT8_INLINE void bsmm_int8_add(__m256i *sum, __m256i part, bool wide, bool first) {
    *sum = first ? part : wide ? _mm256_add_epi32(*sum, part) : _mm256_add_epi16(*sum, part);
    bsmm_int8_keep(sum);
}

/* Returns the product of A's scale and B's scale. If by_exponent is true, the scales are powers of
 * two, given as integers that hold their exponents at the position of fp32's exponent bits. The sum
 * of two such integers is the fp32 product. */
BSMM_INT8_INLINE __m256 bsmm_int8_scale(__m256i a_scale, __m256i b_scale, bool by_exponent) {
    if (by_exponent) return _mm256_castsi256_ps(_mm256_add_epi32(a_scale, b_scale));
    return _mm256_mul_ps(_mm256_castsi256_ps(a_scale), _mm256_castsi256_ps(b_scale));
}

BSMM_INT8_INLINE __m256i bsmm_int8_whole(__m256i sum, bool wide) {
    return wide ? sum : _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}

/* A unit is a range of K with one scale per row. Converts the integer sums of a unit to fp32,
 * multiplies them by `scale`, i.e. by the products of A's and B's scales, and adds them to the
 * accumulators of 8 columns of D. */
BSMM_INT8_INLINE __m256 bsmm_int8_add_scaled(__m256i sum, __m256 scale, __m256 acc) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, acc);
}

enum { BSMM_INT8_MR = 4, BSMM_INT8_NR = 16, BSMM_INT8_VECTORS = 2 };

/* `bsmm_int8_strides` holds distances in bytes inside a packed unit of A. A unit is 16 or 32
 * elements of K of some rows of A, with one scale for each row. A row of the unit consists of
 * quads, i.e. of 4 consecutive elements of K (4 bytes). `row` is the distance from a quad to the
 * same quad of the next row. `odd` is the distance from quad 0 to quad 1 of a row, and `pair` is
 * the distance from quad 0 to quad 2. For each row, the unit also has an fp32 scale and an integer
 * to which the products of the row are added. `scale` is the distance from this integer to the
 * scale. */
typedef struct bsmm_int8_strides {
    int64_t row, odd, pair, scale;
} bsmm_int8_strides;

/* Computes the integer sums of a register tile over one unit of K (`unit` elements, with one scale
 * per row). A dot product instruction multiplies groups of 4 elements of K. Each iteration
 * multiplies two such groups of B, `even` and `odd`, by those of each row of A. */
BSMM_INT8_INLINE void bsmm_int8_sum_unit(const uint8_t *a, const bsmm_int8_strides *p, int rows,
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

/* Multiplies one unit (a range of K with one scale per row) of a register tile and adds the
 * results, times the scales, to the tile's accumulators in memory (`c`). `begins` holds for each
 * row of A an integer, to which the row's sums of products are added, and the row's scale. The code
 * loads both before it stores the row's accumulators. The compiler must assume that a store to `c`
 * may change the memory at `begins`, so with another order it would load both again after each
 * store. */
BSMM_INT8_INLINE void bsmm_int8_add_unit(const uint8_t *a, const uint8_t *begins,
                                         const bsmm_int8_strides *p, int rows, const uint8_t *b,
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
            total[v] = bsmm_int8_add_scaled(whole, scale, _mm256_loadu_ps(c + 8 * v));
        }
        for (int v = 0; v < BSMM_INT8_VECTORS; v++)
            _mm256_storeu_ps(c + 8 * v, total[v]);
    }
}

#endif
