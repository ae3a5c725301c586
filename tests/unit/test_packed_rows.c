/* Tests that a product with any number of rows of A can use the same packed weights. The size of
 * the packed weights and the name of their panels must not depend on the number of rows. The test
 * covers every pair of formats, on the CPU and on three fake GPUs. The bytes of panels depend only
 * on B and on the name (test_packed_panels.c). */
#include "fake_gpus.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t rows[] = {1, 2, 5, 16, 17, 33, 64, 65, 128, 200, 512, 513, 1000, 20000};

/* Sets *info to the description of the packed weights of a plan for m rows of A. Returns false if
 * no kernel takes the product with packed weights. */
static bool find_info(const char *device, uint32_t form, const bsmm_matrix *a_row,
                      const bsmm_matrix *b, int64_t m, bsmm_packed_info *info) {
    bsmm_matrix a = *a_row, d = describe(format_named("f32"), m, b->rows);
    bsmm_plan *plan;
    a.rows = m;
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a, .b = b, .d = &d, .device = device, .b_packed = form};
    *info = (bsmm_packed_info){.struct_size = sizeof *info};
    if (bsmm_plan_create(&desc, &plan) != BSMM_OK) return false;
    assert_int_equal(bsmm_plan_packed_info(plan, info), BSMM_OK);
    bsmm_plan_destroy(plan);
    return true;
}

/* Checks that plans of one pair of formats that differ only in the number of rows of A expect the
 * same packed weights. Returns the number of these plans, or 0 if they have no packed weights. */
static int check_pair(const char *device, uint32_t form, const bsmm_matrix *a,
                      const bsmm_matrix *b) {
    bsmm_packed_info first, info;
    const bool takes = find_info(device, form, a, b, rows[0], &first);
    for (size_t i = 1; i < BSMM_COUNT(rows); i++)
        if (find_info(device, form, a, b, rows[i], &info) != takes ||
            memcmp(&info, &first, sizeof info) != 0)
            fail_msg("%s, %s x %s, form %u: 1 row has the panels \"%s\" of %llu bytes, %lld rows "
                     "\"%s\" of %llu",
                     device, bsmm_format_name(a->format), bsmm_format_name(b->format), form,
                     first.panels, (unsigned long long)first.bytes, (long long)rows[i], info.panels,
                     (unsigned long long)info.bytes);
    return takes ? (int)BSMM_COUNT(rows) : 0;
}

static int check_device(const char *device) {
    const format_list all = all_formats();
    int plans = 0;
    for (size_t i = 0; i < all.count; i++)
        for (size_t j = 0; j < all.count; j++) {
            const bsmm_matrix a = describe(format_named(all.names[i]), 1, 256),
                              b = describe(format_named(all.names[j]), 192, 256);
            plans += check_pair(device, BSMM_PACKED_WIDE, &a, &b);
            plans += check_pair(device, BSMM_PACKED_COMPACT, &a, &b);
        }
    print_message("%s: %d plans with packed weights\n", device, plans);
    return plans;
}

static void test_packed_weights_on_the_cpu(void **state) {
    (void)state;
    assert_true(check_device("cpu") > 0);
}

static void test_packed_weights_on_gpus(void **state) {
    (void)state;
    if (!fake_gpus_open()) skip();
    if (fake_gpus_sum(check_device) == 0) skip(); /* The build has no CUDA kernels. */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_weights_on_the_cpu),
        cmocka_unit_test(test_packed_weights_on_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
