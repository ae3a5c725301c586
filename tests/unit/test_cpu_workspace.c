/* Tests the bound that bsmm.h states for the workspace of CPU kernels (bsmm_plan_workspace_bytes).
 * The test makes plans of large products with all formats, and allocates and runs nothing. */
#include "cpu_hooks.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* THREADS is the number of threads of each plan. With N rows of K elements, the packed panels of B
 * take at least 1 GiB, which is many times the largest workspace that the bound allows. */
enum { THREADS = 3, N = 65536, K = 16384 };

static const uint64_t l2 = 1 << 20;

enum {
    COL = BSMM_ORDER_COL,
    SWIGLU = BSMM_ACTIVATION_SWIGLU,
    SPLIT = BSMM_HALVES_SPLIT,
    PAIRS = BSMM_HALVES_INTERLEAVED
};

/* These products differ in the number M of rows of A, in their epilogue and in other properties
 * that affect how a kernel packs B. */
static const struct {
    int64_t m;
    const char *d;
    uint32_t a_order, b_order, activation, halves, flags, compute, group, b_packed;
    bool has_c;
} variants[] = {
    {.m = 2, .d = "f32"},
    {.m = 2, .d = "f32", .b_order = COL},
    {.m = 2, .d = "bf16", .b_order = COL, .activation = SWIGLU, .halves = PAIRS},
    {.m = 2, .d = "bf16", .b_order = COL, .activation = SWIGLU, .halves = SPLIT},
    {.m = 1, .d = "f16", .activation = SWIGLU, .halves = SPLIT},
    {.m = 1, .d = "f32", .b_order = COL, .activation = BSMM_ACTIVATION_GELU},
    {.m = 3, .d = "mxfp8", .b_order = COL, .activation = SWIGLU, .halves = SPLIT},
    {.m = 3, .d = "nvfp4", .b_order = COL, .activation = SWIGLU, .halves = PAIRS},
    {.m = 128, .d = "f32", .a_order = COL, .b_order = COL},
    {.m = 128, .d = "f32", .activation = SWIGLU, .halves = SPLIT},
    {.m = 600, .d = "bf16"},
    {.m = 600, .d = "bf16", .activation = SWIGLU, .halves = SPLIT},
    {.m = 600, .d = "bf16", .b_order = COL, .activation = SWIGLU, .halves = PAIRS},
    {.m = 600, .d = "mxfp4", .activation = SWIGLU, .halves = SPLIT},
    {.m = 600, .d = "f32", .flags = BSMM_MATMUL_ANY_ROWS, .activation = SWIGLU, .halves = SPLIT},
    {.m = 600, .d = "f32", .flags = BSMM_MATMUL_BATCH_INVARIANT, .compute = BSMM_COMPUTE_FAST},
    {.m = 70, .d = "bf16", .group = BSMM_GROUP_BATCH, .b_order = COL},
    {.m = 600, .d = "bf16", .group = BSMM_GROUP_ROWS, .activation = SWIGLU, .halves = SPLIT},
    {.m = 70, .d = "bf16", .group = BSMM_GROUP_MASKED, .activation = SWIGLU, .halves = SPLIT},
    {.m = 70, .d = "bf16", .group = BSMM_GROUP_K, .activation = SWIGLU, .halves = PAIRS},
    {.m = 70, .d = "bf16", .b_packed = BSMM_PACKED_COMPACT, .activation = SWIGLU, .halves = SPLIT},
    {.m = 2, .d = "f32", .b_packed = BSMM_PACKED_WIDE, .activation = SWIGLU, .halves = SPLIT},
    {.m = 9, .d = "f32", .b_packed = BSMM_PACKED_WIDE, .activation = SWIGLU, .has_c = true},
    {.m = 700, .d = "f32", .b_order = COL, .activation = SWIGLU, .has_c = true},
};

/* Returns the largest workspace that bsmm.h allows. `is_split` is true if the gates and the ups are
 * two halves of B's rows. A packed row takes at most 5 bytes for each element of K: 4 for an fp32
 * value and 1 for scales. */
static uint64_t most_bytes(size_t variant, bool is_split) {
    const uint64_t row = 5 * K + 256, m = (uint64_t)variants[variant].m;
    const bool is_scaled = format_named(variants[variant].d).scale != BSMM_SCALE_NONE;
    const uint64_t threads = is_split ? 2 * THREADS : THREADS;
    const uint64_t caches = (m > 128 ? 32 * THREADS : threads) * l2;
    const uint64_t least = (is_scaled ? THREADS * 512 : threads * 64 + 512) * row;
    return (m + 64) * row + (caches > least ? caches : least) + THREADS * ((uint64_t)2 << 20);
}

/* Checks the workspace of each CPU kernel that accepts the product. Returns their number. */
static int check_kernels(bsmm_matmul_desc *desc, size_t variant, const char *about) {
    const bool is_split =
        variants[variant].activation == SWIGLU && variants[variant].halves == SPLIT;
    const uint64_t most = most_bytes(variant, is_split);
    int count = 0;
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; !bsmm_explain(desc, i, &e); i++) {
        bsmm_plan *plan;
        if (strcmp(e.device, "cpu") != 0 || !e.accepts) continue;
        desc->kernel = e.kernel;
        assert_int_equal(bsmm_plan_create(desc, &plan), BSMM_OK);
        desc->kernel = NULL;
        const uint64_t bytes = bsmm_plan_workspace_bytes(plan);
        bsmm_plan_destroy(plan);
        if (bytes > most)
            fail_msg("%s by %s, variant %zu: %llu bytes, above %llu", about, e.kernel, variant,
                     (unsigned long long)bytes, (unsigned long long)most);
        count++;
    }
    return count;
}

static int check_variant(bsmm_format a_format, bsmm_format b_format, size_t v) {
    char about[100];
    const bool is_gated = variants[v].activation == SWIGLU;
    bsmm_matrix a = describe(a_format, variants[v].m, K), b = describe(b_format, N, K);
    bsmm_matrix d = describe(format_named(variants[v].d), a.rows, is_gated ? N / 2 : N);
    a.order = variants[v].a_order;
    b.order = variants[v].b_order;
    const bsmm_matrix c = describe(format_named("bf16"), a.rows, N);
    const float beta = 2;
    const bsmm_epilogue e = {.struct_size = sizeof e,
                             .activation = variants[v].activation,
                             .halves = variants[v].halves};
    const bsmm_group g = {.struct_size = sizeof g, .kind = variants[v].group, .count = 3};
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a,
                             .b = &b,
                             .c = variants[v].has_c ? &c : NULL,
                             .beta = variants[v].has_c ? &beta : NULL,
                             .d = &d,
                             .threads = THREADS,
                             .flags = variants[v].flags,
                             .compute = variants[v].compute,
                             .b_packed = variants[v].b_packed,
                             .group = g.kind ? &g : NULL,
                             .epilogue = e.activation ? &e : NULL};
    snprintf(about, sizeof about, "%s x %s", bsmm_format_name(a_format),
             bsmm_format_name(b_format));
    return check_kernels(&desc, v, about);
}

static void test_all_formats(void **state) {
    (void)state;
    const format_list list = all_formats();
    int plans = 0;
    bsmm_cpu_pretend_l2_bytes(l2);
    for (size_t i = 0; i < list.count; i++)
        for (size_t j = 0; j < list.count; j++)
            for (size_t v = 0; v < BSMM_COUNT(variants); v++)
                plans += check_variant(format_named(list.names[i]), format_named(list.names[j]), v);
    bsmm_cpu_pretend_l2_bytes(0);
    print_message("%d plans\n", plans);
    assert_true(plans > 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_formats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
