/* Tests products whose intermediate sums are outside the range of fp32, although the results are
 * inside it. Every kernel that accepts such a product must keep its own error bound. */
#include "base/scalar.h"
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 20, K = 512 };

/* Describes an operand. All its values have the same magnitude, and all its scales have the same
 * magnitude. */
typedef struct side {
    bsmm_format format;
    double value;
    float scale;
    /* `alternates` is true if the signs of the scales alternate every 128 elements along K. */
    bool alternates;
} side;

static void put_values(const test_matrix *t, double value, rng *r) {
    uint32_t elem = t->m.format.elem;
    for (uint64_t i = 0; i < (uint64_t)(t->m.rows * K); i++)
        bsmm_elem_store(
            elem, t->m.data, i,
            bsmm_elem_encode(elem, value * (1 + (double)rng_below(r, 1000) * 1e-3), true));
}

static void put_scales(const test_matrix *t, const side *s) {
    const bsmm_format *f = &s->format;
    uint64_t along = K / (f->scale ? f->block_cols : K);
    uint64_t lines = f->scale ? t->scale_bytes / bsmm_scale_row_of(f->scale)->bytes / along : 0;
    for (uint64_t i = 0; i < lines * along; i++) {
        bool minus = s->alternates && i % along * f->block_cols / 128 % 2;
        float scale = minus ? -s->scale : s->scale;
        uint32_t code =
            f->scale == BSMM_SCALE_E8M0 ? (uint32_t)(127 + ilogbf(scale)) : bsmm_float_bits(scale);
        bsmm_scale_store_code(f->scale, t->m.scales, i, code);
    }
}

static void make(test_matrix *t, const side *s, int64_t rows, rng *r) {
    test_matrix_make(t, describe(s->format, rows, K), FILL_ORDINARY, r);
    put_values(t, s->value, r);
    put_scales(t, s);
}

/* Holds the expected result of one element of D. A term is alpha times an element of A times an
 * element of B. `sum` is the sum of all terms over K, and `magnitude` is the sum of their
 * magnitudes, by which the error bound is multiplied. */
typedef struct expected {
    double sum, magnitude;
} expected;

static expected *sum_terms(const test_matrix *a, const test_matrix *b, double alpha) {
    double *left = test_matrix_values(a), *right = test_matrix_values(b);
    expected *sums = calloc((size_t)(a->m.rows * N), sizeof *sums);
    for (int64_t i = 0; i < a->m.rows * N; i++)
        for (int64_t k = 0; k < K; k++) {
            double term = alpha * left[i / N * K + k] * right[i % N * K + k];
            sums[i].sum += term;
            sums[i].magnitude += fabs(term);
        }
    free(left);
    free(right);
    return sums;
}

static void expect_close(const test_matrix *d, const expected *want, const bsmm_explanation *e) {
    double *values = test_matrix_values(d);
    for (int64_t i = 0; i < d->m.rows * N; i++) {
        double got = values[i], sum = want[i].sum;
        double slack = e->bound * want[i].magnitude + 0x1p-24 * fabs(sum);
        bool same = isnan(sum) ? isnan(got) : got == sum;
        if (!(isfinite(sum) ? fabs(got - sum) <= slack : same))
            fail_msg("%s, %lld rows, at (%lld, %lld): got %a, want %a, slack %a", e->kernel,
                     (long long)d->m.rows, (long long)i / N, (long long)i % N, got, sum, slack);
    }
    free(values);
}

static void check_product(const test_matrix *a, const test_matrix *b, float alpha, rng *r) {
    test_matrix d;
    test_matrix_make(&d, describe(format_named("f32"), a->m.rows, N), FILL_SPECIAL, r);
    expected *want = sum_terms(a, b, (double)alpha);
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a->m, .b = &b->m, .d = &d.m, .alpha = &alpha};
    for (test_walk w = test_walk_begin(&desc); test_walk_next(&w);) {
        if (test_multiply(&desc) != BSMM_OK) fail_msg("%s: %s", w.e.kernel, bsmm_error_message());
        expect_close(&d, want, &w.e);
    }
    free(want);
    test_matrix_free(&d);
}

static void check_rows(const side *a_side, const side *b_side, float alpha, int64_t rows) {
    rng r = {21};
    test_matrix a, b;
    make(&a, a_side, rows, &r);
    make(&b, b_side, N, &r);
    check_product(&a, &b, alpha, &r);
    test_matrix_free(&a);
    test_matrix_free(&b);
}

static void check(side a, side b, float alpha) {
    check_rows(&a, &b, alpha, 3);
    check_rows(&a, &b, alpha, 35);
}

static void test_alpha_brings_back_sums_beyond_fp32(void **state) {
    (void)state;
    bsmm_format rows = format_named("fp8_group128"), blocks = format_named("fp8_block128");
    check((side){rows, 100, 0x1p60f, false}, (side){blocks, 100, 0x1p60f, false}, 0x1p-100f);
    check((side){rows, 100, 0x1p60f, false}, (side){rows, 100, 0x1p60f, false}, 0x1p-100f);
    bsmm_format f32 = format_named("f32");
    check((side){f32, 0x1p60, 1, false}, (side){f32, 0x1p60, 1, false}, 0x1p-100f);
}

/* Checks a product whose result comes from the small values of A and B, because their large values
 * are multiplied by zeros. A kernel may divide each row by a power of two near its largest value.
 * The small values may then become subnormal, but the kernel must not lose them. */
static void check_factors(float a_large, float a_small, float b_large, float b_small, float alpha) {
    rng r = {23};
    test_matrix a, b, d;
    bsmm_format f32 = format_named("f32");
    test_matrix_make(&a, describe(f32, 1, 3), FILL_ORDINARY, &r);
    test_matrix_make(&b, describe(f32, 1, 3), FILL_ORDINARY, &r);
    test_matrix_make(&d, describe(f32, 1, 1), FILL_ORDINARY, &r);
    memcpy(a.m.data, (float[]){a_large, 0, a_small}, a.data_bytes);
    memcpy(b.m.data, (float[]){0, b_large, b_small}, b.data_bytes);
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a.m, .b = &b.m, .d = &d.m, .alpha = &alpha};
    double want = (double)alpha * (double)a_small * (double)b_small;
    for (test_walk w = test_walk_begin(&desc); test_walk_next(&w);) {
        if (test_multiply(&desc) != BSMM_OK) fail_msg("%s: %s", w.e.kernel, bsmm_error_message());
        if (fabs(test_matrix_value(&d, 0, 0) - want) > (w.e.bound + 0x1p-24) * fabs(want))
            fail_msg("%s: got %a, want %a", w.e.kernel, test_matrix_value(&d, 0, 0), want);
    }
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&d);
}

static void test_factors_beyond_fp32(void **state) {
    (void)state;
    check_factors(0x1p127f, 0x1p26f, 0x1p127f, 0x1p26f, 1);
    check_factors(0x1p127f, 0x1p26f, 0x1p51f, 1, 0x1p52f);
    check_factors(0x1p51f, 1, 0x1p127f, 0x1p26f, 0x1p52f);
    check_factors(0x1p-100f, 0x1p-100f, 0x1p127f, 0x1p26f, 0x1p90f);
}

static void test_sums_beyond_fp32_cancel(void **state) {
    (void)state;
    bsmm_format rows = format_named("fp8_group128"), blocks = format_named("fp8_block128");
    check((side){rows, 100, 0x1p54f, true}, (side){blocks, 100, 0x1p54f, false}, 1);
    check((side){rows, 100, 0x1p54f, true}, (side){rows, 100, 0x1p54f, false}, 1);
}

static void test_alpha_brings_back_products_below_fp32(void **state) {
    (void)state;
    bsmm_format bf16 = format_named("bf16"), mx = format_named("mxfp8");
    check((side){bf16, 0x1p-70, 1, false}, (side){bf16, 0x1p-76, 1, false}, 0x1p100f);
    check((side){bf16, 0x1p-70, 1, false}, (side){mx, 1, 0x1p-76f, false}, 0x1p100f);
}

static void test_scales_bring_back_products_below_fp32(void **state) {
    (void)state;
    static const bsmm_format bf16 = {BSMM_ELEM_BF16, BSMM_SCALE_F32, 1, 32};
    static const bsmm_format groups = {BSMM_ELEM_BF16, BSMM_SCALE_F32, 1, 128};
    check((side){bf16, 0x1p-72, 0x1p60f, false}, (side){bf16, 0x1p-72, 0x1p60f, false}, 1);
    check((side){format_named("bf16"), 0x1p-110, 1, false}, (side){bf16, 0x1p-35, 0x1p60f, false},
          1);
    check((side){groups, 0x1p-20, 0x1p60f, false},
          (side){format_named("mxfp4"), 1, 0x1p-99f, false}, 1);
}

/* Describes the elements of an operand. The first 128 elements of every row have the value `value`
 * and the fp32 scale `scale`. All other elements are 1 and have the scale `rest`. */
typedef struct apart {
    uint32_t elem;
    double value;
    float scale, rest;
} apart;

static void put_apart(const test_matrix *t, const apart *x) {
    uint32_t one = bsmm_elem_encode(x->elem, 1, true);
    uint32_t code = bsmm_elem_encode(x->elem, x->value, false);
    for (uint64_t i = 0; i < (uint64_t)(t->m.rows * K); i++)
        bsmm_elem_store(x->elem, t->m.data, i, i % K < 128 ? code : one);
    for (uint64_t i = 0; i < (uint64_t)(t->m.rows * K / 128); i++)
        bsmm_scale_store_code(BSMM_SCALE_F32, t->m.scales, i,
                              bsmm_float_bits(i % (K / 128) == 0 ? x->scale : x->rest));
}

static void check_apart(const apart *x, const char *other, int64_t rows, bool in_b) {
    /* If the scales are tiny, a large alpha makes the results normal numbers. */
    const float alpha = x->rest < 0x1p-100f ? 0x1p100f : 1;
    const bsmm_format f = {x->elem, BSMM_SCALE_F32, 1, 128};
    rng r = {22};
    test_matrix t, o;
    test_matrix_make(&t, describe(f, in_b ? N : rows, K), FILL_ORDINARY, &r);
    test_matrix_make(&o, describe(format_named(other), in_b ? rows : N, K), FILL_ORDINARY, &r);
    put_apart(&t, x);
    if (isinf(x->value)) put_values(&o, 1, &r);
    check_product(in_b ? &o : &t, in_b ? &t : &o, alpha, &r);
    test_matrix_free(&t);
    test_matrix_free(&o);
}

/* Tests blocks with a scale of 0, blocks of zeros with any scale, and blocks with Inf. A block must
 * only change the results to which it contributes. */
static void test_blocks_that_do_not_count(void **state) {
    (void)state;
    static const apart cases[] = {
        {BSMM_ELEM_BF16, 0x1p120, 0, 1},
        {BSMM_ELEM_F32, 0x1p120, 0, 0x1p-20f},
        {BSMM_ELEM_E4M3, 0, 0x1p120f, 0x1p-60f},
        {BSMM_ELEM_E5M2, 0, -0x1.fp127f, 0x1p-149f},
        {BSMM_ELEM_BF16, 0, 1, 0x1p-149f},
        {BSMM_ELEM_E5M2, (double)INFINITY, 0x1p-60f, 0x1p100f},
        {BSMM_ELEM_E5M2, -(double)INFINITY, 0x1p-149f, 1},
        {BSMM_ELEM_E4M3, 1, INFINITY, 1},
        {BSMM_ELEM_BF16, 1, INFINITY, 1},
    };
    static const char *const others[] = {"e4m3", "mxfp8", "fp8_group128", "bf16"};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++)
        for (size_t j = 0; j < BSMM_COUNT(others); j++) {
            check_apart(&cases[i], others[j], 3, false);
            check_apart(&cases[i], others[j], 35, true);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alpha_brings_back_sums_beyond_fp32),
        cmocka_unit_test(test_factors_beyond_fp32),
        cmocka_unit_test(test_sums_beyond_fp32_cancel),
        cmocka_unit_test(test_alpha_brings_back_products_below_fp32),
        cmocka_unit_test(test_scales_bring_back_products_below_fp32),
        cmocka_unit_test(test_blocks_that_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
