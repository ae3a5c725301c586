/* Tests which sizes the GPU kernels refuse. Kernels count rows, columns and elements of K in 32-bit
 * integers, so no kernel may accept a product with more than 2^31 - 1 of them. No kernel may accept
 * a product for which its grid would be too large either. The test only asks the kernels of
 * simulated GPUs whether they accept a product, and runs none of them. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const devices[] = {"sim:gfx942", "sim:gfx950", "sim:sm_80",
                                      "sim:sm_90a", "sim:sm_100", "sim:sm_120"};
static const char *const formats[][2] = {{"bf16", "bf16"},
                                         {"f16", "f16"},
                                         {"bf16", "mxfp4"},
                                         {"f16", "nvfp4"},
                                         {"mxfp8", "mxfp8"},
                                         {"mxfp4", "mxfp4"},
                                         {"nvfp4", "nvfp4"},
                                         {"mxfp6_e2m3", "mxfp6_e2m3"},
                                         {"f32", "f32"},
                                         {"bf16", "mxfp8"},
                                         {"bf16", "fp8_group128"},
                                         {"fp8_group128", "fp8_group128"},
                                         {"fp8_group128", "fp8_block128"}};

/* Returns the number of kernels that accept a product with M, N and K in `mnk`. `last` becomes the
 * name of the last such kernel. */
static int count_takers(const char *device, const char *const names[2], const int64_t mnk[3],
                        const char **last) {
    const bsmm_matrix a = describe(format_named(names[0]), mnk[0], mnk[2]),
                      b = describe(format_named(names[1]), mnk[1], mnk[2]),
                      d = describe(format_named("bf16"), mnk[0], mnk[1]);
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .device = device};
    bsmm_explanation e = {.struct_size = sizeof e};
    int count = 0;
    for (uint32_t i = 0; bsmm_explain(&desc, i, &e) == BSMM_OK; i++)
        if (e.accepts) count++, *last = e.kernel;
    return count;
}

static void test_large_extents(void **state) {
    (void)state;
    int asked = 0;
    for (size_t i = 0; i < BSMM_COUNT(devices); i++)
        for (size_t f = 0; f < BSMM_COUNT(formats); f++) {
            const char *kernel = NULL;
            int64_t mnk[3] = {4, 128, 128};
            if (!count_takers(devices[i], formats[f], mnk, &kernel)) continue;
            asked++;
            for (int large = 0; large < 3; large++) {
                const int64_t usual = mnk[large];
                mnk[large] = INT64_C(1) << 31;
                if (count_takers(devices[i], formats[f], mnk, &kernel))
                    fail_msg("%s takes %s x %s, %lld x %lld x %lld", kernel, formats[f][0],
                             formats[f][1], (long long)mnk[0], (long long)mnk[1],
                             (long long)mnk[2]);
                mnk[large] = usual;
            }
        }
    print_message("%d products on simulated GPUs\n", asked);
    if (!asked) skip();
}

/* Tests that cuda_sm90a_mixed refuses a K for which its kernel that converts A would have more than
 * 65535 thread blocks along the y axis of its grid. Such a launch fails. */
static void test_long_rows(void **state) {
    (void)state;
    for (int longer = 0; longer < 2; longer++) {
        const int64_t k = INT64_C(65535) * 1024 + 32 * longer;
        const bsmm_matrix a = describe(format_named("bf16"), 65, k),
                          b = describe(format_named("mxfp4"), 1024, k),
                          d = describe(format_named("bf16"), 65, 1024);
        const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                       .a = &a,
                                       .b = &b,
                                       .d = &d,
                                       .device = "sim:sm_90a",
                                       .kernel = "cuda_sm90a_mixed"};
        bsmm_plan *plan;
        const bsmm_status status = bsmm_plan_create(&desc, &plan);
        /* Without a simulator or without CUDA kernels, the test is skipped. */
        if (status != BSMM_OK && strstr(bsmm_error_message(), "built without")) skip();
        if (status == BSMM_E_DEVICE || status == BSMM_E_NOT_FOUND) skip();
        assert_int_equal(status, longer ? BSMM_E_UNSUPPORTED : BSMM_OK);
        if (longer) assert_non_null(strstr(bsmm_error_message(), "K is 67107872"));
        bsmm_plan_destroy(plan);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_large_extents),
                                       cmocka_unit_test(test_long_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
