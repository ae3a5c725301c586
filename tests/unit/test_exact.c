/* Tests results that need no rounding, which must be exact in every kernel. Each code of each
 * format must give its value. The dot product of one block of small integers must be rounded only
 * once, to D's format. */
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const formats[] = {
    "f16",  "bf16",  "e4m3",       "e4m3fnuz",   "e5m2",       "e5m2fnuz", "e3m2",  "e2m3",
    "e2m1", "mxfp8", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4",    "nvfp4", "fp8_group128",
};
static const char *const others[] = {"e2m1", "mxfp4", "nvfp4", "mxfp8", "bf16", "fp8_block128"};

static uint32_t one_of_scale(uint32_t scale) {
    return bsmm_elem_encode(bsmm_scale_row_of(scale)->elem, 1, true);
}

/* Makes a matrix of zeros with scales of 1. */
static void make_zero(test_matrix *t, const char *format, int64_t rows, int64_t cols, rng *r) {
    test_matrix_make(t, describe(format_named(format), rows, cols), FILL_ORDINARY, r);
    memset(t->m.data, 0, t->data_bytes);
    uint32_t scale = t->m.format.scale;
    uint64_t count = scale ? t->scale_bytes / bsmm_scale_row_of(scale)->bytes : 0;
    for (uint64_t i = 0; i < count; i++)
        bsmm_scale_store_code(scale, t->m.scales, i, one_of_scale(scale));
}

static void set(test_matrix *t, int64_t r, int64_t c, uint32_t code) {
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(&t->m, "test", &o), BSMM_OK);
    bsmm_elem_store(t->m.format.elem, t->m.data, bsmm_operand_index(&o, r, c), code);
}

/* Each row of `codes` has one code in one column and zeros elsewhere. The column depends on the
 * row. All elements of the other operand are 1, so each result is the value of one code. */
typedef struct fixture {
    test_matrix codes, ones, d;
    uint32_t step;
} fixture;

enum { ROWS = 256, COLS = 3, K = 160 };

static void fixture_make(fixture *f, const char *format, const char *other, bool codes_in_b,
                         rng *r) {
    make_zero(&f->codes, format, ROWS, K, r);
    make_zero(&f->ones, other, COLS, K, r);
    uint32_t elem = f->codes.m.format.elem, bits = bsmm_elem_row(elem)->bits;
    /* If the format has 16 bits, the test uses only some of its codes. */
    f->step = bits > 8 ? (1u << bits) / ROWS + 1 : 1;
    for (uint32_t i = 0; i < ROWS; i++)
        set(&f->codes, i, (i * 7) % K, (i * f->step) & ((1u << bits) - 1));
    uint32_t one = bsmm_elem_encode(f->ones.m.format.elem, 1, true);
    for (int64_t j = 0; j < COLS; j++)
        for (int64_t k = 0; k < K; k++)
            set(&f->ones, j, k, one);
    test_matrix_make(&f->d,
                     codes_in_b ? describe(format_named("f32"), COLS, ROWS)
                                : describe(format_named("f32"), ROWS, COLS),
                     FILL_ORDINARY, r);
}

static void check_codes(const fixture *f, bool codes_in_b, const char *kernel) {
    uint32_t elem = f->codes.m.format.elem, bits = bsmm_elem_row(elem)->bits;
    for (uint32_t i = 0; i < ROWS; i++) {
        double want = bsmm_elem_decode(elem, (i * f->step) & ((1u << bits) - 1));
        for (int64_t j = 0; j < COLS; j++) {
            double got = test_matrix_value(&f->d, codes_in_b ? j : i, codes_in_b ? i : j);
            if (isnan(want) ? !isnan(got) : got != want)
                fail_msg("%s, %s %s: code 0x%x gives %a, not %a", kernel,
                         bsmm_format_name(f->codes.m.format), codes_in_b ? "in B" : "in A",
                         (i * f->step) & ((1u << bits) - 1), got, want);
        }
    }
}

static int run_codes(const char *format, const char *other, bool codes_in_b, rng *r) {
    fixture f;
    fixture_make(&f, format, other, codes_in_b, r);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = codes_in_b ? &f.ones.m : &f.codes.m,
                             .b = codes_in_b ? &f.codes.m : &f.ones.m,
                             .d = &f.d.m};
    int ran = 0;
    for (test_walk w = test_walk_begin(&desc); test_walk_next(&w); ran++) {
        memset(f.d.m.data, 0xa5, f.d.data_bytes);
        assert_int_equal(test_multiply(&desc), BSMM_OK);
        check_codes(&f, codes_in_b, w.e.kernel);
    }
    test_matrix_free(&f.codes);
    test_matrix_free(&f.ones);
    test_matrix_free(&f.d);
    return ran;
}

static void test_every_code_arrives(void **state) {
    (void)state;
    rng r = {41};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (size_t j = 0; j < BSMM_COUNT(others); j++) {
            assert_true(run_codes(formats[i], others[j], false, &r) >= test_walk_least(2));
            assert_true(run_codes(formats[i], others[j], true, &r) >= test_walk_least(2));
        }
}

/* Tests products whose K is a single scale block. The dot product of integers is exact, so the
 * result must be the exact value, rounded once. */
static void check_one_block(const char *a, const char *b, int64_t k, rng *r) {
    test_matrix ta, tb, td;
    test_matrix_make(&ta, describe(format_named(a), 21, k), FILL_ORDINARY, r);
    test_matrix_make(&tb, describe(format_named(b), 45, k), FILL_ORDINARY, r);
    test_matrix_make(&td, describe(format_named("f32"), 21, 45), FILL_ORDINARY, r);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &ta.m, .b = &tb.m, .d = &td.m};
    bsmm_explanation e = {.struct_size = sizeof e};
    double *left = test_matrix_values(&ta), *right = test_matrix_values(&tb);
    for (uint32_t q = 0; bsmm_explain(&desc, q, &e) == BSMM_OK; q++) {
        if (!e.accepts || !strstr(e.kernel, "int8")) continue;
        desc.kernel = e.kernel;
        assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
        desc.kernel = NULL;
        for (int64_t i = 0; i < 21; i++)
            for (int64_t j = 0; j < 45; j++) {
                double exact = 0;
                for (int64_t p = 0; p < k; p++)
                    exact += left[i * k + p] * right[j * k + p];
                assert_true(test_matrix_value(&td, i, j) == (double)(float)exact);
            }
    }
    free(left);
    free(right);
    test_matrix_free(&ta);
    test_matrix_free(&tb);
    test_matrix_free(&td);
}

static void test_block_sums_are_rounded_once(void **state) {
    (void)state;
    rng r = {42};
    for (int rep = 0; rep < 10; rep++) {
        check_one_block("mxfp4", "mxfp4", 32, &r);
        check_one_block("mxfp6_e2m3", "mxfp6_e2m3", 32, &r);
        check_one_block("mxfp6_e2m3", "mxfp4", 27, &r);
        check_one_block("nvfp4", "nvfp4", 16, &r);
        check_one_block("nvfp4", "mxfp4", 9, &r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_arrives),
        cmocka_unit_test(test_block_sums_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
