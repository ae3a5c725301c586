/* The direct epilogue computes D from the accumulators of a tile. It loads each vector of
 * accumulators once, applies all steps in registers, and stores the results.
 * The results have the same bits as those of bsmm_cpu_epilogue_scale, bsmm_cpu_epilogue_add and
 * bsmm_cpu_epilogue_store called one after another.
 *
 * The file of an instruction set includes this body after it has defined:
 *   INLINE, TARGET          function attributes
 *   vec, dvec               vectors of LANES floats and of HALF = LANES / 2 doubles
 *   lanes                   selects the lanes of a vec that hold values; lanes_left(n) makes it,
 *                           half_lanes(lanes, half) makes that of one half
 *   load_floats,            load the selected lanes; the other lanes are 0
 *   load_doubles
 *   load_values             loads values of C or bias
 *   vec_set1, vec_with_one_nan, dvec_set1, dvec_fma, dvec_with_one_nan
 *   dvec_of                 converts one half of a vec to double
 *   cut                     truncates doubles and sets a sticky last bit
 *   narrow                  converts two dvecs to a vec
 *   store_f32, store_f16,   store the selected lanes, or return false if only the slow path
 *   store_bf16              rounds the row correctly
 *
 * If all factors of a tile are normal powers of two and neither C nor bias is added, the
 * multiplication is done in fp32. Its result equals that in double, because the product with a
 * power of two is exact unless the result overflows or is subnormal. The row and column factors
 * must be positive in this case; only alpha may be negative. A zero result then has the sign of
 * alpha, as in the computation in double. */
#ifndef BSMM_CPU_EPILOGUE_DIRECT_BODY_H
#define BSMM_CPU_EPILOGUE_DIRECT_BODY_H

#include <string.h>

INLINE vec vec_add(vec a, vec b) {
    return a + b;
}
INLINE vec vec_mul(vec a, vec b) {
    return a * b;
}
INLINE dvec dvec_add(dvec a, dvec b) {
    return a + b;
}
INLINE dvec dvec_mul(dvec a, dvec b) {
    return a * b;
}

/* NO_POWER marks a factor that is no power of two. LEAST and MOST are the smallest and largest
 * exponents of normal fp32 numbers. */
enum { NO_POWER = 1 << 16, LEAST = -126, MOST = 127 };

/* Returns the exponent of `value` if it is a positive power of two, else NO_POWER. */
static int exponent_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    /* A shift by 52 leaves the sign bit and the exponent bits. Inf, NaN and negative values give
     * numbers above 2046. */
    int64_t exponent = (int64_t)(bits >> 52);
    bool is_power = (bits & ((1ull << 52) - 1)) == 0 && exponent > 0 && exponent < 2047;
    return is_power ? (int)exponent - 1023 : NO_POWER;
}

typedef struct exponents {
    int least, most;
} exponents;

/* Returns the least and the largest exponent of the factors. If one of them is no positive power of
 * two, `most` is NO_POWER. The loop has no branch, so compilers vectorize it. */
INLINE exponents exponents_of(const double *factors, int64_t n) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    uint64_t bits, mantissas = 0;
    for (int64_t i = 0; i < n; i++) {
        memcpy(&bits, &factors[i], sizeof bits);
        const int64_t exponent = (int64_t)(bits >> 52);
        mantissas |= bits << 12;
        least = exponent < least ? exponent : least;
        most = exponent > most ? exponent : most;
    }
    if (n <= 0 || mantissas || least <= 0 || most >= 2047)
        return (exponents){NO_POWER, n <= 0 ? -NO_POWER : NO_POWER};
    return (exponents){(int)least - 1023, (int)most - 1023};
}

/* The epilogue multiplies each accumulator of a tile by its row's factor, by its column's factor
 * and by alpha. The enum names the kinds of these numbers, each of which has code of its own.
 * BY_ONE: all column factors are 1, and row factors and alpha are powers of two (alpha may be
 * negative). BY_POWERS: column factors are powers of two as well. In both cases, all products of
 * the factors are normal fp32 numbers. BY_ANY: factors have any other values. */
typedef enum multiplier { BY_ONE, BY_POWERS, BY_ANY } multiplier;

INLINE multiplier multiplier_of(const bsmm_cpu_epilogue_tile *t) {
    const exponents columns = exponents_of(t->column_factors, t->cols);
    exponents rows = exponents_of(t->factors, t->rows);
    int alpha = exponent_of(t->alpha < 0 ? -t->alpha : t->alpha);
    rows.least += alpha;
    rows.most += alpha;
    bool normal = rows.least >= LEAST && rows.most <= MOST && columns.least >= LEAST &&
                  columns.most <= MOST && rows.least + columns.least >= LEAST &&
                  rows.most + columns.most <= MOST;
    if (!normal) return BY_ANY;
    return columns.least == 0 && columns.most == 0 ? BY_ONE : BY_POWERS;
}

/* `part` holds the accumulators of one vector of a row, and the factors by which they are
 * multiplied. */
typedef struct part {
    const float *acc;
    const double *column_factors;
    double factor, alpha;
} part;

INLINE vec times_powers(const part *p, lanes there, bool one) {
    vec factor = vec_set1((float)(p->factor * p->alpha));
    if (!one)
        factor =
            vec_mul(factor, narrow(load_doubles(half_lanes(there, 0), p->column_factors),
                                   load_doubles(half_lanes(there, 1), p->column_factors + HALF)));
    vec acc = vec_add(load_floats(there, p->acc), vec_set1(0));
    /* The addition of +0 has turned an accumulator of -0 into +0. All factors but alpha are
     * positive, so a result of zero gets the sign of alpha. */
    return vec_with_one_nan(vec_mul(acc, factor));
}

INLINE dvec scale_half(const part *p, int half, lanes there, vec acc) {
    const double *factors = p->column_factors + half * HALF;
    dvec factor = dvec_mul(dvec_set1(p->factor), load_doubles(half_lanes(there, half), factors));
    /* The addition of 0 in the FMA turns a product of -0 into +0. The next multiplication, by
     * alpha, therefore gives a zero the sign of alpha. */
    dvec value = dvec_fma(dvec_of(acc, half), factor, dvec_set1(0));
    return dvec_mul(value, dvec_set1(p->alpha));
}

/* Adds LANES values of C or bias, which belong to row `row` and columns from `col` on of the
 * tile. */
INLINE void add_values(const bsmm_cpu_epilogue_added *added, int64_t row, int64_t col, lanes there,
                       dvec half[2]) {
    const int64_t bytes = added->elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint8_t *from = added->from + row * added->pitch + col * bytes;
    const vec values = load_values(from, added->elem, there);
    const dvec factor = dvec_set1(added->factor);
    for (int i = 0; i < 2; i++)
        half[i] = dvec_add(half[i], dvec_mul(factor, dvec_of(values, i)));
}

/* Finishes one vector of accumulators, i.e. LANES adjacent columns of one row of D. Multiplies each
 * accumulator by the row's factor, by its column's factor and by alpha, adds C and the bias in
 * double, and returns the results as fp32.
 *
 * If `sticky` is true, the caller later rounds the fp32 results to 16 bits. The results are then
 * rounded to odd here: truncated, with the last bit set if the truncation was inexact. Both
 * roundings together give the same as one. If neither C nor a bias is added, `t` is NULL. Otherwise
 * `t` is the tile of D, and `row` is the number of the row in the tile. */
INLINE vec times_factors(const part *p, lanes there, bool sticky, const bsmm_cpu_epilogue_tile *t,
                         int64_t row) {
    vec acc = load_floats(there, p->acc);
    dvec half[2] = {scale_half(p, 0, there, acc), scale_half(p, 1, there, acc)};
    for (int i = 0; t && i < t->added_count; i++)
        add_values(&t->added[i], row, p->column_factors - t->column_factors, there, half);
    dvec low = dvec_with_one_nan(half[0]), high = dvec_with_one_nan(half[1]);
    return sticky ? narrow(cut(low), cut(high)) : narrow(low, high);
}

/* Rounds LANES fp32 values to D's format and stores the selected lanes. */
typedef bool store_lanes(vec value, lanes there, void *to);

INLINE bool store_row(part p, int64_t cols, multiplier by, const bsmm_cpu_epilogue_tile *t,
                      int64_t row, store_lanes *store, int64_t bytes, uint8_t *to) {
    for (; cols > 0; cols -= LANES) {
        lanes there = lanes_left(cols);
        vec value = by == BY_ANY ? times_factors(&p, there, bytes == 2, t, row)
                                 : times_powers(&p, there, by == BY_ONE);
        if (!store(value, there, to)) return false;
        p.acc += LANES;
        p.column_factors += LANES;
        to += LANES * bytes;
    }
    return true;
}

INLINE int64_t store_rows(const bsmm_cpu_epilogue_tile *t, multiplier by,
                          const bsmm_cpu_epilogue_tile *adds, store_lanes *store, int64_t bytes) {
    part p = {t->acc, t->column_factors, 0, t->alpha};
    uint8_t *to = t->to;
    for (int64_t r = 0; r < t->rows; r++, p.acc += t->pitch, to += t->to_pitch) {
        p.factor = t->factors[r];
        if (!store_row(p, t->cols, by, adds, r, store, bytes, to)) return r;
    }
    return t->rows;
}

INLINE int64_t store_tile(const bsmm_cpu_epilogue_tile *t, store_lanes *store, int64_t bytes) {
    if (t->added_count) return store_rows(t, BY_ANY, t, store, bytes);
    multiplier by = multiplier_of(t);
    if (by == BY_ONE) return store_rows(t, BY_ONE, NULL, store, bytes);
    if (by == BY_POWERS) return store_rows(t, BY_POWERS, NULL, store, bytes);
    return store_rows(t, BY_ANY, NULL, store, bytes);
}

#endif
