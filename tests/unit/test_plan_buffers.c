/* Tests the buffers of a run. They must match the plan and must not overlap. Every mistake gives
 * INVALID, names the field, and leaves D unchanged. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 5, N = 64, K = 128, GUARD = 0x5a, ARENA = 1 << 20 };

typedef struct fixture {
    test_matrix a, b, d;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    float extra[M * N], global; /* memory of C, bias and a second-level scale */
    uint8_t *arena;
} fixture;

static void fixture_make(fixture *f, const char *a, uint32_t packed) {
    rng r = {7};
    test_matrix_make(&f->a, describe(format_named(a), M, K), FILL_ORDINARY, &r);
    test_matrix_make(&f->b, describe(format_named("mxfp4"), N, K), FILL_ORDINARY, &r);
    test_matrix_make(&f->d, describe(format_named("f32"), M, N), FILL_ORDINARY, &r);
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &f->a.m, .b = &f->b.m, .d = &f->d.m, .b_packed = packed};
    assert_int_equal(bsmm_plan_create(&desc, &f->plan), BSMM_OK);
    f->arena = aligned_alloc(64, ARENA);
    f->global = 1;
    assert_true(2 * bsmm_plan_workspace_bytes(f->plan) + 2 * bsmm_plan_packed_b_bytes(f->plan) +
                    256 <
                ARENA);
    f->buffers = (bsmm_buffers){.struct_size = sizeof f->buffers,
                                .a = f->a.m.data,
                                .a_scales = f->a.m.scales,
                                .b = f->b.m.data,
                                .b_scales = f->b.m.scales,
                                .d = f->d.m.data,
                                .workspace = f->arena,
                                .workspace_bytes = bsmm_plan_workspace_bytes(f->plan)};
    memset(f->d.m.data, GUARD, sizeof f->extra);
}

static void fixture_free(fixture *f) {
    bsmm_plan_destroy(f->plan);
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
    free(f->arena);
}

static void expect_invalid(const fixture *f, const bsmm_buffers *buffers, const char *message) {
    assert_int_equal(bsmm_plan_run(f->plan, buffers), BSMM_E_INVALID);
    if (!strstr(bsmm_error_message(), message))
        fail_msg("\"%s\" does not say \"%s\"", bsmm_error_message(), message);
    for (size_t i = 0; i < sizeof f->extra; i++)
        assert_int_equal(((const uint8_t *)f->d.m.data)[i], GUARD);
}

static void test_surplus(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    bsmm_buffers bad = f.buffers;
    bad.c = f.extra;
    expect_invalid(&f, &bad, "c: given, but the plan's desc.beta is 0");
    bad = f.buffers;
    bad.bias = f.extra;
    expect_invalid(&f, &bad, "bias: given, but the plan's desc.bias_elem is 0");
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

static void test_short_struct(void **state) {
    static const uint32_t sizes[] = {8, 16, 64, 104};
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bsmm_buffers bad = f.buffers;
        char message[80];
        bad.struct_size = sizes[i];
        snprintf(message, sizeof message, "buffers.struct_size: value is %u; must be at least 112",
                 sizes[i]);
        expect_invalid(&f, &bad, message);
    }
    /* the struct size of callers that were built with the first version */
    f.buffers.struct_size = offsetof(bsmm_buffers, packed_b);
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

/* Tests overlaps with the workspace: each buffer ends one element inside it, or begins in its last
 * elements. */
static void test_workspace(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "mxfp8", 0);
    uint8_t *const begin = f.arena + ARENA / 2;
    uint8_t *const last = begin + f.buffers.workspace_bytes - 4;
    bsmm_buffers bad = f.buffers;
    bad.workspace = begin;
    const bsmm_buffers apart = bad;
    bad.d = begin;
    expect_invalid(&f, &bad, "workspace: its memory overlaps d's");
    bad.d = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps d's");
    bad.d = begin - sizeof f.extra + 4;
    expect_invalid(&f, &bad, "workspace: its memory overlaps d's");
    bad = apart, bad.a = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps a's");
    bad = apart, bad.a_scales = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps a's");
    bad = apart, bad.b = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps b's");
    bad = apart, bad.b_scales = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps b's");
    bad = apart, bad.a_global = (const float *)(void *)last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps a's");
    bad = apart, bad.d = begin - sizeof f.extra;
    assert_int_equal(bsmm_plan_run(f.plan, &bad), BSMM_OK);
    bad = apart, bad.d = last + 4;
    assert_int_equal(bsmm_plan_run(f.plan, &bad), BSMM_OK);
    fixture_free(&f);
}

static void test_c_and_bias_in_workspace(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    bsmm_plan_destroy(f.plan);
    const float one = 1;
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &f.a.m,
                             .b = &f.b.m,
                             .c = &f.d.m,
                             .d = &f.d.m,
                             .beta = &one,
                             .bias_elem = BSMM_ELEM_F32};
    assert_int_equal(bsmm_plan_create(&desc, &f.plan), BSMM_OK);
    f.buffers.workspace_bytes = bsmm_plan_workspace_bytes(f.plan);
    f.buffers.c = f.extra;
    f.buffers.bias = f.arena;
    expect_invalid(&f, &f.buffers, "workspace: its memory overlaps the bias's");
    f.buffers.bias = f.extra;
    f.buffers.c = f.arena;
    expect_invalid(&f, &f.buffers, "workspace: its memory overlaps c's");
    fixture_free(&f);
}

static void test_packed(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "mxfp8", 1);
    uint64_t bytes = bsmm_plan_packed_b_bytes(f.plan);
    uint8_t *const packed = f.arena + ARENA / 2;
    bsmm_buffers bad = f.buffers;
    bad.b = packed + bytes - 1;
    assert_int_equal(bsmm_pack_b(f.plan, &bad, packed, bytes), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "packed_b: its memory overlaps b's"));
    assert_int_equal(bsmm_pack_b(f.plan, &f.buffers, packed, bytes), BSMM_OK);
    f.buffers.packed_b = packed;
    f.buffers.packed_b_bytes = bytes;
    bad = f.buffers, bad.d = packed + bytes - 4;
    expect_invalid(&f, &bad, "packed_b: its memory overlaps d's");
    bad = f.buffers, bad.a = packed + bytes - 1;
    expect_invalid(&f, &bad, "packed_b: its memory overlaps a's");
    bad = f.buffers, bad.workspace = packed + (bytes - 1) / 64 * 64;
    expect_invalid(&f, &bad, "workspace: its memory overlaps packed_b's");
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surplus),   cmocka_unit_test(test_short_struct),
        cmocka_unit_test(test_workspace), cmocka_unit_test(test_c_and_bias_in_workspace),
        cmocka_unit_test(test_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
