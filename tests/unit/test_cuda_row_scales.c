/* Tests GPU kernels for few rows of A with one fp32 scale for each row. Their fast path rounds
 * results in fp32. The slow path, for products with C or bias, rounds results in double. Both must
 * give bitwise identical results. The test is skipped without a GPU. */
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

/* Sets the scale of every second row to a random value within 16 binades of 1. */
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
        /* Zeros of different signs count as equal. The second product adds a C of zeros, and -0 + 0
         * is +0. */
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_row_scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
