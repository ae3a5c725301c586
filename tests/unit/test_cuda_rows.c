/* A row of D has the same bits however many rows of A the decode kernel takes: it multiplies few by
 * mma.sync, more by wgmma, in blocks of other sizes. Skipped without a GPU. */
#include "cuda.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 77, MOST = 32 };

static const char *const weights[] = {"mxfp4", "nvfp4", "mxfp8", "fp8_block128"};
static const int64_t rows[] = {1, 2, 3, 8, 9, 16, 17, 24, 31};

typedef struct fixture {
    test_matrix a, b, d;
    float whole[MOST * N]; /* D of all rows */
} fixture;

static bool multiply(fixture *f, int64_t m) {
    const bsmm_matrix a = rows_of(&f->a.m, 0, m);
    bsmm_matrix d = rows_of(&f->d.m, 0, m);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a,
                             .b = &f->b.m,
                             .d = &d,
                             .device = "cuda:0",
                             .kernel = "cuda_sm90_decode"};
    memset(d.data, 0xa5, f->d.data_bytes);
    return test_multiply(&desc) == BSMM_OK;
}

/* f16 in two parts: half of the rows. */
static int64_t most_rows(const fixture *f) {
    return f->a.m.format.elem == BSMM_ELEM_F16 ? MOST / 2 : MOST;
}

static void check_pair(const char *a, const char *b, int64_t k, fill how, rng *r) {
    fixture f;
    test_matrix_make(&f.a, describe(format_named(a), MOST, k), how, r);
    test_matrix_make(&f.b, describe(format_named(b), N, k), how, r);
    test_matrix_make(&f.d, describe(format_named("f32"), MOST, N), FILL_ORDINARY, r);
    const int64_t most = most_rows(&f);
    if (!multiply(&f, most)) fail_msg("%s x %s: %s", a, b, bsmm_error_message());
    memcpy(f.whole, f.d.m.data, f.d.data_bytes);
    for (size_t i = 0; i < BSMM_COUNT(rows) && rows[i] < most; i++) {
        assert_true(multiply(&f, rows[i]));
        if (memcmp(f.whole, f.d.m.data, (size_t)rows[i] * N * sizeof(float)) != 0)
            fail_msg("%s x %s, K %lld: %lld rows differ from %lld", a, b, (long long)k,
                     (long long)rows[i], (long long)most);
    }
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
    test_matrix_free(&f.d);
}

static void check_all(const char *const *names, size_t count, int64_t k, fill how, uint64_t seed) {
    if (test_cuda_device()->capability != 90) skip();
    rng r = {seed};
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < BSMM_COUNT(weights); j++)
            check_pair(names[i], weights[j], k, how, &r);
}

/* K ends inside a step of 128. */
static void test_ordinary(void **state) {
    static const char *const names[] = {"bf16", "f16", "mxfp8", "fp8_group128"};
    (void)state;
    check_all(names, BSMM_COUNT(names), 1312, FILL_ORDINARY, 61);
}

/* K long enough for blocks of a cluster to share it, an odd number of steps. */
static void test_long(void **state) {
    static const char *const names[] = {"bf16"};
    (void)state;
    check_all(names, BSMM_COUNT(names), 4224, FILL_ORDINARY, 62);
}

static void test_extreme(void **state) {
    static const char *const names[] = {"bf16", "mxfp8", "fp8_group128"};
    (void)state;
    check_all(names, BSMM_COUNT(names), 672, FILL_EXTREME, 63);
}

static void test_special(void **state) {
    static const char *const names[] = {"bf16", "mxfp8", "fp8_group128"};
    (void)state;
    check_all(names, BSMM_COUNT(names), 672, FILL_SPECIAL, 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_extreme),
        cmocka_unit_test(test_special),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
