#include "checked.h"
#include "core/describe.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void checked_make(checked_product *p, bsmm_matrix a, bsmm_matrix b, bsmm_matrix d, fill how,
                  rng *r) {
    *p = (checked_product){.alpha = 1};
    test_matrix_make(&p->a, a, how, r);
    test_matrix_make(&p->b, b, how, r);
    test_matrix_make(&p->d, d, FILL_SPECIAL, r);
    p->desc = (bsmm_matmul_desc){.struct_size = sizeof p->desc,
                                 .a = &p->a.m,
                                 .b = &p->b.m,
                                 .d = &p->d.m,
                                 .alpha = &p->alpha};
}

void checked_add_c_and_bias(checked_product *p, const char *format, rng *r) {
    test_matrix_make(&p->c, describe(format_named(format), p->d.m.rows, p->d.m.cols), FILL_ORDINARY,
                     r);
    p->alpha = -1.5f;
    p->beta = 0.75f;
    p->bias = guarded_alloc((uint64_t)p->d.m.cols * sizeof(float));
    for (int64_t i = 0; i < p->d.m.cols; i++)
        p->bias[i] = (float)rng_below(r, 1000) / 250 - 2;
    p->desc.c = &p->c.m;
    p->desc.beta = &p->beta;
    p->desc.bias = p->bias;
    p->desc.bias_elem = BSMM_ELEM_F32;
}

void checked_free(checked_product *p) {
    if (p->bias) guarded_free(p->bias, (uint64_t)p->d.m.cols * sizeof(float));
    test_matrix_free(&p->a);
    test_matrix_free(&p->b);
    test_matrix_free(&p->c);
    test_matrix_free(&p->d);
}

typedef struct expected {
    /* `value` is the sum of the terms of a result, and `magnitude` is the sum of their
     * magnitudes. */
    double value, magnitude;
} expected;

/* COLUMNS is the number of results that sum_columns computes at once. Compilers turn arithmetic on
 * these vector types into instructions of the processor even if they optimize little, as in builds
 * with sanitizers. */
enum { COLUMNS = 8 };
typedef double lanes __attribute__((vector_size(COLUMNS * sizeof(double))));
typedef int64_t lane_bits __attribute__((vector_size(COLUMNS * sizeof(double))));

/* Computes the sums of COLUMNS adjacent results of one row of D. Each sum adds its terms in
 * ascending order of K. The COLUMNS rows of B that belong to these results are interleaved: b[q *
 * COLUMNS + j] is the element of row j at index q along K. */
static void sum_columns(const double *a, const double *b, int64_t k, expected to[COLUMNS]) {
    lanes value = {0}, magnitude = {0};
    for (int64_t q = 0; q < k; q++) {
        lanes term;
        memcpy(&term, b + q * COLUMNS, sizeof term);
        term *= a[q];
        value += term;
        /* Clearing the sign bits of the vector `term` gives the magnitudes of its products. */
        magnitude += (lanes)((lane_bits)term & INT64_MAX);
    }
    for (int j = 0; j < COLUMNS; j++)
        to[j] = (expected){value[j], magnitude[j]};
}

/* Computes the expected element (i, j) of D from the sum of its products: applies alpha, beta, C
 * and bias. */
static expected finish(const checked_product *p, expected e, int64_t i, int64_t j) {
    e.value *= (double)p->alpha;
    e.magnitude *= fabs((double)p->alpha);
    if (p->desc.c) e.value += (double)p->beta * test_matrix_value(&p->c, i, j);
    if (p->bias) e.value += (double)p->bias[j];
    return e;
}

/* Returns the expected elements of D, row after row. The caller frees them. */
static expected *sum_all(const checked_product *p) {
    double *a = test_matrix_values(&p->a), *b = test_matrix_values(&p->b);
    int64_t rows = p->d.m.rows, cols = p->d.m.cols, k = p->a.m.cols;
    expected *all = malloc(sizeof *all * (size_t)(rows * cols + 1));
    double *some = calloc((size_t)k * COLUMNS + 1, sizeof *some);
    assert_true(all && some);
    for (int64_t first = 0; first < cols; first += COLUMNS) {
        const int64_t count = cols - first < COLUMNS ? cols - first : COLUMNS;
        for (int64_t j = 0; j < count; j++)
            for (int64_t q = 0; q < k; q++)
                some[q * COLUMNS + j] = b[(first + j) * k + q];
        for (int64_t i = 0; i < rows; i++) {
            expected sums[COLUMNS];
            sum_columns(a + i * k, some, k, sums);
            for (int64_t j = 0; j < count; j++)
                all[i * cols + first + j] = finish(p, sums[j], i, first + j);
        }
    }
    free(a);
    free(b);
    free(some);
    return all;
}

/* Rounds a value to D's format. Formats of 8 bits saturate. */
static double rounded(uint32_t elem, double value) {
    if (elem == BSMM_ELEM_F32) return (double)(float)value;
    bool saturate = bsmm_elem_row(elem)->bits == 8;
    return bsmm_elem_decode(elem, bsmm_elem_encode(elem, value, saturate));
}

/* Returns true if a result is right. It is right if it lies between the lower limit `want` -
 * `slack` and the upper limit `want` + `slack`. The limits are first rounded to D's format, because
 * the result was rounded to it too; formats of 8 bits saturate. If `want` is NaN, the result must
 * be NaN. */
static bool close_enough(uint32_t elem, double got, double want, double slack) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    return rounded(elem, want - slack) <= got && got <= rounded(elem, want + slack);
}

/* Checks all elements of D. `bound` is the kernel's error bound as a multiple of sum |a||b|. The
 * tolerance is this bound plus the rounding errors of the expected sum, which is computed in
 * double. */
static void check(const checked_product *p, const expected *all, const char *kernel, double bound) {
    double *values = test_matrix_values(&p->d);
    double d_global = p->d.m.global_scale ? (double)*p->d.m.global_scale : 1;
    for (int64_t i = 0; i < p->d.m.rows; i++)
        for (int64_t j = 0; j < p->d.m.cols; j++) {
            expected e = all[i * p->d.m.cols + j];
            double got = values[i * p->d.m.cols + j] / d_global;
            double slack = (bound + (double)p->a.m.cols * 0x1p-53) * e.magnitude;
            if (isnan(e.value) || isinf(e.magnitude)) slack = 0;
            if (!close_enough(p->d.m.format.elem, got, e.value / d_global, slack / d_global))
                fail_msg("%s: %s x %s -> %s, %lld x %lld x %lld, at (%lld, %lld): got %a, want %a, "
                         "slack %a",
                         kernel, bsmm_format_name(p->a.m.format), bsmm_format_name(p->b.m.format),
                         bsmm_format_name(p->d.m.format), (long long)p->d.m.rows,
                         (long long)p->d.m.cols, (long long)p->a.m.cols, (long long)i, (long long)j,
                         got, e.value, slack);
        }
    free(values);
}

/* The expected values are computed only once for all kernels, because this is slow. */
void checked_run(checked_product *p) {
    expected *all = sum_all(p);
    int ran = 0;
    for (test_walk w = test_walk_begin(&p->desc); test_walk_next(&w); ran++) {
        if (p->d.data_bytes) memset(p->d.m.data, 0xa5, p->d.data_bytes);
        if (test_multiply(&p->desc) != BSMM_OK)
            fail_msg("%s: %s", w.e.kernel, bsmm_error_message());
        check(p, all, w.e.kernel, w.e.bound);
    }
    free(all);
    assert_true(ran >= test_walk_least(1));
}
