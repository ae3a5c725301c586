/* Tests the check of results in bench. The check must accept rounding errors and reject larger
 * errors. */
/* The test includes a source file of bench, because no library contains this code. */
#include "../../bench/validate.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { M = 5, N = 7, K = 3 };

/* Fills row r of A with r + 1 and row r of B with 1 / (r + 1). The exact result (r, c) is then K
 * (r + 1) / (c + 1). */
static void fill(float a[M][K], float b[N][K]) {
    for (int k = 0; k < K; k++) {
        for (int r = 0; r < M; r++)
            a[r][k] = (float)(r + 1);
        for (int r = 0; r < N; r++)
            b[r][k] = 1 / (float)(r + 1);
    }
}

/* Validates the exact results after rounding them to the format `elem` and multiplying result (2,
 * 3) by `factor`. */
static bench_result validate(uint32_t elem, double factor) {
    float a[M][K], b[N][K];
    uint32_t words[M * N] = {0};
    bsmm_matrix d = BSMM_INIT(bsmm_matrix);
    bench_result result = {0};
    size_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
    fill(a, b);
    for (int i = 0; i < M * N; i++) {
        uint32_t code;
        int row = i / N, col = i % N;
        double exact = (double)K * (row + 1) / (col + 1);
        float value = (float)(row == 2 && col == 3 ? exact * factor : exact);
        assert_int_equal(bsmm_encode_elem(elem, value, 0, &code), BSMM_OK);
        memcpy((char *)words + (size_t)i * bytes, &code, bytes);
    }
    d.format.elem = elem;
    d.rows = M, d.cols = N, d.data = words;
    bench_validate(&d, a[0], b[0], K, NULL, &result);
    return result;
}

static void test_roundings_pass(void **state) {
    (void)state;
    static const struct {
        uint32_t elem;
        double rounding;
    } cases[] = {{BSMM_ELEM_F32, 0x1p-22}, {BSMM_ELEM_F16, 0x1p-11}, {BSMM_ELEM_BF16, 0x1p-8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench_result r = validate(cases[i].elem, 1);
        assert_int_equal(r.checked, M * N);
        assert_int_equal(r.failed, 0);
        assert_true(r.max_error <= cases[i].rounding);
    }
}

/* Tests the tolerance of the check, 1e-3 + 1e-3 * |result|. For result (2, 3) this allows a
 * relative error of 1.444e-3. */
static void test_tolerance(void **state) {
    (void)state;
    assert_int_equal(validate(BSMM_ELEM_F32, 1 + 1.44e-3).failed, 0);
    assert_int_equal(validate(BSMM_ELEM_F32, 1 - 1.44e-3).failed, 0);
    bench_result r = validate(BSMM_ELEM_F32, 1 + 1.45e-3);
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.worst_row, 2);
    assert_int_equal(r.worst_col, 3);
    assert_true(r.worst > r.worst_exact && fabs(r.worst_exact - 2.25) < 1e-6);
    assert_true(fabs(r.max_error - 1.45e-3) < 1e-6);
    assert_int_equal(validate(BSMM_ELEM_BF16, 1.01).failed, 1);
}

static void test_nan_and_inf_fail(void **state) {
    (void)state;
    bench_result r = validate(BSMM_ELEM_F16, (double)NAN);
    assert_int_equal(r.failed, 1);
    assert_true(isnan(r.max_error)); /* max_error stays NaN, although errors after it are finite. */
    assert_int_equal(validate(BSMM_ELEM_F16, (double)INFINITY).failed, 1);
}

/* Tests how bench chooses the results that it compares with exact ones. If there are too many
 * results, it compares only every n-th of them. The stride n must be odd, and the comparison must
 * not need more than a budget of multiplications. */
static void test_stride(void **state) {
    (void)state;
    assert_int_equal(choose_stride(1024 * 1024, 256), 1);
    int64_t outputs = (int64_t)8192 * 8192, k = 8192, stride = choose_stride(outputs, k);
    assert_true(stride % 2 == 1);
    assert_true(outputs / stride * k <= budget + k && outputs / stride * k > budget / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roundings_pass),
        cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_nan_and_inf_fail),
        cmocka_unit_test(test_stride),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
