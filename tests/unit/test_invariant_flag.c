/* Tests the flag BSMM_MATMUL_BATCH_INVARIANT. With this flag, a kernel must give a row of D the
 * same bits for every M, at every row index, and whatever the other rows are. A kernel that cannot
 * do this must refuse the product and name the flag. */
#include "core/describe.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64, N = 70, K = 516, G = 3 };

static const char *const pairs[][2] = {
    {"bf16", "mxfp4"},  {"mxfp8", "mxfp4"},      {"mxfp4", "mxfp4"},
    {"nvfp4", "nvfp4"}, {"f32", "fp8_block128"}, {"fp8_group128", "fp8_block128"},
};

typedef struct fixture {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
    float *whole;
} fixture;

static void fixture_make(fixture *f, const char *const pair[2], rng *r) {
    test_matrix_make(&f->a, describe(format_named(pair[0]), MOST, K), FILL_ORDINARY, r);
    test_matrix_make(&f->b, describe(format_named(pair[1]), N, K), FILL_ORDINARY, r);
    test_matrix_make(&f->d, describe(format_named("f32"), MOST, N), FILL_ORDINARY, r);
    f->whole = malloc(f->d.data_bytes);
    f->desc = (bsmm_matmul_desc){.struct_size = sizeof f->desc,
                                 .a = &f->a.m,
                                 .b = &f->b.m,
                                 .d = &f->d.m,
                                 .flags = BSMM_MATMUL_BATCH_INVARIANT};
}

static void fixture_free(fixture *f) {
    free(f->whole);
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
}

/* Computes m rows of D from row `first` on by a separate product, and compares them with the same
 * rows of the whole product. */
static void check_rows(fixture *f, const char *kernel, int64_t first, int64_t m) {
    const bsmm_matrix a = rows_of(&f->a.m, first, m);
    const bsmm_matrix d = rows_of(&f->d.m, 0, m);
    bsmm_matmul_desc desc = f->desc;
    desc.a = &a;
    desc.d = &d;
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    if (memcmp(f->whole + first * N, d.data, (size_t)(m * N) * sizeof(float)) != 0)
        fail_msg("%s: rows %lld to %lld alone differ", kernel, (long long)first,
                 (long long)(first + m));
}

static void test_rows(void **state) {
    (void)state;
    static const int64_t places[][2] = {{0, 1}, {63, 1}, {7, 2}, {30, 17}, {5, 33}, {1, 63}};
    rng r = {121};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        fixture f;
        int ran = 0;
        fixture_make(&f, pairs[i], &r);
        for (test_walk w = test_walk_begin(&f.desc); test_walk_next(&w); ran++) {
            assert_int_equal(test_multiply(&f.desc), BSMM_OK);
            memcpy(f.whole, f.d.m.data, f.d.data_bytes);
            for (size_t q = 0; q < BSMM_COUNT(places); q++)
                check_rows(&f, w.e.kernel, places[q][0], places[q][1]);
        }
        assert_true(ran >= test_walk_least(2));
        fixture_free(&f);
    }
}

/* Tests the kernels that the library itself chooses, for few and for many rows of A. */
static void test_chosen_kernels(void **state) {
    (void)state;
    rng r = {122};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        fixture f;
        fixture_make(&f, pairs[i], &r);
        assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
        memcpy(f.whole, f.d.m.data, f.d.data_bytes);
        for (int64_t m = 1; m <= 40; m += 3)
            check_rows(&f, "chosen kernels", MOST - m, m);
        fixture_free(&f);
    }
}

/* Tests groups of rows of A that share one matrix B. */
static void test_groups(void **state) {
    (void)state;
    rng r = {123};
    const int32_t ends[G] = {5, 6, MOST};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        fixture f;
        fixture_make(&f, pairs[i], &r);
        assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
        memcpy(f.whole, f.d.m.data, f.d.data_bytes);
        const bsmm_group group = {.struct_size = sizeof group,
                                  .kind = BSMM_GROUP_ROWS,
                                  .count = G,
                                  .b_step = BSMM_GROUP_SHARED,
                                  .b_scale_step = BSMM_GROUP_SHARED,
                                  .sizes = ends};
        f.desc.group = &group;
        memset(f.d.m.data, 0xa5, f.d.data_bytes);
        assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
        assert_memory_equal(f.whole, f.d.m.data, f.d.data_bytes);
        fixture_free(&f);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const bsmm_backend elsewhere = {.name = "elsewhere"};
    static const bsmm_product product = {.invariant = true, .backend = &elsewhere};
    uint32_t refuse = 0;
    for (uint32_t i = 0; bsmm_kernel_at(i); i++) {
        const bsmm_kernel *kernel = bsmm_kernel_at(i);
        const char *reason = bsmm_features_refuse(kernel, &product);
        if (strcmp(kernel->device, "cpu") == 0) assert_null(reason);
        if (!reason) continue;
        assert_string_equal(reason,
                            "flags has BATCH_INVARIANT; the kernel's order of sums depends on more "
                            "than formats and K");
        refuse++;
    }
    assert_true(refuse > 0);
    print_message("%u kernels refuse by name\n", refuse);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_chosen_kernels),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
