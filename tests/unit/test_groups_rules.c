/* Tests the rules for descriptions of groups. The message for each broken rule must name the
 * field. The size that bsmm_group_scale_bytes returns must be enough for any division of rows
 * into groups. */
#include "core/describe.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 70, N = 38, K = 160 };

static bsmm_matrix shape(const char *format, int64_t rows, int64_t cols, uint32_t layout) {
    bsmm_matrix m = describe(format_named(format), rows, cols);
    m.scale_layout = layout;
    return m;
}

static void test_scale_bytes(void **state) {
    (void)state;
    static const uint32_t layouts[] = {BSMM_LAYOUT_ROW_MAJOR,     BSMM_LAYOUT_COL_MAJOR,
                                       BSMM_LAYOUT_NV_128X4,      BSMM_LAYOUT_NV_8X4,
                                       BSMM_LAYOUT_CUBLAS_VEC128, BSMM_LAYOUT_CUBLAS_BLK128};
    rng r = {104};
    for (size_t i = 0; i < 600; i++) {
        const char *format = i % 2 ? "mxfp8" : "fp8_block128";
        bool by_cols = i / 2 % 2;
        uint32_t layout = layouts[i / 4 % BSMM_COUNT(layouts)];
        int64_t rows = 1 + rng_below(&r, 700), cols = 1 + rng_below(&r, 700), left, part;
        bsmm_group group = {.struct_size = sizeof group,
                            .kind = by_cols ? BSMM_GROUP_K : BSMM_GROUP_ROWS,
                            .flags = BSMM_GROUP_SCALES_APART,
                            .count = 1 + rng_below(&r, 9)};
        const bsmm_matrix m = shape(format, rows, cols, layout);
        uint64_t most, sum = 0, bytes;
        assert_int_equal(bsmm_group_scale_bytes(&group, &m, &most), BSMM_OK);
        left = by_cols ? cols : rows;
        for (int64_t g = 0; g < group.count; g++, left -= part) {
            part = g + 1 == group.count ? left : rng_below(&r, (uint32_t)left + 1);
            bsmm_matrix one = shape(format, by_cols ? rows : part, by_cols ? part : cols, layout);
            assert_int_equal(bsmm_scale_bytes(&one, &bytes), BSMM_OK);
            sum += bytes;
        }
        assert_true(sum <= most);
    }
}

/* Tests that a size which no buffer can have is refused. */
static void test_scale_bytes_overflow(void **state) {
    (void)state;
    const bsmm_group group = {.struct_size = sizeof group,
                              .kind = BSMM_GROUP_ROWS,
                              .flags = BSMM_GROUP_SCALES_APART,
                              .count = INT32_MAX};
    const bsmm_matrix m = shape("mxfp8", INT32_MAX, INT64_C(1) << 31, BSMM_LAYOUT_NV_128X4);
    uint64_t bytes = 1;
    assert_int_equal(bsmm_group_scale_bytes(&group, &m, &bytes), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), ".rows x cols: the scales' size overflows"));
}

typedef struct broken {
    const char *message;
    bsmm_group group;
    uint32_t layout; /* `layout` is the scale layout of A and D. */
    bool b_packed, any_rows;
    const char *b; /* `b` is the format of B. NULL means mxfp4. */
} broken;

static const broken rules[] = {
    {.message = "group.struct_size", .group = {.struct_size = 3}},
    {.message = "group.kind: value is 5", .group = {.kind = 5}},
    {.message = "group.reserved", .group = {.kind = BSMM_GROUP_BATCH, .reserved = 1}},
    {.message = "group.flags: value is 256", .group = {.kind = BSMM_GROUP_BATCH, .flags = 256}},
    {.message = "group.flags: value is 64; GATHER_A",
     .group = {.kind = BSMM_GROUP_K, .flags = BSMM_GROUP_GATHER_A}},
    {.message = "group.flags: value is 128; SCALES_APART",
     .group = {.kind = BSMM_GROUP_BATCH, .flags = BSMM_GROUP_SCALES_APART}},
    {.message = "group.flags: value is 2; EACH_BIAS",
     .group = {.kind = BSMM_GROUP_BATCH, .flags = BSMM_GROUP_EACH_BIAS}},
    {.message = "group.flags: value is 32; EACH_COL_SCALE",
     .group = {.kind = BSMM_GROUP_BATCH, .flags = BSMM_GROUP_EACH_COL_SCALE}},
    {.message = "group.count: value is -1", .group = {.kind = BSMM_GROUP_BATCH, .count = -1}},
    {.message = "group.count: value is 2147483648",
     .group = {.kind = BSMM_GROUP_BATCH, .count = INT64_C(1) << 31}},
    {.message = "group.expected_rows", .group = {.kind = BSMM_GROUP_BATCH, .expected_rows = -1}},
    {.message = "group.align: value is 16; must be 0 to 0",
     .group = {.kind = BSMM_GROUP_MASKED, .align = 16}},
    {.message = "group.align: value is 1; must be a multiple of 128",
     .group = {.kind = BSMM_GROUP_ROWS},
     .layout = BSMM_LAYOUT_NV_128X4},
    {.message = "group.align: value is 16; must be a multiple of 32",
     .group = {.kind = BSMM_GROUP_K, .align = 16}},
    {.message = "group.align: value is 32; must be a multiple of 128, where bytes and scales of b",
     .group = {.kind = BSMM_GROUP_K, .align = 32},
     .b = "fp8_block128"},
    {.message = "group.a_step: value is 10; must be 0",
     .group = {.kind = BSMM_GROUP_ROWS, .a_step = 10}},
    {.message = "group.a_step: value is -2", .group = {.kind = BSMM_GROUP_BATCH, .a_step = -2}},
    {.message = "group.b_step: value is 3; must be BSMM_GROUP_SHARED, 0 or a multiple of 2",
     .group = {.kind = BSMM_GROUP_BATCH, .b_step = 3}},
    {.message = "group.b_scale_step: value is 9; must be 0 or BSMM_GROUP_SHARED, as group.b_step",
     .group = {.kind = BSMM_GROUP_BATCH, .b_step = BSMM_GROUP_SHARED, .b_scale_step = 9}},
    {.message = "group.b_step: value is 4; must be 0",
     .group = {.kind = BSMM_GROUP_K, .align = 32, .b_step = 4}},
    {.message = "group.b_scale_step",
     .group = {.kind = BSMM_GROUP_K, .align = 32, .b_scale_step = 4}},
    {.message = "group.c_step: value is 8; must be 0",
     .group = {.kind = BSMM_GROUP_BATCH, .c_step = 8}},
    {.message = "group.d_step: value is -1",
     .group = {.kind = BSMM_GROUP_BATCH, .d_step = BSMM_GROUP_SHARED}},
    {.message = "group.d_step: value is 5", .group = {.kind = BSMM_GROUP_BATCH, .d_step = 5}},
    {.message = "group.a_scale_step: value is -7; must be BSMM_GROUP_SHARED, 0",
     .group = {.kind = BSMM_GROUP_BATCH, .a_scale_step = -7}},
    {.message = "group.d_scale_step: value is -1; must be 0",
     .group = {.kind = BSMM_GROUP_BATCH, .d_scale_step = BSMM_GROUP_SHARED}},
    {.message = "group.d_scale_step: value is 1",
     .group = {.kind = BSMM_GROUP_BATCH, .d_scale_step = 1}},
    {.message = "d.scale_layout: value is cublas_vec128",
     .group = {.kind = BSMM_GROUP_ROWS},
     .layout = BSMM_LAYOUT_CUBLAS_VEC128},
    {.message = "a.scale_bytes",
     .group = {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_SCALES_APART}},
    {.message = "b_packed", .group = {.kind = BSMM_GROUP_K, .align = 32}, .b_packed = true},
    {.message = "flags: value is 1; groups", .group = {.kind = BSMM_GROUP_ROWS}, .any_rows = true},
    {.message = "group_sizes: value is NULL", .group = {.kind = BSMM_GROUP_ROWS}},
    {.message = "gather: value is NULL",
     .group = {.kind = BSMM_GROUP_MASKED, .flags = BSMM_GROUP_GATHER_A}},
    {.message = "group_alpha: value is NULL",
     .group = {.kind = BSMM_GROUP_BATCH, .flags = BSMM_GROUP_EACH_ALPHA}},
    {.message = "b.global_scale: value is NULL",
     .group = {.kind = BSMM_GROUP_BATCH, .flags = BSMM_GROUP_EACH_B_GLOBAL}},
};

static void test_broken_rules(void **state) {
    (void)state;
    static _Alignas(64) uint8_t memory[4][4 * M * K * 4];
    static const int32_t sizes[4];
    for (size_t i = 0; i < BSMM_COUNT(rules); i++) {
        const broken *rule = &rules[i];
        bsmm_group group = rule->group;
        bsmm_matrix m[] = {shape("mxfp8", M, K, 0), shape(rule->b ? rule->b : "mxfp4", N, K, 0),
                           shape("mxfp8", M, N, rule->layout)};
        if (!group.struct_size) group.struct_size = sizeof group;
        if (!group.count) group.count = 3;
        for (size_t q = 0; q < BSMM_COUNT(m); q++) {
            m[q].data = memory[q];
            m[q].scales = memory[q] + M * K * 4;
        }
        bsmm_scale_bytes(&m[2], &m[2].scale_bytes);
        m[2].scales = memory[3];
        if (group.kind != BSMM_GROUP_BATCH && strncmp(rule->message, "group_sizes", 11) != 0)
            group.sizes = sizes;
        bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &m[0], .b = &m[1], .d = &m[2]};
        desc.group = &group;
        desc.b_packed = rule->b_packed;
        desc.flags = rule->any_rows ? BSMM_MATMUL_ANY_ROWS : 0;
        assert_int_equal(bsmm_matmul(&desc), BSMM_E_INVALID);
        if (strncmp(bsmm_error_message(), rule->message, strlen(rule->message)) != 0)
            fail_msg("%s: got \"%s\"", rule->message, bsmm_error_message());
    }
}

/* Tests a matrix that all groups share. Its scales are those of a single matrix, so D may follow
 * them directly in memory. */
static void test_shared_scales(void **state) {
    (void)state;
    enum { GROUPS = 3 };
    bsmm_matrix a = shape("mxfp8", M, K, 0), b = shape("mxfp4", N, K, 0),
                d = shape("e4m3", M, N, 0);
    const bsmm_group group = {.struct_size = sizeof group,
                              .kind = BSMM_GROUP_BATCH,
                              .count = GROUPS,
                              .a_step = BSMM_GROUP_SHARED,
                              .b_step = BSMM_GROUP_SHARED};
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .group = &group};
    uint64_t data, scales;
    assert_int_equal(bsmm_data_bytes(&a, &data), BSMM_OK);
    assert_int_equal(bsmm_scale_bytes(&a, &scales), BSMM_OK);
    uint8_t *memory = calloc(data + scales + GROUPS * M * N, 1);
    a.data = b.data = memory;
    a.scales = b.scales = memory + data;
    d.data = memory + data + scales;
    if (bsmm_matmul(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    free(memory);
}

/* Tests a product with no groups. bsmm_group_scale_bytes then returns the size 0, and the product
 * must accept this size. */
static void test_no_groups(void **state) {
    (void)state;
    static uint8_t memory[M * K + M * N];
    bsmm_matrix a = shape("mxfp8", M, K, BSMM_LAYOUT_NV_128X4), b = shape("f32", N, K, 0);
    bsmm_matrix d = shape("e4m3", M, N, 0);
    const bsmm_group group = {
        .struct_size = sizeof group, .kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_SCALES_APART};
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .group = &group};
    a.data = memory;
    d.data = memory + M * K;
    assert_int_equal(bsmm_group_scale_bytes(&group, &a, &a.scale_bytes), BSMM_OK);
    assert_true(a.scale_bytes == 0);
    if (bsmm_matmul(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
}

/* Tests that bsmm refuses groups for a kernel with operands in device memory, unless the kernel's
 * `.features` say that it supports groups. */
static void test_refusals(void **state) {
    (void)state;
    static const bsmm_backend elsewhere = {.name = "elsewhere"};
    static const bsmm_groups groups;
    static const bsmm_product product = {.groups = &groups, .backend = &elsewhere};
    uint32_t refuse = 0;
    for (uint32_t i = 0; bsmm_kernel_at(i); i++) {
        const char *reason = bsmm_features_refuse(bsmm_kernel_at(i), &product);
        assert_true((reason == NULL) == !!(bsmm_kernel_at(i)->features & BSMM_FEATURE_GROUPS));
        if (!reason) continue;
        assert_string_equal(reason,
                            "group is set; the kernel runs one product, not groups of products");
        refuse++;
    }
    print_message("%u kernels would refuse by name\n", refuse);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_bytes),  cmocka_unit_test(test_scale_bytes_overflow),
        cmocka_unit_test(test_broken_rules), cmocka_unit_test(test_shared_scales),
        cmocka_unit_test(test_no_groups),    cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
