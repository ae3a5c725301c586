/* Tests products with one fp32 scale for each row. K is no multiple of 128, the length of the
 * segments that the vector kernels sum separately. */
#include "base/cpu.h"
#include "product.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t lengths[] = {32, 96, 200, 1056, 1440};

static bsmm_format by_row(uint32_t elem, int64_t k) {
    return (bsmm_format){elem, BSMM_SCALE_F32, 1, (uint32_t)k};
}

/* Checks that a kernel for few rows of A gives bitwise the same results as the kernel that packs
 * B. */
static void check_few_rows(product *p, const char *kernel, const float *d) {
    char packed[64];
    const char *suffix = strstr(kernel, "_small_m");
    if (!suffix) return;
    snprintf(packed, sizeof packed, "%.*s", (int)(suffix - kernel), kernel);
    float *want = result_of(p, packed);
    assert_memory_equal(d, want, (size_t)(p->d.rows * p->d.cols) * sizeof *d);
    free(want);
}

/* Compares the results of one kernel with sums in double. */
static void check_kernel(product *p, const char *kernel, const double *a, const double *b) {
    int64_t n = p->d.cols, k = p->a.m.cols;
    float *d = result_of(p, kernel);
    for (int64_t i = 0; i < p->d.rows * n; i++) {
        double sum = 0, size = 0;
        for (int64_t j = 0; j < k; j++) {
            double term = a[i / n * k + j] * b[i % n * k + j];
            sum += term;
            size += fabs(term);
        }
        if (!(fabs((double)d[i] - sum) <= 1e-5 * size))
            fail_msg("%s, K = %d, element %d: got %a, want %a", kernel, (int)k, (int)i,
                     (double)d[i], sum);
    }
    check_few_rows(p, kernel, d);
    free(d);
}

/* Tests the product with every kernel that accepts it. On a processor with AVX2, the first of these
 * kernels in bsmm's list must not be the scalar kernel cpu_f32. */
static void check_product(product *p) {
    double *a = test_matrix_values(&p->a), *b = test_matrix_values(&p->b);
    bsmm_explanation e = {.struct_size = sizeof e};
    bool found = false;
    for (uint32_t i = 0; !bsmm_explain(&p->desc, i, &e); i++) {
        if (!e.accepts) continue;
        if (!found && bsmm_cpu_features() & BSMM_CPU_AVX2)
            assert_string_not_equal(e.kernel, "cpu_f32");
        found = true;
        check_kernel(p, e.kernel, a, b);
    }
    assert_true(found);
    free(a);
    free(b);
}

static void check_formats(bsmm_format a, bsmm_format b, int64_t m, int64_t k, rng *r) {
    product p;
    product_make_of(&p, a, b, m, 37, k, FILL_ORDINARY, r);
    check_product(&p);
    product_free(&p);
}

static void test_row_scales(void **state) {
    (void)state;
    static const uint32_t wide[] = {BSMM_ELEM_BF16, BSMM_ELEM_F16};
    static const int64_t rows[] = {1, 7, 33, 100};
    rng r = {17};
    for (size_t i = 0; i < BSMM_COUNT(lengths) * BSMM_COUNT(rows); i++) {
        int64_t k = lengths[i / BSMM_COUNT(rows)], m = rows[i % BSMM_COUNT(rows)];
        bsmm_format row = by_row(BSMM_ELEM_E4M3, k), block = format_named("fp8_block128");
        check_formats(row, row, m, k, &r);
        check_formats(row, block, m, k, &r);
        check_formats(format_named("fp8_group128"), row, m, k, &r);
        check_formats(row, format_named("mxfp4"), m, k, &r);
        check_formats((bsmm_format){.elem = wide[i % 2]}, row, m, k, &r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_row_scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
