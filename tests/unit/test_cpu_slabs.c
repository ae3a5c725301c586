/* Tests kernels that pack B in slabs, i.e. a few rows of B at a time. Results must be bitwise
 * identical to those with all of B in one slab. The workspace holds one slab, so it must not grow
 * with N. */
#include "cpu_hooks.h"
#include "slabs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t workspace_of(const bsmm_matmul_desc *desc) {
    bsmm_plan *plan;
    if (bsmm_plan_create(desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    bsmm_plan_destroy(plan);
    return bytes;
}

static bsmm_matrix make_d(const char *format, int64_t m, int64_t n) {
    bsmm_matrix d = describe(format_named(format), m, n);
    assert_int_equal(bsmm_data_bytes(&d, &d.data_bytes), BSMM_OK);
    assert_int_equal(bsmm_scale_bytes(&d, &d.scale_bytes), BSMM_OK);
    d.data = malloc(d.data_bytes);
    d.scales = d.scale_bytes ? malloc(d.scale_bytes) : NULL;
    return d;
}

/* The number M of rows of A decides how the threads of a kernel share the work. With few rows, a
 * product runs on one thread. With more rows, each thread computes some rows of D, and with many
 * rows, some cache blocks of D. */
static const struct {
    const char *a, *b, *d;
    int64_t m, n, k;
    uint32_t order, threads;
    fill how;
    bool bias;
} cases[] = {
    {"mxfp4", "mxfp4", "f32", 2, 3001, 97, BSMM_ORDER_COL, 1, FILL_ORDINARY, false},
    {"mxfp4", "mxfp4", "f32", 2, 3001, 97, BSMM_ORDER_COL, 3, FILL_EXTREME, true},
    {"bf16", "mxfp4", "f16", 3, 2999, 160, BSMM_ORDER_COL, 3, FILL_ORDINARY, false},
    {"f32", "nvfp4", "f32", 1, 2777, 65, BSMM_ORDER_COL, 1, FILL_EXTREME, true},
    {"mxfp8", "mxfp8", "bf16", 67, 2501, 129, BSMM_ORDER_ROW, 3, FILL_EXTREME, false},
    {"mxfp4", "mxfp4", "f32", 301, 2503, 193, BSMM_ORDER_ROW, 3, FILL_ORDINARY, true},
    {"nvfp4", "mxfp4", "mxfp8", 70, 3008, 64, BSMM_ORDER_COL, 3, FILL_ORDINARY, false},
};

static void test_bits(void **state) {
    (void)state;
    rng r = {21};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        test_matrix a, b;
        bsmm_matrix shape = describe(format_named(cases[i].b), cases[i].n, cases[i].k);
        shape.order = cases[i].order;
        if (cases[i].order == BSMM_ORDER_COL) shape.ld = 0;
        test_matrix_make(&a, describe(format_named(cases[i].a), cases[i].m, cases[i].k),
                         cases[i].how, &r);
        test_matrix_make(&b, shape, cases[i].how, &r);
        bsmm_matrix d = make_d(cases[i].d, cases[i].m, cases[i].n);
        float *bias = malloc((size_t)cases[i].n * sizeof *bias);
        for (int64_t j = 0; j < cases[i].n; j++)
            bias[j] = (float)rng_below(&r, 100);
        bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                 .a = &a.m,
                                 .b = &b.m,
                                 .d = &d,
                                 .bias = cases[i].bias ? bias : NULL,
                                 .bias_elem = cases[i].bias ? BSMM_ELEM_F32 : BSMM_ELEM_NONE,
                                 .threads = cases[i].threads};
        if (!slabs_compare(&desc, 0)) fail_msg("case %zu: %s", i, bsmm_error_message());
        free(bias);
        free(d.data);
        free(d.scales);
        test_matrix_free(&a);
        test_matrix_free(&b);
    }
}

/* Tests that the workspace is not larger than the bound that bsmm.h states. B is packed in slabs,
 * i.e. a part of its rows at a time. The products of this test have so many rows of B that the
 * workspace would exceed the bound if it held all of packed B. */
static void test_workspace(void **state) {
    (void)state;
    static const uint64_t l2 = 2 << 20, other = 96 << 20;
    static const char *const formats[] = {"mxfp4", "mxfp8", "bf16", "f32"};
    bsmm_cpu_pretend_l2_bytes(l2);
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (uint32_t threads = 1; threads <= 8; threads *= 8)
            for (int64_t m = 2; m <= 512; m *= 256) {
                bsmm_matrix a = describe(format_named(formats[i]), m, 16384);
                bsmm_matrix b = describe(format_named(formats[i]), 550000, 16384);
                bsmm_matrix d = describe(format_named("f32"), m, 550000);
                b.order = BSMM_ORDER_COL;
                bsmm_matmul_desc desc = {
                    .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .threads = threads};
                uint64_t bytes = workspace_of(&desc);
                if (bytes > (m > 2 ? 32 : 1) * l2 * threads + other)
                    fail_msg("%s, %lld rows, %u threads: %llu bytes", formats[i], (long long)m,
                             threads, (unsigned long long)bytes);
            }
    bsmm_cpu_pretend_l2_bytes(0);
}

/* Tests the size of the workspace for few rows of A. The workspace has a buffer for packed B for
 * each thread, whose size is at most that of the L2 cache. The test lets the library assume an L2
 * cache of `l2` bytes and then one of 2 * `l2` bytes. The workspace for the larger cache may be
 * larger by at most `l2` bytes for each thread. */
static void test_workspace_of_few_rows(void **state) {
    (void)state;
    static const uint64_t l2 = 32 << 20;
    bsmm_matrix a = describe(format_named("mxfp8"), 128, 16384);
    bsmm_matrix b = describe(format_named("mxfp8"), 550000, 16384);
    bsmm_matrix d = describe(format_named("f32"), 128, 550000);
    b.order = BSMM_ORDER_COL;
    for (uint32_t threads = 1; threads <= 8; threads *= 8) {
        const bsmm_matmul_desc desc = {
            .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .threads = threads};
        bsmm_cpu_pretend_l2_bytes(l2);
        const uint64_t bytes = workspace_of(&desc);
        bsmm_cpu_pretend_l2_bytes(2 * l2);
        assert_true(workspace_of(&desc) <= bytes + l2 * threads);
    }
    bsmm_cpu_pretend_l2_bytes(0);
}

/* Tests that a product with fewer rows of A never needs a larger workspace. A plan uses its
 * workspace for all numbers of rows up to its maximum. */
static void test_monotone(void **state) {
    (void)state;
    bsmm_cpu_pretend_l2_bytes(1 << 16);
    for (int64_t m = 1; m <= 300; m += 299) {
        uint64_t before_n = 0, before_k = 0;
        for (int64_t step = 1; step < 300; step++) {
            bsmm_matrix a = describe(format_named("mxfp4"), m, 700);
            bsmm_matrix b = describe(format_named("mxfp4"), 37 * step, 700);
            bsmm_matrix d = describe(format_named("f32"), m, 37 * step);
            b.order = BSMM_ORDER_COL;
            bsmm_matmul_desc desc = {
                .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .threads = 3};
            uint64_t bytes = workspace_of(&desc);
            assert_true(bytes >= before_n);
            before_n = bytes;
            a.cols = b.cols = 37 * step;
            b.rows = d.cols = 3000;
            bytes = workspace_of(&desc);
            assert_true(bytes >= before_k);
            before_k = bytes;
        }
    }
    bsmm_cpu_pretend_l2_bytes(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_workspace_of_few_rows),
        cmocka_unit_test(test_monotone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
