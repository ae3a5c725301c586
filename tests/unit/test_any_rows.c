/* Tests plans with the flag BSMM_MATMUL_ANY_ROWS. Each run of such a plan chooses the number of
 * rows of A, up to a maximum. The rows of D that it writes must be bitwise identical to those of a
 * run with the maximum, and it must not write other rows. If the number of rows is in device
 * memory, any value there must be safe. */
#include "core/describe.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 70, N = 45, K = 420 };

typedef struct fixture {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
    uint8_t *whole; /* `whole` holds D of the product with the maximum number of rows of A. */
    uint8_t *whole_scales;
} fixture;

static void fixture_make(fixture *f, const char *a, const char *b, const char *d, uint32_t layout,
                         rng *r) {
    bsmm_matrix am = describe(format_named(a), MOST, K);
    if (am.format.scale) am.scale_layout = layout;
    test_matrix_make(&f->a, am, FILL_ORDINARY, r);
    test_matrix_make(&f->b, describe(format_named(b), N, K), FILL_ORDINARY, r);
    bsmm_matrix dm = describe(format_named(d), MOST, N);
    if (dm.format.scale) dm.scale_layout = layout;
    test_matrix_make(&f->d, dm, FILL_ORDINARY, r);
    f->desc =
        (bsmm_matmul_desc){.struct_size = sizeof f->desc, .a = &f->a.m, .b = &f->b.m, .d = &f->d.m};
    f->whole = malloc(f->d.data_bytes);
    f->whole_scales = malloc(f->d.scale_bytes + 1);
}

static void fixture_free(fixture *f) {
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
    free(f->whole);
    free(f->whole_scales);
}

static bsmm_status run(const bsmm_plan *plan, fixture *f, int64_t rows,
                       const int32_t *device_rows) {
    uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    bsmm_buffers buffers = {.struct_size = sizeof buffers,
                            .a = f->a.m.data,
                            .a_scales = f->a.m.scales,
                            .b = f->b.m.data,
                            .b_scales = f->b.m.scales,
                            .d = f->d.m.data,
                            .d_scales = f->d.m.scales,
                            .rows = rows,
                            .device_rows = device_rows,
                            .workspace = guarded_alloc((bytes + 63) / 64 * 64),
                            .workspace_bytes = bytes};
    memset(f->d.m.data, 0xa5, f->d.data_bytes);
    if (f->d.scale_bytes) memset(f->d.m.scales, 0xa5, f->d.scale_bytes);
    bsmm_status status = bsmm_plan_run(plan, &buffers);
    guarded_free(buffers.workspace, (bytes + 63) / 64 * 64);
    return status;
}

/* Checks a product of only the first `rows` rows of A. Its rows of D must equal those of the
 * product of all rows, and the later rows of D must be unchanged. */
static void check(const fixture *f, const char *kernel, int64_t rows) {
    size_t row = f->d.data_bytes / MOST, used = (size_t)rows * row;
    if (memcmp(f->whole, f->d.m.data, used) != 0)
        fail_msg("%s: %lld of %d rows differ from the whole", kernel, (long long)rows, MOST);
    for (size_t i = used; i < f->d.data_bytes; i++)
        if (((uint8_t *)f->d.m.data)[i] != 0xa5)
            fail_msg("%s: byte %zu of D, behind row %lld, was written", kernel, i, (long long)rows);
    if (!f->d.scale_bytes) return;
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(&f->d.m, "d", &o), BSMM_OK);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < o.map.cols; c++) {
            uint64_t at = bsmm_scale_map_at(&o.map, r, c);
            assert_int_equal(f->whole_scales[at], ((uint8_t *)f->d.m.scales)[at]);
        }
}

static void check_kernel(fixture *f, const char *kernel) {
    static const int64_t counts[] = {0, 1, 2, 16, 33, 69, MOST};
    static const struct {
        int32_t given;
        int64_t means;
    } found[] = {{5, 5}, {0, 0}, {-1, 0}, {INT32_MIN, 0}, {MOST + 1, MOST}, {INT32_MAX, MOST}};
    f->desc.kernel = kernel;
    f->desc.flags = 0;
    assert_int_equal(bsmm_matmul(&f->desc), BSMM_OK);
    memcpy(f->whole, f->d.m.data, f->d.data_bytes);
    if (f->d.scale_bytes) memcpy(f->whole_scales, f->d.m.scales, f->d.scale_bytes);
    f->desc.flags = BSMM_MATMUL_ANY_ROWS;
    bsmm_plan *plan;
    assert_int_equal(bsmm_plan_create(&f->desc, &plan), BSMM_OK);
    for (size_t i = 0; i < BSMM_COUNT(counts); i++) {
        assert_int_equal(run(plan, f, counts[i], NULL), BSMM_OK);
        check(f, kernel ? kernel : "any kernel", counts[i]);
    }
    /* The host passes 3 rows. The number of rows in device memory overrides this. */
    for (size_t i = 0; i < BSMM_COUNT(found); i++) {
        assert_int_equal(run(plan, f, 3, &found[i].given), BSMM_OK);
        check(f, kernel ? kernel : "any kernel", found[i].means);
    }
    bsmm_plan_destroy(plan);
}

static void check_formats(const char *a, const char *b, const char *d, uint32_t layout, rng *r) {
    fixture f;
    fixture_make(&f, a, b, d, layout, r);
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&f.desc, i, &e) == BSMM_OK; i++)
        if (e.accepts) check_kernel(&f, e.kernel);
    check_kernel(&f, NULL);
    fixture_free(&f);
}

static void test_any_rows(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"mxfp8", "mxfp4"}, {"bf16", "nvfp4"},
                                           {"f32", "mxfp4"},   {"mxfp4", "mxfp4"},
                                           {"nvfp4", "nvfp4"}, {"fp8_group128", "fp8_block128"}};
    static const char *const outputs[] = {"f32", "bf16", "mxfp8"};
    rng r = {91};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        check_formats(pairs[i][0], pairs[i][1], outputs[i % BSMM_COUNT(outputs)],
                      i % 2 ? BSMM_LAYOUT_COL_MAJOR : BSMM_LAYOUT_NV_128X4, &r);
    check_formats("mxfp8", "mxfp8", "mxfp8", BSMM_LAYOUT_NV_128X4, &r);
}

/* Tests a run with fewer rows than the plan's maximum. The run must use the first rows of C, of the
 * residual and of the row factors. */
static void test_epilogue(void **state) {
    (void)state;
    rng r = {92};
    fixture f;
    test_matrix c, residual;
    float beta = 0.5f, factors[MOST];
    fixture_make(&f, "mxfp8", "mxfp4", "f32", 0, &r);
    test_matrix_make(&c, describe(format_named("f32"), MOST, N), FILL_ORDINARY, &r);
    test_matrix_make(&residual, describe(format_named("bf16"), MOST, N), FILL_ORDINARY, &r);
    for (int i = 0; i < MOST; i++)
        factors[i] = 0.5f + (float)i;
    bsmm_epilogue e = {.struct_size = sizeof e,
                       .activation = BSMM_ACTIVATION_SILU,
                       .scale_by = BSMM_SCALE_BY_ROW,
                       .residual = &residual.m,
                       .row_scale = factors};
    f.desc.c = &c.m;
    f.desc.beta = &beta;
    f.desc.epilogue = &e;
    assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
    memcpy(f.whole, f.d.m.data, f.d.data_bytes);
    f.desc.flags = BSMM_MATMUL_ANY_ROWS;
    bsmm_plan *plan;
    assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_OK);
    uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    bsmm_buffers buffers = {.struct_size = sizeof buffers,
                            .a = f.a.m.data,
                            .a_scales = f.a.m.scales,
                            .b = f.b.m.data,
                            .b_scales = f.b.m.scales,
                            .c = c.m.data,
                            .d = f.d.m.data,
                            .residual = residual.m.data,
                            .row_scale = factors,
                            .rows = 33,
                            .workspace = aligned_alloc(64, (bytes + 63) / 64 * 64),
                            .workspace_bytes = bytes};
    memset(f.d.m.data, 0xa5, f.d.data_bytes);
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    check(&f, "with an epilogue", 33);
    free(buffers.workspace);
    bsmm_plan_destroy(plan);
    test_matrix_free(&c);
    test_matrix_free(&residual);
    fixture_free(&f);
}

static void expect(bsmm_status got, const char *field) {
    assert_int_equal(got, BSMM_E_INVALID);
    if (strncmp(bsmm_error_message(), field, strlen(field)) != 0)
        fail_msg("%s: got \"%s\"", field, bsmm_error_message());
}

static void test_broken_rules(void **state) {
    (void)state;
    rng r = {93};
    fixture f;
    fixture_make(&f, "mxfp8", "mxfp4", "f32", 0, &r);
    bsmm_plan *plan, *fixed;
    assert_int_equal(bsmm_plan_create(&f.desc, &fixed), BSMM_OK);
    f.desc.flags = BSMM_MATMUL_ANY_ROWS;
    assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_OK);
    const int32_t count[2] = {1, 1};
    expect(run(plan, &f, -1, NULL), "rows: value is -1");
    expect(run(plan, &f, MOST + 1, NULL), "rows: value is 71");
    expect(run(plan, &f, 0, (const int32_t *)(const void *)((const uint8_t *)count + 2)),
           "device_rows");
    expect(run(plan, &f, 0, f.d.m.data), "d: its memory overlaps device_rows");
    expect(run(fixed, &f, 1, NULL), "rows: given");
    expect(run(fixed, &f, 0, count), "device_rows: given");
    bsmm_plan_destroy(plan);
    bsmm_plan_destroy(fixed);
    fixture_free(&f);
}

/* Tests that bsmm refuses BSMM_MATMUL_ANY_ROWS for a kernel with operands in device memory, unless
 * the kernel's `.features` say that it supports the flag. */
static void test_refusals(void **state) {
    (void)state;
    static const bsmm_backend elsewhere = {.name = "elsewhere"};
    static const bsmm_product product = {.any_rows = true, .backend = &elsewhere};
    uint32_t refuse = 0;
    for (uint32_t i = 0; bsmm_kernel_at(i); i++) {
        const char *reason = bsmm_features_refuse(bsmm_kernel_at(i), &product);
        assert_true((reason == NULL) == !!(bsmm_kernel_at(i)->features & BSMM_FEATURE_ANY_ROWS));
        if (!reason) continue;
        assert_string_equal(
            reason, "flags has ANY_ROWS; the kernel runs only the described number of rows");
        refuse++;
    }
    print_message("%u kernels would refuse by name\n", refuse);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_rows),
        cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_broken_rules),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
