/* Tests that a row of D is bitwise identical for every M, although the library uses different
 * kernels for few rows of A and for many. The test covers every pair of formats, with ordinary and
 * with extreme scales. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* With AddressSanitizer the test is slow, so it tries fewer values of M. */
#ifdef __SANITIZE_ADDRESS__
enum { WALKED = 18 };
#else
enum { WALKED = 40 };
#endif
enum { N = 45, K = 676, MOST = 64 };

static const char *const formats[] = {
    "f32",   "f16",   "bf16",         "e4m3",         "e5m2",       "e3m2",
    "e2m3",  "e2m1",  "mxfp8",        "mxfp8_e5m2",   "mxfp6_e2m3", "mxfp6_e3m2",
    "mxfp4", "nvfp4", "fp8_group128", "fp8_block128",
};

typedef struct fixture {
    test_matrix a, b, d;
    float *whole; /* `whole` holds D of the product with all rows of A. */
} fixture;

/* Replaces every `every`-th scale by an extreme one, such as zero or NaN. Some of these scales
 * belong to blocks of zeros. */
static void sprinkle(test_matrix *t, int64_t every, rng *r) {
    static const uint32_t codes[][4] = {
        [BSMM_SCALE_E8M0] = {0, 254, 60, 0xff},
        [BSMM_SCALE_E4M3] = {0, 0x7e, 1, 0x7f},
        [BSMM_SCALE_F32] = {0, 0x7f7fffff, 0x00000001, 0x7fc00000},
    };
    const bsmm_format *f = &t->m.format;
    if (f->scale == BSMM_SCALE_NONE) return;
    for (int64_t row = 0; row < t->m.rows; row += every) {
        int64_t k = (int64_t)rng_below(r, (uint32_t)t->m.cols);
        uint32_t kind = rng_below(r, 8);
        uint64_t at;
        assert_int_equal(bsmm_scale_offset(&t->m, row / f->block_rows, k / f->block_cols, &at),
                         BSMM_OK);
        bsmm_scale_store_code(f->scale, t->m.scales, at, codes[f->scale][kind % 4]);
        int64_t from = k / f->block_cols * f->block_cols;
        for (int64_t c = from; kind < 4 && c < from + f->block_cols && c < t->m.cols; c++)
            bsmm_elem_store(f->elem, t->m.data, (uint64_t)(row * t->m.cols + c), 0);
    }
}

static const char *run_rows(fixture *f, int64_t m) {
    const bsmm_matrix a = rows_of(&f->a.m, 0, m);
    bsmm_matrix d = rows_of(&f->d.m, 0, m);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &a, .b = &f->b.m, .d = &d};
    memset(d.data, 0xa5, f->d.data_bytes);
    assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&desc, i, &e) == BSMM_OK; i++)
        if (e.accepts) return e.kernel;
    fail();
    return NULL;
}

/* Tests that the bits of a row of D do not depend on the number of rows of A. Computes D with all
 * rows of A and then with only the first M rows, for several M. The M rows of D must be bitwise
 * identical to those of the first product. If the library uses another kernel for M = 1 than for
 * all rows, it changes kernels at some M in between, so the function tries every M up to WALKED.
 * Otherwise it tries only M = 1 and M = WALKED. */
static void check_pair(fixture *f, const char *a, const char *b) {
    const char *last = run_rows(f, MOST);
    memcpy(f->whole, f->d.m.data, f->d.data_bytes);
    bool changes = strcmp(run_rows(f, 1), last) != 0;
    for (int64_t m = 1; m <= WALKED; m += changes ? 1 : WALKED - 1) {
        const char *kernel = run_rows(f, m);
        for (int64_t i = 0; i < m; i++)
            if (memcmp(f->whole + i * N, (float *)f->d.m.data + i * N, N * sizeof(float)) != 0)
                fail_msg("%s x %s: row %lld of %lld differs between %s and %s (%d rows)", a, b,
                         (long long)i, (long long)m, kernel, last, MOST);
    }
}

static void check_formats(const char *a, const char *b, fill how, int64_t every, rng *r) {
    fixture f;
    test_matrix_make(&f.a, describe(format_named(a), MOST, K), how, r);
    test_matrix_make(&f.b, describe(format_named(b), N, K), how, r);
    test_matrix_make(&f.d, describe(format_named("f32"), MOST, N), FILL_ORDINARY, r);
    if (every) {
        sprinkle(&f.a, 2 * every, r);
        sprinkle(&f.b, every, r);
    }
    f.whole = malloc(f.d.data_bytes);
    check_pair(&f, a, b);
    free(f.whole);
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
    test_matrix_free(&f.d);
}

static void check_all_pairs(fill how, int64_t every, uint64_t seed) {
    rng r = {seed};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (size_t j = 0; j < BSMM_COUNT(formats); j++)
            check_formats(formats[i], formats[j], how, every, &r);
}

static void test_ordinary(void **state) {
    (void)state;
    check_all_pairs(FILL_ORDINARY, 0, 51);
}

static void test_extreme(void **state) {
    (void)state;
    check_all_pairs(FILL_EXTREME, 0, 52);
}

static void test_special(void **state) {
    (void)state;
    check_all_pairs(FILL_SPECIAL, 0, 53);
}

static void test_sprinkled(void **state) {
    (void)state;
    check_all_pairs(FILL_ORDINARY, 7, 54);
    check_all_pairs(FILL_ORDINARY, 23, 55);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary),
        cmocka_unit_test(test_extreme),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_sprinkled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
