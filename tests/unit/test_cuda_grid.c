/* Tests a product that needs a larger CUDA grid than the driver allows. bsmm_plan_create must
 * refuse it. The test is skipped without a GPU. */
#include "cuda.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bsmm_explanation explained(const bsmm_matmul_desc *desc, const char *kernel) {
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(desc, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, kernel) == 0) return e;
    fail_msg("%s: %s", kernel, bsmm_error_message());
    return e;
}

/* Tests operands with one scale for 128 elements of K. If the product's kernel cannot read the
 * layout of these scales, a copy kernel first moves them to another layout. The copy kernel needs
 * one thread block for each 128 elements of K, so its grid may be larger than CUDA allows. */
static void test_scales_beyond_a_grid(void **state) {
    enum { MOST = 65535 * 128 };
    (void)state;
    if (!test_cuda_device()) return;
    for (int64_t k = MOST; k <= MOST + 128; k += 128)
        for (uint32_t moved = 0; moved < 2; moved++) {
            bsmm_matrix a = describe(format_named("fp8_group128"), 64, k);
            bsmm_matrix b = describe(format_named("fp8_block128"), 64, k);
            bsmm_matrix d = describe(format_named("f32"), 64, 64);
            a.scale_layout = moved ? BSMM_LAYOUT_ROW_MAJOR : BSMM_LAYOUT_COL_MAJOR;
            bsmm_matmul_desc desc = {
                .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .device = "cuda:0"};
            bsmm_explanation e = explained(&desc, "cuda_sm90a_fp8");
            /* This GPU cannot run sm_90a code, so the test is skipped. */
            if (strstr(e.reason, "sm90a")) skip();
            assert_int_equal(e.accepts, k == MOST || !moved);
            if (!e.accepts) assert_non_null(strstr(e.reason, "takes at most 8388480"));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scales_beyond_a_grid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
