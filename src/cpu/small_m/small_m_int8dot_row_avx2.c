/* Multiplies up to 4 rows of A by e2m1 weights that are read as they are stored. The lanes of a
 * vector are elements of K of one row of B, so only the sums need to be transposed.
 * docs/notes/cpu-avx2.md counts the instructions. */
#include "cpu/small_m/small_m_int8dot_avx2.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_int8dot_loops_avx2.h"

enum { UNITS = BSMM_INT8_PART_UNITS(BSMM_INT8_MULTIPLY_UNIT) };

/* Adds neighboring 32-bit lanes of each register, lane 2 * i and lane 2 * i + 1, as pairs of 16-bit
 * numbers. Within each 128 bits, lanes 0 and 1 of the result are the two sums of x, and lanes 2 and
 * 3 are the two sums of y. */
INLINE __m256i add_neighbours(__m256i x, __m256i y) {
    __m256 a = _mm256_castsi256_ps(x), b = _mm256_castsi256_ps(y);
    return _mm256_add_epi16(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd)));
}

/* This struct holds 64 consecutive weights (elements of K) of a row of B as integers: the even ones
 * and the odd ones. */
typedef struct weights {
    __m256i even, odd;
} weights;

INLINE weights decode(const uint8_t *b, __m256i table) {
    const __m256i nibble = _mm256_set1_epi8(0xf);
    __m256i codes = load_32(b), upper = _mm256_srli_epi16(codes, 4);
    return (weights){_mm256_shuffle_epi8(table, _mm256_and_si256(codes, nibble)),
                     _mm256_shuffle_epi8(table, _mm256_and_si256(upper, nibble))};
}

/* Multiplies 64 weights of a row of B by the elements of a row of A with the same indices along K.
 * The result has 16 partial sums of 16 bits. The lower 128 bits belong to the first 32 elements of
 * K, and the upper 128 bits belong to the last 32. The caller adds the partial sums of a unit (16
 * or 32 elements with one scale) later. */
INLINE __m256i multiply_row(const weights *w, const uint8_t *a) {
    return bsmm_int8_dot(w->even, load_32(a), w->odd, load_32(a + BSMM_INT8_PART / 2), false);
}

/* Multiplies 8 rows of B by `rows` rows of A. pair[r][i] receives the partial sums of row r of A
 * with rows 2 * i and 2 * i + 1 of B. */
INLINE void sum_pairs(const uint8_t *b, int64_t pitch, __m256i table, const uint8_t *a,
                      int64_t a_pitch, int rows, __m256i pair[BSMM_INT8_SINGLE][4]) {
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++, b += 2 * pitch) {
        const weights x = decode(b, table), y = decode(b + pitch, table);
#    pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            pair[r][i] = add_neighbours(multiply_row(&x, a + r * a_pitch),
                                        multiply_row(&y, a + r * a_pitch));
            bsmm_int8_keep(&pair[r][i]);
        }
    }
}

/* A unit is a range of K with one scale per row, and the loop computes the integer sums of two
 * units at once. The lower half of `low` has the sums of the first unit for rows 0 to 3 of B, and
 * its upper half has those of the second unit. `high` has the same for rows 4 to 7. Stores the sums
 * of the first unit for all 8 rows in *first, and those of the second unit in *second. */
INLINE void part_units(__m256i low, __m256i high, __m256i *first, __m256i *second) {
    *first = _mm256_permute2x128_si256(low, high, 0x20);
    *second = _mm256_permute2x128_si256(low, high, 0x31);
}

/* Computes the integer sums of products over 64 elements of K, which are two units of 32 elements
 * (ranges of K with one scale). sum[u] receives the sums over unit u, one for each of 8 rows of B.
 * `pair` has their partial sums. */
INLINE void sum_long_units(const __m256i pair[4], __m256i sum[UNITS]) {
    const __m256i ones = _mm256_set1_epi16(1);
    part_units(_mm256_madd_epi16(add_neighbours(pair[0], pair[1]), ones),
               _mm256_madd_epi16(add_neighbours(pair[2], pair[3]), ones), &sum[0], &sum[1]);
}

/* Computes the integer sums of products over 64 elements of K. With scales for each 16 elements,
 * the 64 elements are four units, which are summed separately. sum[u] gets the sums of unit u, one
 * for each of 8 rows of B. The vectors `even` and `odd` have sums of units 0 and 1 in their lower
 * halves, and of units 2 and 3 in their upper halves. */
INLINE void sum_short_units(const __m256i pair[4], __m256i sum[UNITS]) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256 row[4], even[2], odd[2];
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        row[i] = _mm256_castsi256_ps(_mm256_madd_epi16(pair[i], ones));
#    pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        even[i] = _mm256_shuffle_ps(row[2 * i], row[2 * i + 1], 0x88);
        odd[i] = _mm256_shuffle_ps(row[2 * i], row[2 * i + 1], 0xdd);
    }
    part_units(_mm256_castps_si256(even[0]), _mm256_castps_si256(even[1]), &sum[0], &sum[2]);
    part_units(_mm256_castps_si256(odd[0]), _mm256_castps_si256(odd[1]), &sum[1], &sum[3]);
}

/* Multiplies the integer sums of one row of A by the scales and adds them to 8 columns of D. */
INLINE void add_row(const __m256i pair[4], const uint8_t *begins, const __m256i *b_scales,
                    bool by_exponent, float *acc) {
    const int units = by_exponent ? UNITS / 2 : UNITS;
    __m256 total = _mm256_loadu_ps(acc);
    __m256i sum[UNITS];
    if (by_exponent)
        sum_long_units(pair, sum);
    else
        sum_short_units(pair, sum);
#    pragma GCC unroll 4
    for (int u = 0; u < units; u++) {
        __m256i a_scale = bsmm_int8_broadcast(begins + 4 * (units + u));
        total = bsmm_int8_add_scaled(_mm256_add_epi32(bsmm_int8_broadcast(begins + 4 * u), sum[u]),
                                     bsmm_int8_scale(a_scale, b_scales[u], by_exponent), total);
    }
    _mm256_storeu_ps(acc, total);
}

INLINE void add_part(const uint8_t *a, const uint8_t *b, int64_t pitch, const uint8_t *codes,
                     __m256i table, int rows, bsmm_int8_scaling scaling, float *acc) {
    const int64_t unit = unit_of(scaling), a_pitch = BSMM_INT8_ROW_BYTES(unit);
    __m256i pair[BSMM_INT8_SINGLE][4], b_scales[UNITS];
    sum_pairs(b, pitch, table, a, a_pitch, rows, pair);
#    pragma GCC unroll 4
    for (int64_t u = 0; u < BSMM_INT8_PART_UNITS(unit); u++)
        b_scales[u] = load_scales(codes + u * COLUMNS, scaling);
#    pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
        add_row(pair[r], a + r * a_pitch + BSMM_INT8_PART, b_scales, scaling == BSMM_INT8_EXPONENT,
                acc + r * BSMM_SMALL_M_COLUMNS);
}

INLINE uint32_t multiply(const bsmm_small_m_span *s, int rows, bsmm_int8_scaling scaling) {
    const bsmm_int8_tables *t = s->context;
    const __m256i table = _mm256_broadcastsi128_si256(load_16((const uint8_t *)t->integers));
    const int64_t unit = unit_of(scaling), units = BSMM_INT8_PART_UNITS(unit);
    const int64_t a_bytes = BSMM_INT8_PART_BYTES(rows, unit);
    const int64_t b_bytes = BSMM_INT8_PART / 2, parts = s->steps / BSMM_INT8_PART_STEPS;
    bsmm_small_m_later later = {0};
    for (int64_t i = 0; i < parts; i += PARTS) {
        if (i % (CHUNK / b_bytes) == 0)
            later = bsmm_small_m_follow(s, i * b_bytes, CHUNK, parts * b_bytes);
        for (int64_t half = 0; half < COLUMNS; half += LANES) {
            const uint8_t *b = s->b + half * s->pitch;
            bsmm_small_m_ask(&later, LANES);
            for (int64_t j = i; j < i + PARTS; j++)
                add_part(s->a + j * a_bytes, b + j * b_bytes, s->pitch,
                         s->codes + j * units * COLUMNS + half, table, rows, scaling,
                         s->acc + half);
        }
    }
    return 0;
}

#    define VARIANT(rows, scaling)                                                                 \
        TARGET static uint32_t multiply_##rows##_##scaling(const bsmm_small_m_span *s) {           \
            return multiply(s, rows, BSMM_INT8_##scaling);                                         \
        }
#    define VARIANTS(rows)                                                                         \
        VARIANT(rows, EXPONENT)                                                                    \
        VARIANT(rows, E8M0)                                                                        \
        VARIANT(rows, E4M3)
#    define ROW(rows)                                                                              \
        { multiply_##rows##_EXPONENT, multiply_##rows##_E8M0, multiply_##rows##_E4M3 }

VARIANTS(1)
VARIANTS(2)
VARIANTS(3)
VARIANTS(4)

bsmm_int8_loop *bsmm_int8_row_loop(int64_t rows, bsmm_int8_scaling scaling) {
    static bsmm_int8_loop *const loops[BSMM_INT8_SINGLE][BSMM_INT8_SCALINGS] = {ROW(1), ROW(2),
                                                                                ROW(3), ROW(4)};
    return loops[rows - 1][scaling];
}

#else

typedef int bsmm_small_m_int8_row_needs_x86_64;

#endif
