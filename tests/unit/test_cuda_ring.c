/* Tests cuda_sm90_small_m, the kernel for few rows of A, with 64 rows of A and a long K. Shared
 * memory then has no room for all of A, so the kernel copies A through a ring buffer. A second
 * product has only the first 32 of these rows of A, and needs no ring buffer. Its D must be bitwise
 * identical to the first 32 rows of the first D. The test is skipped unless the GPU has compute
 * capability 9.0. */
#include "cuda.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 64, FEW = 32, N = 77 };

typedef struct fixture {
    test_matrix a, b, d;
} fixture;

/* Multiplies the first `rows` rows of A by B. */
static void multiply(fixture *f, int64_t rows) {
    const bsmm_matrix a = rows_of(&f->a.m, 0, rows);
    bsmm_matrix d = rows_of(&f->d.m, 0, rows);
    const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                   .a = &a,
                                   .b = &f->b.m,
                                   .d = &d,
                                   .device = "cuda:0",
                                   .kernel = "cuda_sm90_small_m"};
    if (test_multiply(&desc)) fail_msg("%lld rows: %s", (long long)rows, bsmm_error_message());
}

static void check(int64_t k, rng *r) {
    fixture f;
    float few[FEW * N];
    test_matrix_make(&f.a, describe(format_named("bf16"), ROWS, k), FILL_ORDINARY, r);
    test_matrix_make(&f.b, describe(format_named("mxfp8"), N, k), FILL_ORDINARY, r);
    test_matrix_make(&f.d, describe(format_named("f32"), ROWS, N), FILL_ORDINARY, r);
    multiply(&f, FEW);
    memcpy(few, f.d.m.data, sizeof few);
    multiply(&f, ROWS);
    assert_memory_equal(f.d.m.data, few, sizeof few);
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
    test_matrix_free(&f.d);
}

/* Tests the smallest ring buffer of A, with room for two steps of K for each warp. With K = 2464,
 * the kernel uses this ring buffer on a GPU of 6 SMs, and with K = 9248 on a GPU of 132 SMs. */
static void test_two_steps(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {71};
    check(2464, &r);
    check(9248, &r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
