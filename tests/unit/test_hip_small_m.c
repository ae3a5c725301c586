/* Tests AMD's kernels for few rows of A on simulated GPUs. The error of each result must be within
 * the bound that the kernel states. D is filled with a pattern first, and an unreadable page
 * follows each operand. The test is skipped without the simulators. */
#include "operand.h"
#include "sample.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char kernel[] = "hip_cdna_small_m";
static const char *const devices[] = {"sim:gfx942", "sim:gfx950"};

/* Returns true if the device exists and the kernel accepts the product on it. */
static bool is_taken(const bsmm_matmul_desc *desc, bsmm_explanation *e) {
    *e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; bsmm_explain(desc, i, e) == BSMM_OK; i++)
        if (strcmp(e->kernel, kernel) == 0) return e->accepts;
    return false;
}

typedef struct product_case {
    const char *a, *b, *d;
    int64_t m, n, k;
    /* `a_gap` and `b_gap` are the numbers of unused elements after each row of A and of B. */
    int64_t a_gap, b_gap;
    fill how;
} product_case;

/* Products with at least MANY_ROWS rows of B take long, so they run only without a bias. */
enum { MANY_ROWS = 1000 };

/* `cases` lists the products. In some of them, K is no multiple of 128 (the elements of a step), K
 * has fewer steps than a workgroup has waves, or a row has an odd number of scales. */
static const product_case cases[] = {
    {"bf16", "mxfp4", "f32", 1, 1, 32, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp4", "bf16", 1, 33, 1152, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp4", "f32", 16, 130, 2880, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp4", "f32", 5, 47, 160, 8, 64, FILL_EXTREME},
    {"bf16", "mxfp4", "f32", 13, 20, 608, 24, 32, FILL_SPECIAL},
    {"bf16", "mxfp4", "f16", 4, 70, 2048, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp4", "e4m3", 7, 17, 96, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp4", "bf16", 17, 35, 1280, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp4", "f32", 32, 18, 416, 16, 32, FILL_SPECIAL},
    {"bf16", "mxfp4", "f32", 33, 24, 1056, 0, 0, FILL_EXTREME},
    {"bf16", "mxfp4", "f16", 64, 50, 640, 0, 0, FILL_ORDINARY},
    /* In these products B has so many rows that each workgroup computes 32 columns of D. */
    {"bf16", "mxfp4", "f32", 1, 19480, 64, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp4", "bf16", 17, 9729, 32, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp4", "f32", 33, 9720, 32, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp8", "f32", 3, 33, 352, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp8", "f32", 13, 20, 608, 24, 32, FILL_SPECIAL},
    {"bf16", "mxfp8", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"bf16", "mxfp8", "f32", 33, 9720, 32, 0, 0, FILL_ORDINARY},
    {"bf16", "nvfp4", "f32", 3, 33, 352, 0, 0, FILL_ORDINARY},
    {"bf16", "nvfp4", "f32", 13, 20, 608, 24, 32, FILL_SPECIAL},
    {"bf16", "nvfp4", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"bf16", "fp8_block128", "f32", 3, 133, 608, 0, 0, FILL_ORDINARY},
    {"bf16", "fp8_block128", "f32", 13, 20, 416, 24, 32, FILL_SPECIAL},
    {"bf16", "fp8_block128", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"bf16", "fp8_block128", "f32", 33, 9720, 32, 0, 0, FILL_ORDINARY},
    {"fp8_group128", "fp8_block128", "f32", 3, 133, 608, 0, 0, FILL_ORDINARY},
    {"fp8_group128", "fp8_block128", "f32", 13, 20, 416, 32, 64, FILL_SPECIAL},
    {"fp8_group128", "fp8_block128", "bf16", 18, 20, 1440, 0, 0, FILL_ORDINARY},
    {"fp8_group128", "fp8_block128", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"fp8_group128", "fp8_block128", "f32", 33, 9720, 32, 0, 0, FILL_ORDINARY},
    {"mxfp8", "mxfp8", "f32", 3, 33, 1440, 0, 0, FILL_ORDINARY},
    {"mxfp8", "mxfp8", "f32", 13, 20, 608, 32, 64, FILL_SPECIAL},
    {"mxfp8", "mxfp8", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"mxfp8", "mxfp8", "f32", 33, 9720, 32, 0, 0, FILL_ORDINARY},
    {"mxfp8", "mxfp4", "f32", 3, 33, 1440, 0, 0, FILL_ORDINARY},
    {"mxfp8", "mxfp4", "f32", 18, 20, 608, 32, 64, FILL_SPECIAL},
    {"mxfp8", "mxfp4", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"bf16", "mxfp6_e2m3", "f32", 3, 33, 352, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp6_e3m2", "f32", 18, 20, 608, 24, 32, FILL_SPECIAL},
    {"bf16", "mxfp6_e2m3", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"mxfp6_e2m3", "mxfp6_e2m3", "f32", 18, 33, 1440, 0, 0, FILL_ORDINARY},
    {"mxfp6_e3m2", "mxfp6_e3m2", "f32", 33, 20, 608, 32, 64, FILL_EXTREME},
    {"mxfp8", "mxfp6_e2m3", "f32", 3, 33, 1440, 0, 0, FILL_ORDINARY},
    {"mxfp8", "mxfp6_e3m2", "f32", 33, 18, 160, 0, 0, FILL_SPECIAL},
    /* In these products K is so long that each wave multiplies several steps of K. */
    {"bf16", "mxfp6_e2m3", "f32", 16, 33, 4096, 0, 0, FILL_ORDINARY},
    {"f16", "mxfp6_e3m2", "f32", 3, 20, 4096, 0, 0, FILL_ORDINARY},
    {"mxfp6_e3m2", "mxfp6_e3m2", "f32", 18, 20, 4096, 0, 0, FILL_ORDINARY},
    {"mxfp8", "mxfp6_e2m3", "f32", 33, 20, 4096, 0, 0, FILL_ORDINARY},
    {"mxfp4", "mxfp4", "f32", 3, 33, 1440, 0, 0, FILL_ORDINARY},
    {"mxfp4", "mxfp4", "f32", 13, 20, 608, 32, 64, FILL_SPECIAL},
    {"mxfp4", "mxfp4", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"mxfp4", "mxfp4", "f32", 17, 9729, 32, 0, 0, FILL_ORDINARY},
    {"f16", "mxfp4", "f32", 1, 33, 1152, 0, 0, FILL_ORDINARY},
    {"f16", "mxfp4", "f32", 13, 20, 608, 24, 32, FILL_SPECIAL},
    {"f16", "mxfp4", "f16", 33, 24, 1056, 0, 0, FILL_EXTREME},
    {"f16", "mxfp4", "f32", 33, 9720, 32, 0, 0, FILL_ORDINARY},
    {"f16", "mxfp8", "f32", 18, 20, 608, 24, 32, FILL_SPECIAL},
    {"f16", "mxfp8", "bf16", 3, 33, 352, 0, 0, FILL_ORDINARY},
    {"f16", "nvfp4", "f32", 13, 20, 608, 24, 32, FILL_SPECIAL},
    {"f16", "nvfp4", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"f16", "fp8_block128", "f32", 18, 133, 608, 0, 0, FILL_ORDINARY},
    {"f16", "fp8_block128", "f32", 13, 20, 416, 24, 32, FILL_SPECIAL},
    {"f16", "mxfp6_e2m3", "f32", 3, 33, 352, 0, 0, FILL_EXTREME},
    {"f16", "mxfp6_e3m2", "f32", 33, 20, 608, 24, 32, FILL_SPECIAL},
    {"bf16", "mxfp8_e5m2", "f32", 3, 33, 1440, 0, 0, FILL_ORDINARY},
    {"bf16", "mxfp8_e5m2", "f32", 18, 20, 608, 24, 32, FILL_SPECIAL},
    {"bf16", "mxfp8_e5m2", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"f16", "mxfp8_e5m2", "f32", 13, 20, 608, 24, 32, FILL_SPECIAL},
    {"f16", "mxfp8_e5m2", "f32", 64, 50, 640, 0, 0, FILL_ORDINARY},
    {"mxfp8_e5m2", "mxfp8_e5m2", "f32", 3, 33, 1440, 0, 0, FILL_ORDINARY},
    {"mxfp8_e5m2", "mxfp8_e5m2", "f32", 13, 20, 608, 32, 64, FILL_SPECIAL},
    {"mxfp8_e5m2", "mxfp8_e5m2", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"bf16", "e4m3", "f32", 13, 20, 608, 24, 32, FILL_SPECIAL},
    {"f16", "e4m3", "f32", 33, 18, 160, 0, 0, FILL_ORDINARY},
    {"e4m3", "e4m3", "f32", 18, 33, 1440, 32, 64, FILL_SPECIAL},
    /* In these products, each fp32 scale belongs to a whole row or to the whole matrix. */
    {"bf16", "e4m3_row", "f32", 3, 133, 608, 0, 0, FILL_ORDINARY},
    {"bf16", "e4m3_row", "f32", 18, 20, 416, 24, 32, FILL_SPECIAL},
    {"bf16", "e4m3_row", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"bf16", "e4m3_row", "f32", 33, 9720, 32, 0, 0, FILL_ORDINARY},
    {"f16", "e4m3_row", "f32", 18, 33, 608, 0, 0, FILL_EXTREME},
    {"bf16", "e4m3_all", "f32", 13, 37, 416, 0, 0, FILL_ORDINARY},
    {"e4m3_row", "e4m3_row", "f32", 3, 133, 608, 0, 0, FILL_ORDINARY},
    {"e4m3_row", "e4m3_row", "bf16", 18, 20, 1440, 32, 64, FILL_SPECIAL},
    {"e4m3_row", "e4m3_row", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"e4m3_row", "e4m3_all", "f32", 13, 37, 1440, 0, 0, FILL_ORDINARY},
    {"e4m3_row", "fp8_block128", "f32", 18, 37, 608, 0, 0, FILL_ORDINARY},
    {"bf16_row", "e4m3_row", "f16", 18, 37, 608, 0, 0, FILL_ORDINARY},
    {"f16_row", "e4m3", "f32", 13, 20, 608, 0, 0, FILL_SPECIAL},
    {"e4m3_row", "mxfp4", "f32", 3, 33, 1440, 0, 0, FILL_ORDINARY},
    {"e4m3_row", "mxfp4", "bf16", 18, 20, 608, 32, 64, FILL_SPECIAL},
    {"e4m3_row", "mxfp4", "f32", 33, 18, 160, 0, 0, FILL_EXTREME},
    {"e4m3_row", "mxfp8", "f32", 18, 33, 1440, 32, 64, FILL_SPECIAL},
    {"e4m3_row", "mxfp8", "f32", 33, 9720, 32, 0, 0, FILL_ORDINARY},
    {"e4m3_row", "mxfp8_e5m2", "f32", 13, 20, 608, 0, 0, FILL_EXTREME},
    {"e4m3_row", "nvfp4", "f32", 18, 33, 608, 0, 0, FILL_ORDINARY},
    {"e4m3_row", "mxfp6_e2m3", "f32", 3, 33, 1440, 0, 0, FILL_ORDINARY},
    {"e4m3_all", "mxfp6_e3m2", "f16", 33, 20, 608, 32, 64, FILL_SPECIAL},
    {"e4m3", "mxfp4", "f32", 18, 33, 1440, 0, 0, FILL_SPECIAL},
};

/* Returns the format of an operand with `rows` rows and `cols` columns. After an element format,
 * "_row" means one fp32 scale for each row, and "_all" means one for the matrix. */
static bsmm_format format_of(const char *name, int64_t rows, int64_t cols) {
    char elem[16];
    const char *blocks = strchr(name, '_');
    if (!blocks || (strcmp(blocks, "_row") != 0 && strcmp(blocks, "_all") != 0))
        return format_named(name);
    snprintf(elem, sizeof elem, "%.*s", (int)(blocks - name), name);
    const bool all = strcmp(blocks, "_all") == 0;
    return (bsmm_format){format_named(elem).elem, BSMM_SCALE_F32, all ? (uint32_t)rows : 1,
                         (uint32_t)cols};
}

static void check_results(const test_matrix *a, const test_matrix *b, const test_matrix *d,
                          double bound) {
    double *x = test_matrix_values(a), *y = test_matrix_values(b), *z = test_matrix_values(d);
    const int64_t k = a->m.cols, n = b->m.rows;
    const uint32_t elem = d->m.format.elem;
    for (int64_t i = 0; i < d->m.rows * n; i++) {
        double sum = 0, magnitude = 0;
        for (int64_t j = 0; j < k; j++) {
            const double term = x[i / n * k + j] * y[i % n * k + j];
            sum += term, magnitude += fabs(term);
        }
        const double slack = isfinite(magnitude) ? (bound + (double)k * 0x1p-53) * magnitude : 0;
        const bool saturate = bsmm_elem_row(elem)->bits == 8;
        const double low = bsmm_elem_decode(elem, bsmm_elem_encode(elem, sum - slack, saturate));
        const double high = bsmm_elem_decode(elem, bsmm_elem_encode(elem, sum + slack, saturate));
        if (isnan(sum) ? !isnan(z[i]) : !(low <= z[i] && z[i] <= high))
            fail_msg("row %lld, column %lld: got %a, want %a, at most %a off", (long long)(i / n),
                     (long long)(i % n), z[i], sum, slack);
    }
    free(x), free(y), free(z);
}

/* Runs one product on each simulator. Returns the number of simulators on which it ran. */
static int run_case(const product_case *c, bool with_bias, rng *r) {
    test_matrix a, b, d;
    int ran = 0;
    bsmm_matrix of_a = describe(format_of(c->a, c->m, c->k), c->m, c->k);
    bsmm_matrix of_b = describe(format_of(c->b, c->n, c->k), c->n, c->k);
    of_a.ld = c->k + c->a_gap, of_b.ld = c->k + c->b_gap;
    test_matrix_make(&a, of_a, c->how, r);
    test_matrix_make(&b, of_b, c->how, r);
    test_matrix_make(&d, describe(format_named(c->d), c->m, c->n), FILL_SPECIAL, r);
    /* Row 2 of A becomes zero, so that its sums are 0. The kernel does not know whether such a sum
     * is right or has lost terms to underflow, so it reads the whole row of A again for each of
     * them. In a product with many rows of B, i.e. many such sums, this would take too long on a
     * simulator. The row is then not changed. */
    if (c->m > 2 && c->n < MANY_ROWS) {
        const size_t bits = bsmm_elem_row(a.m.format.elem)->bits;
        memset((uint8_t *)a.m.data + 2 * (size_t)a.m.ld * bits / 8, 0, (size_t)c->k * bits / 8);
    }
    float *bias = calloc((size_t)c->n, sizeof *bias);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &a.m, .b = &b.m, .d = &d.m};
    /* A bias of zeros changes no result, but makes the kernel take its general epilogue. */
    if (with_bias) desc.bias = bias, desc.bias_elem = BSMM_ELEM_F32;
    desc.kernel = kernel;
    for (size_t i = 0; i < BSMM_COUNT(devices); i++) {
        bsmm_explanation e;
        desc.device = devices[i];
        if (!is_taken(&desc, &e)) continue;
        memset(d.m.data, 0xa5, d.data_bytes);
        if (test_multiply(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        check_results(&a, &b, &d, e.bound);
        ran++;
    }
    free(bias);
    test_matrix_free(&a), test_matrix_free(&b), test_matrix_free(&d);
    return ran;
}

/* Runs all products of the list. With BSMM_TEST_SAMPLE=n in the environment, runs every n-th of
 * them. */
static void test_products(void **state) {
    (void)state;
    rng r = {3};
    int ran = 0, wanted = 0;
    for (size_t i = 0; i < BSMM_COUNT(cases); i += test_sample_step())
        for (int with_bias = 0; with_bias < 1 + (cases[i].n < MANY_ROWS); with_bias++) {
            ran += run_case(&cases[i], with_bias, &r);
            wanted += (int)BSMM_COUNT(devices);
        }
    if (!ran) skip(); /* There is no simulator, so the test is skipped. */
    assert_int_equal(ran, wanted);
}

/* Tests a NaN scale of a block whose weights are all 0.5. gfx942 would decode these weights to
 * finite numbers, so only the kernel's check of scales finds the NaN. */
static void test_nan_scale(void **state) {
    (void)state;
    enum { N = 20, K = 256, SCALES = K / 32, BAD = 7 };
    rng r = {5};
    test_matrix a, b, d;
    test_matrix_make(&a, describe(format_named("bf16"), 2, K), FILL_ORDINARY, &r);
    test_matrix_make(&b, describe(format_named("mxfp4"), N, K), FILL_ORDINARY, &r);
    test_matrix_make(&d, describe(format_named("f32"), 2, N), FILL_ORDINARY, &r);
    for (int64_t i = 0; i < (int64_t)2 * K; i++)
        ((uint16_t *)a.m.data)[i] = 0x3a80; /* 0x3a80 is 2^-10 in bf16. */
    memset(b.m.data, 0x11, b.data_bytes);
    memset(b.m.scales, 127, b.scale_bytes);
    ((uint8_t *)b.m.scales)[BAD * SCALES + 3] = 255;
    bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &a.m, .b = &b.m, .d = &d.m};
    desc.kernel = kernel;
    for (size_t i = 0; i < BSMM_COUNT(devices); i++) {
        bsmm_explanation e;
        desc.device = devices[i];
        if (!is_taken(&desc, &e)) skip();
        if (test_multiply(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        check_results(&a, &b, &d, e.bound);
    }
    test_matrix_free(&a), test_matrix_free(&b), test_matrix_free(&d);
}

/* Fills an operand of e4m3, e5m2 or e2m1 with elements of 1 and scales of 2^exponent. */
static void fill_power(test_matrix *t, int exponent) {
    const bsmm_format *f = &t->m.format;
    const int one = f->elem == BSMM_ELEM_E4M3 ? 0x38 : f->elem == BSMM_ELEM_E5M2 ? 0x3c : 0x22;
    memset(t->m.data, one, t->data_bytes);
    if (f->scale == BSMM_SCALE_E8M0) memset(t->m.scales, 127 + exponent, t->scale_bytes);
    for (uint64_t i = 0; f->scale == BSMM_SCALE_F32 && i < t->scale_bytes / 4; i++)
        ((float *)t->m.scales)[i] = ldexpf(1, exponent);
}

/* Tests GEMMs in which the product of two elements underflows in fp32, although the sum of all
 * products does not. */
static void test_underflow(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"mxfp8", "mxfp8"},           {"mxfp8", "mxfp4"},       {"mxfp4", "mxfp4"},
        {"mxfp8_e5m2", "mxfp8_e5m2"}, {"e4m3_row", "e4m3_row"}, {"fp8_group128", "fp8_block128"},
        {"e4m3_row", "mxfp8"},        {"e4m3_row", "mxfp4"}};
    enum { M = 3, N = 20, K = 160 };
    rng r = {7};
    for (size_t i = 0; i < BSMM_COUNT(pairs) * BSMM_COUNT(devices); i++) {
        test_matrix a, b, d;
        test_matrix_make(&a, describe(format_of(pairs[i / 2][0], M, K), M, K), FILL_ORDINARY, &r);
        test_matrix_make(&b, describe(format_of(pairs[i / 2][1], N, K), N, K), FILL_ORDINARY, &r);
        test_matrix_make(&d, describe(format_named("f32"), M, N), FILL_ORDINARY, &r);
        fill_power(&a, -75), fill_power(&b, -76);
        bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &a.m, .b = &b.m, .d = &d.m};
        desc.kernel = kernel, desc.device = devices[i % 2];
        bsmm_explanation e;
        if (!is_taken(&desc, &e)) skip();
        if (test_multiply(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        check_results(&a, &b, &d, e.bound);
        test_matrix_free(&a), test_matrix_free(&b), test_matrix_free(&d);
    }
}

/* Tests the reasons that the kernel gives if it refuses a product. */
static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int64_t m, k, a_ld;
        uint32_t b_layout;
        const char *reason; /* `reason` is NULL if the kernel accepts the product. */
    } rules[] = {
        {"bf16", "mxfp4", 64, 96, 96, 0, NULL},
        {"bf16", "mxfp4", 65, 96, 96, 0, "A has 65 rows; the kernel takes at most 64"},
        {"f32", "mxfp4", 16, 96, 96, 0,
         "A is f32 and B is mxfp4; the kernel takes bf16 or f16 times mxfp4"},
        {"mxfp8", "mxfp8_e5m2", 16, 96, 96, 0,
         "A is mxfp8 and B is mxfp8_e5m2; the kernel takes bf16 or f16 times mxfp4"},
        {"bf16", "mxfp4", 16, 80, 80, 0, "K is 80 and A's ld is 80; K must be a multiple of 32"},
        {"bf16", "mxfp4", 16, 96, 97, 0, "K is 96 and A's ld is 97; K must be"},
        {"mxfp8", "mxfp8", 16, 96, 104, 0, "K is 96 and A's ld is 104; K must be"},
        {"bf16", "mxfp4", 16, 96, 96, BSMM_LAYOUT_NV_128X4,
         "B's scales have the layout nv_128x4; the kernel takes row_major"},
        {"bf16", "fp8_group128", 16, 256, 256, 0,
         "B has block_rows 1; the kernel takes multiples of 16"},
        {"fp8_group128", "fp8_block128", 16, 96, 96, 0, NULL},
    };
    for (size_t i = 0; i < BSMM_COUNT(rules); i++) {
        bsmm_matrix a = describe(format_named(rules[i].a), rules[i].m, rules[i].k);
        bsmm_matrix b = describe(format_named(rules[i].b), 32, rules[i].k);
        bsmm_matrix d = describe(format_named("bf16"), rules[i].m, 32);
        a.ld = rules[i].a_ld, b.scale_layout = rules[i].b_layout;
        if (rules[i].b_layout) b.scale_bytes = 0;
        bsmm_matmul_desc desc = {
            .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .device = devices[i % 2]};
        bsmm_explanation e = BSMM_INIT(bsmm_explanation);
        bool found = false;
        for (uint32_t j = 0; !found && bsmm_explain(&desc, j, &e) == BSMM_OK; j++)
            found = strcmp(e.kernel, kernel) == 0;
        if (!found || strstr(e.reason, "built without")) skip();
        const bool right =
            rules[i].reason ? strstr(e.reason, rules[i].reason) != NULL : e.accepts != 0;
        if (!right) fail_msg("rule %zu: %s", i, e.accepts ? "is accepted" : e.reason);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_nan_scale),
        cmocka_unit_test(test_underflow), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
