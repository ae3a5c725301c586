/* Tests that kernels without support for epilogues refuse them and say so. Also tests that the
 * message for each broken rule of an epilogue names the field. */
#include "activated.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Tests that every kernel either accepts the epilogue or names the reason for refusing it. */
static void test_refusals(void **state) {
    (void)state;
    rng r = {77};
    activated p;
    activated_make(&p, &gpt_oss, "f32", false, &r);
    bsmm_explanation with = {.struct_size = sizeof with}, without = with;
    int accepts = 0, refuses = 0;
    for (uint32_t i = 0; bsmm_explain(&p.desc, i, &with) == BSMM_OK; i++) {
        bsmm_matmul_desc plain = p.desc;
        bsmm_matrix d = describe(format_named("f32"), M, N);
        plain.epilogue = NULL;
        plain.d = &d;
        assert_int_equal(bsmm_explain(&plain, i, &without), BSMM_OK);
        accepts += with.accepts != 0;
        if (with.accepts || !without.accepts) continue;
        assert_string_equal(with.reason,
                            "epilogue is set; the kernel computes only alpha, beta and bias");
        refuses++;
    }
    assert_true(accepts >= 2);
    print_message("%d kernels have the epilogue, %d refuse it by name\n", accepts, refuses);
    activated_free(&p);
}

static const struct {
    const char *field;
    /* In this table, a struct_size of 0 stands for the valid size. Only a struct_size of 1 is used
     * as it is. */
    bsmm_epilogue e;
} broken[] = {
    {"epilogue.struct_size", {.struct_size = 1}},
    {"epilogue.activation", {.activation = 9}},
    {"epilogue.halves", {.activation = BSMM_ACTIVATION_SWIGLU, .halves = 2}},
    {"epilogue.halves", {.activation = BSMM_ACTIVATION_SILU, .halves = 1}},
    {"epilogue.scale_by", {.scale_by = 4}},
    {"epilogue.reserved", {.reserved = 1}},
    {"epilogue.limit", {.activation = BSMM_ACTIVATION_RELU, .limit = 7}},
    {"epilogue.limit", {.activation = BSMM_ACTIVATION_GEGLU, .limit = -7}},
    {"epilogue.limit", {.activation = BSMM_ACTIVATION_GEGLU, .limit = NAN}},
    {"epilogue.slope", {.activation = BSMM_ACTIVATION_GELU, .slope = 2}},
    {"epilogue.slope", {.activation = BSMM_ACTIVATION_SILU, .slope = INFINITY}},
    {"epilogue.up_offset", {.activation = BSMM_ACTIVATION_SILU, .up_offset = 1}},
    {"epilogue.up_offset", {.activation = BSMM_ACTIVATION_SWIGLU, .up_offset = NAN}},
    /* Without a gated activation, D must have N columns instead of HALF. */
    {"d.cols", {.activation = BSMM_ACTIVATION_NONE}},
    {"row_scale", {.activation = BSMM_ACTIVATION_SWIGLU, .scale_by = BSMM_SCALE_BY_ROW}},
    {"col_scale", {.activation = BSMM_ACTIVATION_SWIGLU, .scale_by = BSMM_SCALE_BY_COL}},
};

static void expect(activated *p, const char *field) {
    assert_int_equal(bsmm_matmul(&p->desc), BSMM_E_INVALID);
    if (strncmp(bsmm_error_message(), field, strlen(field)) != 0)
        fail_msg("%s: got \"%s\"", field, bsmm_error_message());
}

static void test_broken_rules(void **state) {
    (void)state;
    rng r = {78};
    activated p;
    activated_make(&p, &gpt_oss, "f32", false, &r);
    for (size_t i = 0; i < BSMM_COUNT(broken); i++) {
        p.epilogue = broken[i].e;
        if (p.epilogue.struct_size == 0) p.epilogue.struct_size = sizeof p.epilogue;
        expect(&p, broken[i].field);
    }
    activated_free(&p);
}

static void test_broken_memory(void **state) {
    (void)state;
    rng r = {79};
    activated p;
    activated_make(&p, &gpt_oss, "f32", true, &r);
    p.epilogue.row_scale = (const float *)(const void *)((const uint8_t *)p.row_scale + 1);
    expect(&p, "row_scale");
    p.epilogue.row_scale = p.d.m.data;
    expect(&p, "d: its memory overlaps row_scale");
    p.epilogue.row_scale = p.row_scale;
    bsmm_matrix residual = p.residual.m;
    p.epilogue.residual = &residual;
    residual.data = p.d.m.data;
    expect(&p, "d: its memory overlaps residual");
    residual.data = NULL;
    expect(&p, "residual.data");
    residual.cols = HALF + 1;
    residual.data_bytes = 0;
    expect(&p, "residual.cols");
    residual.format = format_named("e4m3");
    expect(&p, "residual.format");
    /* C has as many columns as A x B^T. The D of a gated product has half as many, so C and D must
     * not be the same memory. */
    p.epilogue.residual = &p.residual.m;
    bsmm_matrix c = describe(p.d.m.format, M, N);
    c.data = p.d.m.data;
    p.desc.c = &c;
    expect(&p, "d: its memory overlaps c");
    activated_free(&p);
}

static void test_odd_rows_of_b(void **state) {
    (void)state;
    rng r = {80};
    activated p;
    activated_make(&p, &gpt_oss, "f32", false, &r);
    p.b.m.rows = N - 1;
    p.b.m.data_bytes = p.b.m.scale_bytes = 0;
    expect(&p, "b.rows");
    activated_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_broken_rules),
        cmocka_unit_test(test_broken_memory),
        cmocka_unit_test(test_odd_rows_of_b),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
