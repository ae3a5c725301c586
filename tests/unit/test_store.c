/* Tests products with a block-scaled D. D must have the same bytes as the fp32 result of the same
 * product after bsmm_quantize with the same recipe. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 137, N = 270, K = 96 };

typedef struct fixture {
    test_matrix a, b, plain, quantized, stored;
    float alpha;
} fixture;

static bsmm_matmul_desc product_of(fixture *f, const bsmm_matrix *d) {
    return (bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                              .a = &f->a.m,
                              .b = &f->b.m,
                              .d = d,
                              .alpha = &f->alpha};
}

static void poison(test_matrix *t) {
    memset(t->m.data, 0xa5, t->data_bytes);
    memset(t->m.scales, 0xa5, t->scale_bytes);
}

/* Computes the product in fp32 by one kernel and quantizes the result. Returns the second-level
 * scale that the recipe has chosen. */
static float quantize_product(fixture *f, const char *kernel, const char *recipe) {
    static float global;
    global = 1;
    bsmm_matmul_desc desc = product_of(f, &f->plain.m);
    desc.kernel = kernel;
    assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
    poison(&f->quantized);
    f->quantized.m.global_scale = f->quantized.m.format.scale == BSMM_SCALE_E4M3 ? &global : NULL;
    bsmm_quantize_desc quantize = {.struct_size = sizeof quantize,
                                   .src = &f->plain.m,
                                   .dst = &f->quantized.m,
                                   .recipe = recipe};
    if (bsmm_quantize(&quantize, NULL) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    return global;
}

static void check_kernel(fixture *f, const char *kernel, const char *recipe) {
    bool two_levels = f->stored.m.format.scale == BSMM_SCALE_E4M3;
    float global = quantize_product(f, kernel, recipe);
    /* The second-level scale must not be 1, because a kernel that ignores it would then pass the
     * test. */
    if (two_levels) assert_true(global != 1);
    poison(&f->stored);
    f->stored.m.global_scale = two_levels ? &global : NULL;
    bsmm_matmul_desc desc = product_of(f, &f->stored.m);
    desc.recipe = recipe;
    desc.kernel = kernel;
    if (bsmm_matmul(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    assert_memory_equal(f->stored.m.scales, f->quantized.m.scales, f->stored.scale_bytes);
    double *stored = test_matrix_values(&f->stored), *quantized = test_matrix_values(&f->quantized);
    for (int64_t i = 0; i < M * N; i++)
        assert_true(stored[i] == quantized[i]);
    free(stored), free(quantized);
}

/* Multiplies a matrix of format `a` by an mxfp4 matrix. Checks every kernel that can store D in the
 * format of `d`, and returns the number of these kernels. */
static int check_product(const char *a, bsmm_matrix d, const char *recipe, float alpha, rng *r) {
    fixture f = {.alpha = alpha};
    test_matrix_make(&f.a, describe(format_named(a), M, K), FILL_ORDINARY, r);
    test_matrix_make(&f.b, describe(format_named("mxfp4"), N, K), FILL_ORDINARY, r);
    test_matrix_make(&f.plain, describe(format_named("f32"), M, N), FILL_ORDINARY, r);
    test_matrix_make(&f.quantized, d, FILL_SPECIAL, r);
    test_matrix_make(&f.stored, d, FILL_SPECIAL, r);
    bsmm_matmul_desc desc = product_of(&f, &f.stored.m);
    bsmm_explanation e = {.struct_size = sizeof e};
    int ran = 0;
    for (uint32_t i = 0; bsmm_explain(&desc, i, &e) == BSMM_OK; i++)
        if (e.accepts) {
            check_kernel(&f, e.kernel, recipe);
            ran++;
        }
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
    test_matrix_free(&f.plain);
    test_matrix_free(&f.quantized);
    test_matrix_free(&f.stored);
    return ran;
}

static void check_preset(bsmm_matrix d, const char *recipe, rng *r) {
    assert_true(check_product("mxfp4", d, recipe, 1, r) > 0);
    assert_true(check_product("mxfp8", d, recipe, 1, r) > 0);
}

static void test_every_preset(void **state) {
    (void)state;
    rng r = {21};
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++) {
        check_preset(describe(preset.format, M, N), NULL, &r);
        bsmm_matrix columns = describe(preset.format, M, N);
        columns.order = BSMM_ORDER_COL;
        columns.scale_layout = BSMM_LAYOUT_NV_128X4;
        check_preset(columns, NULL, &r);
    }
}

static void test_named_recipes(void **state) {
    (void)state;
    rng r = {22};
    check_preset(describe(format_named("mxfp8"), M, N), "rceil", &r);
    check_preset(describe(format_named("mxfp4"), M, N), "even", &r);
    check_preset(describe(format_named("nvfp4"), M, N), "te", &r);
    check_preset(describe(format_named("fp8_group128"), M, N), "deepgemm", &r);
}

/* Tests results near the smallest numbers of fp32. The reciprocal of the second-level scale
 * overflows, so a kernel that multiplied by it would give wrong results. */
static void test_least_results(void **state) {
    (void)state;
    rng r = {23};
    check_product("mxfp4", describe(format_named("nvfp4"), M, N), "te", 0x1p-140f, &r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_preset),
        cmocka_unit_test(test_named_recipes),
        cmocka_unit_test(test_least_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
