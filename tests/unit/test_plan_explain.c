/* Tests bsmm_explain, and calls for which no plan can be made. Also tests that a plan stays valid
 * after its description is freed. */
#include "described.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bsmm_buffers buffers_of(described *f, void *workspace, uint64_t bytes) {
    return (bsmm_buffers){.struct_size = sizeof(bsmm_buffers),
                          .a = f->a,
                          .a_scales = f->a_scales,
                          .b = f->b,
                          .b_scales = f->b_scales,
                          .c = f->c,
                          .d = f->d,
                          .bias = f->bias,
                          .workspace = workspace,
                          .workspace_bytes = bytes};
}

static void test_plan_outlives_its_description(void **state) {
    (void)state;
    described f;
    described_make(&f);
    bsmm_plan *plan;
    assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_OK);
    f.alpha = NAN;
    memset(&f.desc, 0xff, sizeof f.desc);
    memset(&f.am, 0xff, sizeof f.am);
    uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    void *workspace = aligned_alloc(64, (bytes + 63) / 64 * 64);
    bsmm_buffers buffers = buffers_of(&f, workspace, bytes);
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    assert_true(f.d[0] == 0);
    buffers.workspace_bytes = bytes - 1;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    assert_int_equal(strncmp(bsmm_error_message(), "workspace_bytes", 15), 0);
    buffers.workspace_bytes = bytes;
    buffers.workspace = (uint8_t *)workspace + 4;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    buffers.workspace = workspace;
    buffers.reserved = 1;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "reserved"));
    buffers.reserved = 0;
    buffers.b_scales = NULL;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "b.scales"));
    bsmm_plan_destroy(plan);
    free(workspace);
}

static void test_plan_failures(void **state) {
    (void)state;
    described f;
    described_make(&f);
    bsmm_plan *plan = (bsmm_plan *)&f;
    f.desc.compute = 7;
    assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_E_INVALID);
    assert_null(plan);
    assert_int_equal(bsmm_plan_create(&f.desc, NULL), BSMM_E_INVALID);
    assert_int_equal(bsmm_plan_run(NULL, NULL), BSMM_E_INVALID);
    bsmm_plan_destroy(NULL);
    assert_string_equal(bsmm_plan_kernel(NULL), "");
}

/* Checks that bsmm_explain reports the same error bound, workspace and packed bytes for a kernel as
 * a plan with this kernel. */
static void check_costs(described *f, const bsmm_explanation *e) {
    bsmm_plan *plan;
    assert_non_null(e->device);
    if (!e->accepts) {
        assert_true(e->bound == 0 && e->packed_b_bytes == 0);
        return;
    }
    f->desc.kernel = e->kernel;
    assert_string_equal(e->device, "cpu");
    assert_int_equal(bsmm_plan_create(&f->desc, &plan), BSMM_OK);
    assert_int_equal(e->packed_b_bytes, bsmm_plan_packed_b_bytes(plan));
    assert_true(e->bound > 0);
    bsmm_plan_destroy(plan);
    f->desc.kernel = NULL;
}

static void test_explain(void **state) {
    (void)state;
    described f;
    described_make(&f);
    bsmm_explanation e = {.struct_size = sizeof e};
    assert_int_equal(bsmm_explain(&f.desc, 0, &e), BSMM_OK);
    uint32_t count = 0;
    while (bsmm_explain(&f.desc, count, &e) == BSMM_OK) {
        assert_true(e.accepts == (e.reason[0] == 0));
        assert_true(e.accepts == (e.k_parts > 0));
        check_costs(&f, &e);
        count++;
    }
    /* The last kernel, `ref`, computes every product. */
    assert_string_equal(e.kernel, "ref");
    assert_true(e.accepts);
    assert_int_equal(bsmm_explain(&f.desc, count, &e), BSMM_E_NOT_FOUND);
    f.desc.device = "abacus";
    assert_int_equal(bsmm_explain(&f.desc, 0, &e), BSMM_OK);
    assert_false(e.accepts);
    assert_non_null(strstr(e.reason, "abacus"));
}

/* Tests that calls that succeed keep the message of the last failure, although they look for
 * devices and drivers that this machine may not have. */
static void test_successes_keep_the_message(void **state) {
    (void)state;
    static const char *const devices[] = {"cuda:0", "hip:0", "cpu:1"};
    described f;
    described_make(&f);
    bsmm_format format;
    assert_int_equal(bsmm_format_from_name("no-format", &format), BSMM_E_NOT_FOUND);
    char *before = strdup(bsmm_error_message());
    bsmm_local_device device = BSMM_INIT(bsmm_local_device);
    for (uint32_t i = 0; bsmm_local_device_at(i, &device) == BSMM_OK; i++)
        assert_string_equal(bsmm_error_message(), before);
    bsmm_format_from_name("no-format", &format);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        bsmm_explanation e = BSMM_INIT(bsmm_explanation);
        f.desc.device = devices[i];
        for (uint32_t k = 0; bsmm_explain(&f.desc, k, &e) == BSMM_OK; k++)
            assert_string_equal(bsmm_error_message(), before);
        bsmm_format_from_name("no-format", &format);
    }
    free(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_outlives_its_description),
        cmocka_unit_test(test_plan_failures),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_successes_keep_the_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
