/* Tests the form "wide" of packed weights, which consists of panels, i.e. rows of B in the order in
 * which a kernel reads them. */
#include "packed_b.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Packs B in the form "wide", which consists of the panels that a kernel reads. Skips the test if
 * no kernel of this processor reads panels. */
static void pack_or_skip(packed_b *f) {
    bsmm_plan *plan;
    f->desc.b_packed = BSMM_PACKED_WIDE;
    if (bsmm_plan_create(&f->desc, &plan) != BSMM_OK) {
        packed_b_free(f);
        skip();
    }
    bsmm_plan_destroy(plan);
    packed_b_pack(f, BSMM_PACKED_WIDE);
}

/* Tests packed weights of the form wide, which have panels (B's decoded values in the order in
 * which a kernel reads them) and a copy of B. The panels have a name. Plans with different formats
 * of A may use panels of the same name. These plans must then pack B to the same bytes, and each
 * plan must accept the bytes that the other one has packed. */
static void test_wide_depends_on_panels(void **state) {
    (void)state;
    static const char *const activations[] = {"bf16",  "mxfp8",        "mxfp4",
                                              "nvfp4", "fp8_group128", "f32"};
    rng r = {43};
    packed_b f[BSMM_COUNT(activations)];
    for (size_t i = 0; i < BSMM_COUNT(activations); i++) {
        rng same = {44};
        packed_b *g = &f[i];
        packed_b_make(g, format_named(activations[i]), describe(format_named("mxfp4"), 70, 256), 3,
                      FILL_ORDINARY, &r);
        test_matrix_free(&g->b);
        test_matrix_make(&g->b, describe(format_named("mxfp4"), 70, 256), FILL_EXTREME, &same);
        g->desc.b_packed = BSMM_PACKED_WIDE;
        bsmm_plan *plan;
        if (bsmm_plan_create(&g->desc, &plan) != BSMM_OK)
            skip(); /* No kernel for this processor reads panels. */
        bsmm_plan_destroy(plan);
        packed_b_pack(g, BSMM_PACKED_WIDE);
        uint64_t told;
        assert_int_equal(
            bsmm_packed_bytes("cpu", BSMM_PACKED_WIDE, &g->b.m, 0, &g->a.m.format, &told), BSMM_OK);
        assert_int_equal(told, g->bytes);
        packed_b_check_unpacked(g, &r);
    }
    int alike = 0;
    for (size_t i = 0; i < BSMM_COUNT(f); i++)
        for (size_t j = 0; j < BSMM_COUNT(f); j++) {
            bool same = memcmp(f[i].packed + PANELS, f[j].packed + PANELS, 16) == 0;
            packed_b mixed = f[j];
            mixed.packed = f[i].packed, mixed.bytes = f[i].bytes;
            if (same) assert_memory_equal(f[i].packed, f[j].packed, f[j].bytes);
            if (f[i].bytes >= f[j].bytes)
                assert_int_equal(packed_b_run(&mixed, f[j].plan), same ? BSMM_OK : BSMM_E_INVALID);
            if (!same && f[i].bytes >= f[j].bytes)
                assert_non_null(strstr(bsmm_error_message(), "packed_b.panels: value is \""));
            alike += same && i != j;
        }
    assert_true(alike > 0);
    for (size_t i = 0; i < BSMM_COUNT(f); i++)
        packed_b_free(&f[i]);
}

/* Runs a product with B packed in the panels that *info names, and again with B as it is stored.
 * Both results of the same kernel must be bitwise identical. Returns false if no kernel reads such
 * panels. */
static bool runs_with(const packed_b *packed, const bsmm_packed_info *info, packed_b *g) {
    bsmm_plan *plan;
    bsmm_packed_info own = {.struct_size = sizeof own};
    g->desc.b = &packed->b.m;
    g->desc.b_packed = BSMM_PACKED_WIDE;
    g->desc.b_panels = info->panels;
    if (bsmm_plan_create(&g->desc, &plan) != BSMM_OK) return false;
    assert_int_equal(bsmm_plan_packed_info(plan, &own), BSMM_OK);
    assert_memory_equal(&own, info, sizeof own);
    g->desc.kernel = bsmm_plan_kernel(plan);
    g->desc.b_packed = 0;
    g->desc.b_panels = NULL;
    assert_int_equal(bsmm_matmul(&g->desc), BSMM_OK);
    float *expected = malloc(g->d.data_bytes);
    memcpy(expected, g->d.m.data, g->d.data_bytes);
    memset(g->d.m.data, 0xa5, g->d.data_bytes);
    const packed_b with = {.a = g->a, .d = g->d, .packed = packed->packed, .bytes = packed->bytes};
    if (packed_b_run(&with, plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    assert_memory_equal(expected, g->d.m.data, g->d.data_bytes);
    free(expected);
    bsmm_plan_destroy(plan);
    g->desc.kernel = NULL;
    return true;
}

/* Tests that several formats of A can use one B in the form "wide". The caller requests the panels
 * by name. */
static void test_panels_by_name(void **state) {
    (void)state;
    static const char *const activations[] = {"bf16", "mxfp8", "mxfp4", "nvfp4", "fp8_group128"};
    rng r = {53};
    int others = 0;
    for (size_t i = 0; i < BSMM_COUNT(activations); i++) {
        packed_b f;
        packed_b_make(&f, format_named(activations[i]), describe(format_named("mxfp4"), 70, 256), 3,
                      FILL_ORDINARY, &r);
        pack_or_skip(&f);
        bsmm_packed_info info = {.struct_size = sizeof info}, theirs = info;
        assert_int_equal(bsmm_packed_describe(f.packed, f.bytes, &info), BSMM_OK);
        for (size_t j = 0; j < BSMM_COUNT(activations); j++) {
            packed_b g;
            packed_b_make(&g, format_named(activations[j]), describe(f.b.m.format, 70, 256), 33,
                          FILL_ORDINARY, &r);
            g.desc.b_packed = BSMM_PACKED_WIDE;
            bsmm_plan *plan;
            assert_int_equal(bsmm_plan_create(&g.desc, &plan), BSMM_OK);
            assert_int_equal(bsmm_plan_packed_info(plan, &theirs), BSMM_OK);
            bsmm_plan_destroy(plan);
            const bool same = strcmp(info.panels, theirs.panels) == 0;
            const bool runs = runs_with(&f, &info, &g);
            assert_true(runs || !same);
            others += runs && !same;
            packed_b_free(&g);
        }
        packed_b_free(&f);
    }
    print_message("%d products with other panels than their own\n", others);
    assert_true(others > 0);
}

static void test_panels_that_no_kernel_reads(void **state) {
    (void)state;
    rng r = {54};
    packed_b f;
    packed_b_make(&f, format_named("bf16"), describe(format_named("mxfp4"), 16, 64), 3,
                  FILL_ORDINARY, &r);
    pack_or_skip(&f);
    bsmm_plan *plan;
    f.desc.kernel = bsmm_plan_kernel(f.plan);
    f.desc.b_panels = "int7";
    assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_E_UNSUPPORTED);
    assert_non_null(strstr(bsmm_error_message(), "b_panels is \"int7\"; the kernel reads"));
    for (uint32_t form = BSMM_PACKED_NONE; form <= BSMM_PACKED_COMPACT; form += 2) {
        f.desc.b_packed = form;
        assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_E_INVALID);
        assert_non_null(strstr(bsmm_error_message(), "b_panels: value is \"int7\""));
    }
    packed_b_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_depends_on_panels),
        cmocka_unit_test(test_panels_by_name),
        cmocka_unit_test(test_panels_that_no_kernel_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
