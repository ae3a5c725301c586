/* Tests `bsmm matmul --check`. It must accept a kernel's results. It must detect a single result
 * whose error exceeds the bound or that is a wrong NaN. */
/* The test includes a source file of the command bsmm, because no library contains this code. */
#include "../../cli/check.c" /* NOLINT(bugprone-suspicious-include) */

#include "operand.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { M = 5, N = 6, K = 64 };

void *cli_matrix_allocate(bsmm_matrix *matrix) {
    uint64_t data_bytes, scale_bytes;
    matrix->data_bytes = matrix->scale_bytes = 0;
    assert_int_equal(bsmm_data_bytes(matrix, &data_bytes), BSMM_OK);
    assert_int_equal(bsmm_scale_bytes(matrix, &scale_bytes), BSMM_OK);
    char *memory = malloc(data_bytes + scale_bytes);
    matrix->data = memory;
    matrix->data_bytes = data_bytes;
    if (matrix->format.scale == BSMM_SCALE_NONE) return memory;
    matrix->scales = memory + data_bytes;
    matrix->scale_bytes = scale_bytes;
    return memory;
}

bool cli_elem_find(const char *name, bsmm_elem_info *info) {
    *info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; bsmm_elem_at(i, info) == BSMM_OK; i++)
        if (strcmp(info->name, name) == 0) return true;
    return false;
}

typedef struct fixture {
    test_matrix a, b, d;
    float alpha;
    bsmm_matmul_desc desc;
} fixture;

static void fixture_make(fixture *f, const char *format) {
    rng r = {7};
    test_matrix_make(&f->a, describe(format_named(format), M, K), FILL_ORDINARY, &r);
    test_matrix_make(&f->b, describe(format_named(format), N, K), FILL_ORDINARY, &r);
    test_matrix_make(&f->d, describe(format_named("f32"), M, N), FILL_ORDINARY, &r);
    f->alpha = -0.5f;
    f->desc = BSMM_INIT(bsmm_matmul_desc);
    f->desc.a = &f->a.m;
    f->desc.b = &f->b.m;
    f->desc.d = &f->d.m;
    f->desc.alpha = &f->alpha;
    for (uint64_t i = 0; f->a.m.format.scale == BSMM_SCALE_E4M3 && i < f->a.scale_bytes; i += 3)
        ((uint8_t *)f->a.m.scales)[i] |= 0x80;
    assert_int_equal(bsmm_matmul(&f->desc), BSMM_OK);
}

static void fixture_free(fixture *f) {
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
}

static cli_check check(const fixture *f) {
    cli_check found;
    assert_true(cli_check_run(&f->desc, &found));
    return found;
}

/* Returns sum |a||b| for the result (row, col). The function follows the definitions of the formats
 * and calls none of the library's kernels. */
static double sum_of(const fixture *f, int64_t row, int64_t col) {
    double sum = 0;
    for (int64_t k = 0; k < K; k++)
        sum += fabs(test_matrix_value(&f->a, row, k) * test_matrix_value(&f->b, col, k));
    return sum;
}

static void check_format(const char *format) {
    fixture f;
    fixture_make(&f, format);
    assert_true(check(&f).share <= 1);
    float *d = f.d.m.data;
    for (int64_t i = 0; i < M * N; i++) {
        float right = d[i];
        /* The test adds an error of 2^-12 sum |a||b| to one result. For this K, such an error
         * exceeds the error bound of every kernel. */
        d[i] = right + (float)(0x1p-12 * fabs((double)f.alpha) * sum_of(&f, i / N, i % N));
        cli_check found = check(&f);
        assert_true(found.share > 1 && found.row == i / N && found.col == i % N);
        assert_true(found.got == (double)d[i]);
        d[i] = NAN;
        assert_true(check(&f).share > 1);
        d[i] = right;
    }
    fixture_free(&f);
}

static void test_finds_each_wrong_output(void **state) {
    (void)state;
    check_format("mxfp4");
    check_format("nvfp4"); /* In this format the test uses positive and negative scales. */
    check_format("f32");
}

/* Equal infinite values have no error, although the largest finite values of f16 and f32 differ. */
static void test_infinite_values(void **state) {
    (void)state;
    static const struct {
        double got, expected;
        bool passes;
    } cases[] = {
        {INFINITY, INFINITY, true},   {-INFINITY, -INFINITY, true}, {-INFINITY, INFINITY, false},
        {INFINITY, -INFINITY, false}, {INFINITY, 65472, false},     {65504, INFINITY, false},
        {INFINITY, 65520, true},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        cli_check check = {0};
        comparison with = {.check = &check, .bound = 0x1p-20};
        assert_true(cli_elem_find("f16", &with.elem) && cli_elem_find("f32", &with.f32));
        compare(&with, 0, 0, cases[i].got, cases[i].expected, 1);
        if ((check.share <= 1) != cases[i].passes) fail_msg("case %zu: %g", i, check.share);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_each_wrong_output),
        cmocka_unit_test(test_infinite_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
