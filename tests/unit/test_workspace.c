/* Tests that a run writes nothing outside of its workspace. A product whose workspace is larger
 * than any memory must be refused. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MARGIN = 1 << 16, MARK = 0x5c };

static void assert_marked(const uint8_t *margin, const char *kernel, const char *where) {
    for (size_t i = 0; i < MARGIN; i++)
        if (margin[i] != MARK) fail_msg("%s: a byte %s its workspace was written", kernel, where);
}

static void run_between_margins(const bsmm_matmul_desc *desc) {
    bsmm_plan *plan;
    if (bsmm_plan_create(desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    uint8_t *memory = aligned_alloc(64, (bytes + 2 * MARGIN + 63) / 64 * 64);
    memset(memory, MARK, bytes + 2 * MARGIN);
    bsmm_buffers buffers = {.struct_size = sizeof buffers,
                            .a = desc->a->data,
                            .a_scales = desc->a->scales,
                            .b = desc->b->data,
                            .b_scales = desc->b->scales,
                            .d = desc->d->data,
                            .d_scales = desc->d->scales,
                            .workspace = memory + MARGIN,
                            .workspace_bytes = bytes};
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    assert_marked(memory, desc->kernel, "before");
    assert_marked(memory + MARGIN + bytes, desc->kernel, "behind");
    free(memory);
    bsmm_plan_destroy(plan);
}

static int run_every_kernel(bsmm_matmul_desc *desc) {
    int count = 0;
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; !bsmm_explain(desc, i, &e); i++) {
        if (!e.accepts || strcmp(e.device, "cpu") != 0) continue;
        desc->kernel = e.kernel;
        run_between_margins(desc);
        desc->kernel = NULL;
        count++;
    }
    return count;
}

/* Tests products with a large N and a small K, for which the fp32 sums of a row take more memory
 * than the operands. */
static void test_margins(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *d;
        int64_t m, n, k;
    } cases[] = {
        {"mxfp4", "mxfp4", "f32", 3, 700, 32},     {"mxfp4", "mxfp4", "mxfp8", 37, 704, 32},
        {"bf16", "nvfp4", "nvfp4", 5, 512, 64},    {"mxfp8", "mxfp6_e3m2", "bf16", 70, 130, 190},
        {"f32", "f32", "fp8_group128", 9, 640, 8},
    };
    rng r = {17};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            test_matrix a, b, d;
            test_matrix_make(&a, describe(format_named(cases[i].a), cases[i].m, cases[i].k),
                             FILL_EXTREME, &r);
            test_matrix_make(&b, describe(format_named(cases[i].b), cases[i].n, cases[i].k),
                             FILL_EXTREME, &r);
            test_matrix_make(&d, describe(format_named(cases[i].d), cases[i].m, cases[i].n),
                             FILL_ORDINARY, &r);
            bsmm_matmul_desc desc = {
                .struct_size = sizeof desc, .a = &a.m, .b = &b.m, .d = &d.m, .threads = threads};
            assert_true(run_every_kernel(&desc) >= 1);
            test_matrix_free(&a);
            test_matrix_free(&b);
            test_matrix_free(&d);
        }
}

static void test_more_than_any_memory(void **state) {
    (void)state;
    int64_t n = ((int64_t)1 << 57) - 1;
    bsmm_matrix a = describe(format_named("e4m3"), 1, 1), b = describe(format_named("e4m3"), n, 1);
    bsmm_matrix d = describe(format_named("f32"), 1, n);
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .kernel = "ref", .threads = 1};
    bsmm_plan *plan;
    assert_int_equal(bsmm_plan_create(&desc, &plan), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "the workspace of kernel ref overflows"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margins),
        cmocka_unit_test(test_more_than_any_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
