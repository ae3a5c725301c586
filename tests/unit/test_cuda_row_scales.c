/* Tests GPU kernels with one fp32 scale for each row of A or B. The tests are skipped without a
 * GPU.
 *
 * With few rows of A, the fast path of the epilogue rounds results in fp32. The slow path, for
 * products with C or bias, rounds them in double. Both paths must give bitwise identical results.
 *
 * If A and B are FP8, the kernel for many rows multiplies the complete sums by the scales of B. If
 * a row's scales are too large or too small for this, the kernel must compute the row's results
 * again. */
#include "cuda.h"
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 525, K = 416, MOST = 64 };

static const float extremes[] = {1,     -0.7f, 0x1p-140f, 0x1.fp-96f, 0x1p120f,
                                 3e38f, 0,     INFINITY,  NAN};

/* Sets the scale of every second row to a random value within 16 binades of 1, and the other scales
 * to random values of the array `extremes`. */
static void draw_scales(test_matrix *a, rng *r) {
    float *scales = a->m.scales;
    for (int64_t i = 0; i < a->m.rows; i++) {
        const float any = (float)rng_next(r) * 0x1p-64f + 1;
        scales[i] = i % 2 ? extremes[rng_below(r, BSMM_COUNT(extremes))]
                          : ldexpf(any, (int)rng_below(r, 32) - 16);
    }
}

/* Compares D with the D of the same product plus a C of zeros. With C, the kernel takes its slow
 * path. */
static void check_product(const test_matrix *a, const test_matrix *b, const char *result, rng *r) {
    static const float one = 1;
    test_matrix c, d;
    test_matrix_make(&c, describe(format_named("f32"), a->m.rows, N), FILL_ORDINARY, r);
    test_matrix_make(&d, describe(format_named(result), a->m.rows, N), FILL_ORDINARY, r);
    memset(c.m.data, 0, c.data_bytes);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a->m,
                             .b = &b->m,
                             .d = &d.m,
                             .device = "cuda:0",
                             .kernel = "cuda_sm90_small_m"};
    if (test_multiply(&desc)) fail_msg("%s", bsmm_error_message());
    uint8_t *plain = malloc(d.data_bytes);
    memcpy(plain, d.m.data, d.data_bytes);
    desc.c = &c.m;
    desc.beta = &one;
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    const uint32_t elem = d.m.format.elem;
    for (uint64_t i = 0; i < (uint64_t)(a->m.rows * N); i++) {
        const uint32_t got = bsmm_elem_load(elem, plain, i),
                       want = bsmm_elem_load(elem, d.m.data, i);
        const bool zeros = bsmm_elem_decode(elem, got) == 0 && bsmm_elem_decode(elem, want) == 0;
        /* The first product has no C, and the second one adds a C of zeros, which turns -0 into +0.
         * Zeros of different signs therefore count as equal. */
        if (got != want && !zeros)
            fail_msg("%s x %s to %s, scale %a: %x, must be %x", bsmm_format_name(a->m.format),
                     bsmm_format_name(b->m.format), result,
                     (double)((const float *)a->m.scales)[i / N], got, want);
    }
    free(plain);
    test_matrix_free(&c);
    test_matrix_free(&d);
}

static void test_row_scales(void **state) {
    static const uint32_t elems[] = {BSMM_ELEM_E4M3, BSMM_ELEM_BF16, BSMM_ELEM_F16};
    static const char *const weights[] = {"mxfp4",      "nvfp4", "mxfp8",
                                          "mxfp6_e2m3", "mxfp4", "mxfp6_e3m2"};
    static const char *const results[] = {"f32", "bf16", "f16"};
    static const int64_t rows[] = {1, 2, 13, 32, MOST};
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {71};
    for (size_t i = 0; i < BSMM_COUNT(elems); i++)
        for (size_t j = 0; j < BSMM_COUNT(rows); j++) {
            const bsmm_format format = {elems[i], BSMM_SCALE_F32, 1, K};
            /* Kernels split each f16 row of A into two bf16 rows, so they accept only half as many
             * rows. */
            const int64_t most = elems[i] == BSMM_ELEM_F16 ? MOST / 2 : MOST;
            test_matrix a, b;
            test_matrix_make(&a, describe(format, bsmm_min_i64(rows[j], most), K), FILL_ORDINARY,
                             &r);
            test_matrix_make(&b,
                             describe(format_named(weights[(i + j) % BSMM_COUNT(weights)]), N, K),
                             FILL_ORDINARY, &r);
            draw_scales(&a, &r);
            for (size_t d = 0; d < BSMM_COUNT(results); d++)
                check_product(&a, &b, results[d], &r);
            test_matrix_free(&a);
            test_matrix_free(&b);
        }
}

enum { FP8_K = 416, SOME_ROWS = 130 };

/* Says how large the scales of both FP8 operands are. */
typedef enum style {
    ORDINARY,  /* All scales are within 16 binades of 1. */
    LARGE_A,   /* All scales of A are near 2^100, and all scales of B near 2^-90. */
    GREATER_A, /* All scales of A are near 2^44, and all scales of B near 2^-110. */
    SMALL_A,   /* All scales of A are near 2^-85, and all scales of B near 2^100. */
    EXTREME    /* Every second scale is in `extremes`. */
} style;

static void put_style(test_matrix *t, style how, bool is_b, rng *r) {
    static const int exponents[EXTREME][2] = {
        [LARGE_A] = {100, -90}, [GREATER_A] = {44, -110}, [SMALL_A] = {-85, 100}};
    float *scales = t->m.scales;
    draw_scales(t, r);
    for (int64_t i = 0; i < t->m.rows && how != EXTREME; i++) {
        const float any = (float)rng_next(r) * 0x1p-64f + 1;
        scales[i] = ldexpf(any, exponents[how][is_b] + (int)rng_below(r, 32) - 16);
    }
}

/* Checks that every result lies within the kernel's error bound. */
static void expect_sums(const test_matrix *a, const test_matrix *b, const test_matrix *d,
                        const char *kernel, double bound) {
    double *left = test_matrix_values(a), *right = test_matrix_values(b),
           *got = test_matrix_values(d);
    for (int64_t i = 0; i < a->m.rows * b->m.rows; i++) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < FP8_K; k++) {
            const double term = left[i / b->m.rows * FP8_K + k] * right[i % b->m.rows * FP8_K + k];
            sum += term, magnitude += fabs(term);
        }
        /* A sum near the largest bf16 number may overflow or not, depending on its rounding error,
         * so such sums are not checked. */
        if (fabs(sum) > 0x1.f0p127 && fabs(sum) < 0x1p129) continue;
        const double want = fabs(sum) >= 0x1p128 ? sum * (double)INFINITY : sum;
        const bool same = isnan(want) ? isnan(got[i]) : got[i] == want;
        const double slack = bound * magnitude + 0x1p-8 * fabs(sum) + 0x1p-133;
        if (isfinite(want) ? fabs(got[i] - want) > slack : !same)
            fail_msg("%s, (%lld, %lld) of %lld x %lld: %a, must be %a", kernel,
                     (long long)(i / b->m.rows), (long long)(i % b->m.rows), (long long)a->m.rows,
                     (long long)b->m.rows, got[i], want);
    }
    free(left);
    free(right);
    free(got);
}

/* Returns the error bound of the kernel that `desc` names. */
static double find_bound(const bsmm_matmul_desc *desc) {
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; bsmm_explain(desc, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, desc->kernel) == 0) return e.bound;
    fail_msg("no kernel %s", desc->kernel);
    return 0;
}

static void check_fp8(uint32_t a_elem, uint32_t b_elem, int64_t n, style how, rng *r) {
    test_matrix a, b, d;
    test_matrix_make(&a,
                     describe((bsmm_format){a_elem, BSMM_SCALE_F32, 1, FP8_K}, SOME_ROWS, FP8_K),
                     FILL_ORDINARY, r);
    test_matrix_make(&b, describe((bsmm_format){b_elem, BSMM_SCALE_F32, 1, FP8_K}, n, FP8_K),
                     FILL_ORDINARY, r);
    test_matrix_make(&d, describe(format_named("bf16"), SOME_ROWS, n), FILL_SPECIAL, r);
    put_style(&a, how, false, r);
    put_style(&b, how, true, r);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a.m,
                             .b = &b.m,
                             .d = &d.m,
                             .device = "cuda:0",
                             .kernel = "cuda_sm90a_fp8"};
    if (test_multiply(&desc)) fail_msg("%s", bsmm_error_message());
    expect_sums(&a, &b, &d, desc.kernel, find_bound(&desc));
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&d);
}

static void test_fp8_rows(void **state) {
    static const int64_t columns[] = {2, 258, 261, 264};
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {72};
    for (size_t i = 0; i < BSMM_COUNT(columns); i++)
        for (style how = ORDINARY; how <= EXTREME; how++) {
            check_fp8(BSMM_ELEM_E4M3, BSMM_ELEM_E4M3, columns[i], how, &r);
            check_fp8(BSMM_ELEM_E5M2, BSMM_ELEM_E4M3, columns[i], how, &r);
        }
}

/* Tests a D with more tiles than the GPU has multiprocessors. A thread block then begins to
 * multiply its next tile before it stores the results of a tile. */
static void test_next_tile(void **state) {
    static const char *const tiles[] = {"gemm_block_192x128", "gemm_block_192x128_alone"};
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {73};
    const int64_t n = 128 * (int64_t)test_cuda_device()->multiprocessors + 264;
    for (size_t i = 0; i < BSMM_COUNT(tiles); i++) {
        setenv("BSMM_TEST_TILE", tiles[i], 1);
        check_fp8(BSMM_ELEM_E4M3, BSMM_ELEM_E4M3, n, i ? EXTREME : ORDINARY, &r);
        check_fp8(BSMM_ELEM_E4M3, BSMM_ELEM_E4M3, n, i ? ORDINARY : LARGE_A, &r);
        unsetenv("BSMM_TEST_TILE");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_row_scales),
                                       cmocka_unit_test(test_fp8_rows),
                                       cmocka_unit_test(test_next_tile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
