/* Tests the numerical rules of docs/NUMERICS.md for every kernel. The products are so small that
 * the right result is obvious. */
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { M = 3, N = 4, K = 64 };

/* Holds the operands of a product. All elements and scales are 1 in mxfp8 until a test changes some
 * of them. D is f32. */
typedef struct fixture {
    uint8_t a[M * K], b[N * K], a_scales[M * K / 32], b_scales[N * K / 32];
    float d[M * N];
    bsmm_matrix a_matrix, b_matrix, d_matrix;
    bsmm_matmul_desc desc;
} fixture;

static const uint8_t one = 0x38, minus_one = 0xb8, smallest = 0x01, nan_code = 0x7f;

static void fixture_make(fixture *f) {
    *f = (fixture){.a_matrix = describe(format_named("mxfp8"), M, K),
                   .b_matrix = describe(format_named("mxfp8"), N, K),
                   .d_matrix = describe(format_named("f32"), M, N)};
    memset(f->a, one, sizeof f->a);
    memset(f->b, one, sizeof f->b);
    memset(f->a_scales, 127, sizeof f->a_scales);
    memset(f->b_scales, 127, sizeof f->b_scales);
    f->a_matrix.data = f->a;
    f->a_matrix.scales = f->a_scales;
    f->b_matrix.data = f->b;
    f->b_matrix.scales = f->b_scales;
    f->d_matrix.data = f->d;
    f->desc = (bsmm_matmul_desc){
        .struct_size = sizeof f->desc, .a = &f->a_matrix, .b = &f->b_matrix, .d = &f->d_matrix};
}

/* Runs the product with each kernel that accepts it. D is filled with a pattern before each run and
 * passed to `check` after it. */
static void on_kernels(fixture *f, bool of_cpu_alone, void (*check)(const float *d)) {
    int ran = 0;
    for (test_walk w = test_walk_begin(&f->desc); test_walk_next(&w); ran++) {
        if (of_cpu_alone && !test_walk_on_cpu(&w)) continue;
        memset(f->d, 0xa5, sizeof f->d);
        if (test_multiply(&f->desc) != BSMM_OK)
            fail_msg("%s: %s", w.e.kernel, bsmm_error_message());
        check(f->d);
    }
    assert_true(ran >= test_walk_least(2));
}

static void on_every_kernel(fixture *f, void (*check)(const float *d)) {
    on_kernels(f, false, check);
}

static void expect_all_64(const float *d) {
    for (int i = 0; i < M * N; i++)
        assert_true(d[i] == 64);
}

static void test_scales_that_cancel(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    memset(f.a_scales, 0, sizeof f.a_scales);   /* e8m0 code 0 is the scale 2^-127. */
    memset(f.b_scales, 254, sizeof f.b_scales); /* e8m0 code 254 is the scale 2^127. */
    on_every_kernel(&f, expect_all_64);
}

static void expect_overflow(const float *d) {
    for (int i = 0; i < M * N; i++)
        assert_true(isinf(d[i]) && d[i] > 0);
}

static void expect_positive_zero(const float *d) {
    for (int i = 0; i < M * N; i++)
        assert_true(d[i] == 0 && !signbit(d[i]));
}

static void test_scales_that_do_not_cancel(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    memset(f.a_scales, 254, sizeof f.a_scales);
    memset(f.b_scales, 254, sizeof f.b_scales);
    on_every_kernel(&f, expect_overflow);
    memset(f.a_scales, 0, sizeof f.a_scales);
    memset(f.b_scales, 0, sizeof f.b_scales);
    on_every_kernel(&f, expect_positive_zero);
}

/* Tests the sum of 448 * 2^127 and its negative. Each term is outside the range of fp32, but the
 * sum must be exactly 0. */
static void test_terms_beyond_fp32_cancel(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    memset(f.a_scales, 254, sizeof f.a_scales);
    memset(f.a, 0, sizeof f.a);
    for (int r = 0; r < M; r++) {
        f.a[r * K] = 0x7e;
        f.a[r * K + 63] = 0xfe;
    }
    on_every_kernel(&f, expect_positive_zero);
}

/* Expects NaN in row 1 and column 2 of D, and 64 everywhere else. */
static void expect_nan_in_row_1_and_column_2(const float *d) {
    for (int r = 0; r < M; r++)
        for (int c = 0; c < N; c++)
            assert_true(r == 1 || c == 2 ? isnan(d[r * N + c]) : d[r * N + c] == 64);
}

static void test_nan_scales_touch_exactly_their_outputs(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    f.a_scales[1 * 2 + 1] = 255;
    f.b_scales[2 * 2] = 255;
    memset(f.a + 1 * K + 32, 0, 32); /* Tests that an element 0 with a NaN scale counts as NaN. */
    on_every_kernel(&f, expect_nan_in_row_1_and_column_2);
}

static void test_nan_elements_touch_exactly_their_outputs(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    f.a[1 * K + 63] = nan_code;
    f.b[2 * K] = nan_code | 0x80;
    on_every_kernel(&f, expect_nan_in_row_1_and_column_2);
}

/* Expects that every element of D is 64 * 2^-9 * 2^-9, a sum of products of subnormal elements. */
static void expect_subnormal_sum(const float *d) {
    for (int i = 0; i < M * N; i++)
        assert_true(d[i] == 0x1p-12f);
}

static void test_subnormal_elements(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    memset(f.a, smallest, sizeof f.a);
    memset(f.b, smallest, sizeof f.b);
    on_every_kernel(&f, expect_subnormal_sum);
}

/* Expects that every element of D is 64 * 2^-149. This is subnormal in fp32, and a kernel must not
 * flush it to 0. */
static void expect_subnormal_result(const float *d) {
    for (int i = 0; i < M * N; i++)
        assert_true(d[i] == 0x1p-143f);
}

static void test_subnormal_results(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    memset(f.a_scales, 127 - 75, sizeof f.a_scales);
    memset(f.b_scales, 127 - 74, sizeof f.b_scales);
    on_every_kernel(&f, expect_subnormal_result);
}

/* Tests that results of zero are +0: after exact cancellation, and after adding -0 to an
 * accumulator of +0. */
static void test_signed_zeros(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    memset(f.a, 0x80, sizeof f.a);
    on_every_kernel(&f, expect_positive_zero);
    for (int i = 0; i < M * K; i++)
        f.a[i] = i % 2 ? one : minus_one;
    on_every_kernel(&f, expect_positive_zero);
}

/* Expects that all results are -0. The sums are +0, so a negative factor must have been applied to
 * them. This factor is alpha on the CPU, and alpha or the second-level scale on a GPU. */
static void expect_negative_zero(const float *d) {
    for (int i = 0; i < M * N; i++)
        assert_true(d[i] == 0 && signbit(d[i]));
}

static void test_signed_zeros_of_factors(void **state) {
    (void)state;
    static const struct {
        /* `global` is the second-level scale of a case, and `bias` is its bias. A bias of -0 must
         * not change the result. A bias of 1 stands for no bias. */
        float global, bias;
    } cases[] = {{-1, 1}, {-3, 1}, {-1, -0.0f}, {0, 1}, {-0.0f, -0.0f}};
    const float minus = -1;
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        fixture f;
        fixture_make(&f);
        float global = cases[i].global, bias[N];
        for (int j = 0; j < N; j++)
            bias[j] = cases[i].bias;
        for (int j = 0; j < M * K && global != 0; j++)
            f.a[j] = j % 2 ? one : minus_one;
        f.a_matrix.global_scale = &global;
        f.desc.bias = cases[i].bias == 0 ? bias : NULL;
        f.desc.bias_elem = cases[i].bias == 0 ? BSMM_ELEM_F32 : BSMM_ELEM_NONE;
        on_kernels(&f, true, expect_positive_zero);
        f.desc.alpha = &minus;
        on_kernels(&f, true, expect_negative_zero);
    }
}

/* Tests negative block scales. A kernel must apply them to the terms and not to the sum, so that a
 * sum of zeros is +0. */
static void test_signed_zeros_of_scales(void **state) {
    (void)state;
    /* The fp32 scales of the rows of A and of B. A scale covers 128 columns or all columns. Row 1
     * of A has the scale 0 and negative elements, so its terms are -0. The terms of the other rows
     * cancel. */
    float scales[M] = {-1, 0, -0x1p-20f}, b_scales[N] = {1, -1, -3, 0};
    enum { ROWS, MXFP8, MXFP4, FORMATS };
    for (int b = 0; b < FORMATS; b++)
        for (int whole = 0; whole < 2; whole++) {
            fixture f;
            fixture_make(&f);
            f.a_matrix.format = (bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, whole ? K : 128};
            f.a_matrix.scales = scales;
            for (int i = 0; i < M * K; i++)
                f.a[i] = i / K != 1 && i % 2 ? one : minus_one;
            if (b == MXFP4) {
                f.b_matrix.format = format_named("mxfp4");
                memset(f.b, 0x22, sizeof f.b); /* The e2m1 code of 1 is 2. */
            } else if (b == ROWS) {
                f.b_matrix.format = f.a_matrix.format;
                f.b_matrix.scales = b_scales;
            }
            on_every_kernel(&f, expect_positive_zero);
        }
}

static void test_beta_zero_does_not_read_c(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    /* C has a description but no memory, because the library must not read C if beta is 0. */
    bsmm_matrix c = describe(format_named("f32"), M, N);
    const float zero = 0;
    f.desc.c = &c;
    f.desc.beta = &zero;
    on_every_kernel(&f, expect_all_64);
}

/* Tests that D is rounded only once. The result 1 + 2^-8 + 2^-40 is just above the midpoint of two
 * bf16 numbers, and fp32 would round it to the midpoint. */
static void test_one_rounding(void **state) {
    (void)state;
    float a[3] = {1, 0x1p-8f, 0x1p-40f}, b[3] = {1, 1, 1};
    uint16_t d = 0;
    bsmm_matrix am = describe(format_named("f32"), 1, 3), bm = am;
    bsmm_matrix dm = describe(format_named("bf16"), 1, 1);
    am.data = a;
    bm.data = b;
    dm.data = &d;
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &am, .b = &bm, .d = &dm, .kernel = "ref"};
    assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
    assert_int_equal(d, 0x3f81);
    /* The result is now exactly the midpoint between two bf16 numbers. It must be rounded to the
     * number whose last bit is 0. */
    a[2] = 0;
    assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
    assert_int_equal(d, 0x3f80);
}

/* Tests results outside the range of D's format. 8-bit formats must saturate, and 16-bit formats
 * must give Inf. */
static void test_overflow_of_outputs(void **state) {
    (void)state;
    static const struct {
        const char *format;
        uint32_t code;
    } rows[] = {{"e4m3", 0x7e}, {"e5m2", 0x7b}, {"f16", 0x7c00}, {"bf16", 0x7f80}};
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        fixture f;
        fixture_make(&f);
        memset(f.a_scales, 254, sizeof f.a_scales);
        memset(f.b_scales, 129, sizeof f.b_scales);
        f.d_matrix = describe(format_named(rows[i].format), M, N);
        f.d_matrix.data = f.d;
        assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
        assert_int_equal(bsmm_elem_load(f.d_matrix.format.elem, f.d, 0), rows[i].code);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scales_that_cancel),
        cmocka_unit_test(test_scales_that_do_not_cancel),
        cmocka_unit_test(test_terms_beyond_fp32_cancel),
        cmocka_unit_test(test_nan_scales_touch_exactly_their_outputs),
        cmocka_unit_test(test_nan_elements_touch_exactly_their_outputs),
        cmocka_unit_test(test_subnormal_elements),
        cmocka_unit_test(test_subnormal_results),
        cmocka_unit_test(test_signed_zeros),
        cmocka_unit_test(test_signed_zeros_of_factors),
        cmocka_unit_test(test_signed_zeros_of_scales),
        cmocka_unit_test(test_beta_zero_does_not_read_c),
        cmocka_unit_test(test_one_rounding),
        cmocka_unit_test(test_overflow_of_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
