/* Tests the buffers that a caller passes to a run. They must match the plan and must not overlap.
 * For every mistake the run must return BSMM_E_INVALID, name the field, and leave D unchanged. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 5, N = 64, K = 128, GUARD = 0x5a, ARENA = 8 << 20 };

typedef struct fixture {
    test_matrix a, b, d;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    /* `extra` is memory for C, the bias and other arrays. `global` is memory for a second-level
     * scale, i.e. a scale of a whole matrix. */
    float extra[M * N], global;
    uint8_t *arena;
} fixture;

static void fixture_make(fixture *f, const char *a, uint32_t packed) {
    rng r = {7};
    test_matrix_make(&f->a, describe(format_named(a), M, K), FILL_ORDINARY, &r);
    test_matrix_make(&f->b, describe(format_named("mxfp4"), N, K), FILL_ORDINARY, &r);
    test_matrix_make(&f->d, describe(format_named("f32"), M, N), FILL_ORDINARY, &r);
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &f->a.m, .b = &f->b.m, .d = &f->d.m, .b_packed = packed};
    assert_int_equal(bsmm_plan_create(&desc, &f->plan), BSMM_OK);
    f->arena = aligned_alloc(64, ARENA);
    f->global = 1;
    assert_true(2 * bsmm_plan_workspace_bytes(f->plan) + 2 * bsmm_plan_packed_b_bytes(f->plan) +
                    256 <
                ARENA);
    f->buffers = (bsmm_buffers){.struct_size = sizeof f->buffers,
                                .a = f->a.m.data,
                                .a_scales = f->a.m.scales,
                                .b = f->b.m.data,
                                .b_scales = f->b.m.scales,
                                .d = f->d.m.data,
                                .workspace = f->arena,
                                .workspace_bytes = bsmm_plan_workspace_bytes(f->plan)};
    memset(f->d.m.data, GUARD, sizeof f->extra);
}

static void fixture_free(fixture *f) {
    bsmm_plan_destroy(f->plan);
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
    free(f->arena);
}

static void expect_invalid(const fixture *f, const bsmm_buffers *buffers, const char *message) {
    assert_int_equal(bsmm_plan_run(f->plan, buffers), BSMM_E_INVALID);
    if (!strstr(bsmm_error_message(), message))
        fail_msg("\"%s\" does not say \"%s\"", bsmm_error_message(), message);
    for (size_t i = 0; i < sizeof f->extra; i++)
        assert_int_equal(((const uint8_t *)f->d.m.data)[i], GUARD);
}

/* Lists the optional arrays of a run. The run must refuse each of them if the plan does not use
 * it. */
static const struct {
    const char *name, *rule;
    size_t at; /* `at` is the byte offset of the array's pointer in bsmm_buffers. */
} arrays[] = {
    {"c", "desc.beta is 0", offsetof(bsmm_buffers, c)},
    {"bias", "desc.bias_elem is 0", offsetof(bsmm_buffers, bias)},
    {"residual", "epilogue has no residual", offsetof(bsmm_buffers, residual)},
    {"row_scale", "epilogue.scale_by has no BSMM_SCALE_BY_ROW", offsetof(bsmm_buffers, row_scale)},
    {"col_scale", "epilogue.scale_by has no BSMM_SCALE_BY_COL", offsetof(bsmm_buffers, col_scale)},
    {"group_sizes", "group.kind is none of ROWS, MASKED and K",
     offsetof(bsmm_buffers, group_sizes)},
    {"gather", "group.flags has no BSMM_GROUP_GATHER_A", offsetof(bsmm_buffers, gather)},
    {"group_alpha", "group.flags has no BSMM_GROUP_EACH_ALPHA",
     offsetof(bsmm_buffers, group_alpha)},
};

static void set_array(bsmm_buffers *buffers, size_t at, const void *values) {
    memcpy((uint8_t *)buffers + at, &values, sizeof values);
}

static void replan(fixture *f, const bsmm_matmul_desc *desc) {
    bsmm_plan_destroy(f->plan);
    if (bsmm_plan_create(desc, &f->plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    f->buffers.workspace_bytes = bsmm_plan_workspace_bytes(f->plan);
    assert_true(f->buffers.workspace_bytes > 0 && f->buffers.workspace_bytes < ARENA / 2);
}

/* Expects that a run refuses the optional array number i of the list `arrays`, because the plan
 * does not use it. */
static void expect_surplus(fixture *f, size_t i) {
    bsmm_buffers bad = f->buffers;
    char message[160];
    set_array(&bad, arrays[i].at, f->extra);
    snprintf(message, sizeof message, "%s: value is %p; must be NULL, for the plan's %s",
             arrays[i].name, (const void *)f->extra, arrays[i].rule);
    expect_invalid(f, &bad, message);
}

static void test_surplus(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    for (size_t i = 0; i < BSMM_COUNT(arrays); i++)
        expect_surplus(&f, i);
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

/* Tests a plan with an epilogue and groups that uses no optional array. A run with such an array
 * must be refused. */
static void test_surplus_beside_parts(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    const bsmm_epilogue relu = {.struct_size = sizeof relu, .activation = BSMM_ACTIVATION_RELU};
    const bsmm_group batch = {.struct_size = sizeof batch, .kind = BSMM_GROUP_BATCH, .count = 1};
    replan(&f, &(bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                                   .a = &f.a.m,
                                   .b = &f.b.m,
                                   .d = &f.d.m,
                                   .epilogue = &relu,
                                   .group = &batch});
    for (size_t i = 0; i < BSMM_COUNT(arrays); i++)
        expect_surplus(&f, i);
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

/* Tests bsmm_matmul, which takes the arrays from the description. It must also refuse arrays that
 * the product does not use. */
static void test_surplus_of_description(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    bsmm_epilogue e = {.struct_size = sizeof e, .row_scale = f.extra};
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &f.a.m, .b = &f.b.m, .d = &f.d.m, .epilogue = &e};
    assert_int_equal(bsmm_matmul(&desc), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "row_scale: value is "));
    e.row_scale = NULL;
    assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
    fixture_free(&f);
}

/* Runs a plan with one pointer of the buffers replaced. The run must be refused with this
 * message. */
static void expect_wrong(const fixture *f, size_t at, const void *pointer, const char *message) {
    bsmm_buffers bad = f->buffers;
    set_array(&bad, at, pointer);
    expect_invalid(f, &bad, message);
}

/* Tests a product that reads only A and B. One buffer after another is missing, is misaligned, or
 * overlaps D in its last 4 bytes. */
static void test_operands(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    const uint8_t *const d = f.d.m.data;
    const struct {
        const char *absent, *overlap;
        size_t at;
        const uint8_t *memory;
        uint64_t bytes;
    } rows[] = {
        {"a.data", "a", offsetof(bsmm_buffers, a), f.a.m.data, f.a.data_bytes},
        {"b.data", "b", offsetof(bsmm_buffers, b), f.b.m.data, f.b.data_bytes},
        {"b.scales", "b's scales", offsetof(bsmm_buffers, b_scales), f.b.m.scales, f.b.scale_bytes},
        {"d.data", NULL, offsetof(bsmm_buffers, d), NULL, 0},
    };
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        char message[64];
        snprintf(message, sizeof message, "%s: value is NULL", rows[i].absent);
        expect_wrong(&f, rows[i].at, NULL, message);
        if (!rows[i].overlap) continue;
        snprintf(message, sizeof message, "d: its memory overlaps %s;", rows[i].overlap);
        expect_wrong(&f, rows[i].at, d + sizeof f.extra - 4, message);
        expect_wrong(&f, rows[i].at, d - rows[i].bytes + 4, message);
    }
    expect_wrong(&f, offsetof(bsmm_buffers, a), (uint8_t *)f.a.m.data + 1, "a.data: value is");
    expect_wrong(&f, offsetof(bsmm_buffers, d), d + 2, "d.data: value is");
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

static void test_short_struct(void **state) {
    static const uint32_t sizes[] = {8, 16, 64, 104};
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bsmm_buffers bad = f.buffers;
        char message[80];
        bad.struct_size = sizes[i];
        snprintf(message, sizeof message, "buffers.struct_size: value is %u; must be at least 112",
                 sizes[i]);
        expect_invalid(&f, &bad, message);
    }
    /* The first version of bsmm.h had a smaller struct. Programs that were compiled with it pass
     * this size. */
    f.buffers.struct_size = offsetof(bsmm_buffers, packed_b);
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

/* Tests buffers that overlap the workspace. One buffer at a time has an element inside the
 * workspace, and the run must be refused. */
static void test_workspace(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "mxfp8", 0);
    uint8_t *const begin = f.arena + ARENA / 2;
    uint8_t *const last = begin + f.buffers.workspace_bytes - 4;
    bsmm_buffers bad = f.buffers;
    bad.workspace = begin;
    const bsmm_buffers apart = bad;
    bad.d = begin;
    expect_invalid(&f, &bad, "workspace: its memory overlaps d's");
    bad.d = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps d's");
    bad.d = begin - sizeof f.extra + 4;
    expect_invalid(&f, &bad, "workspace: its memory overlaps d's");
    bad = apart, bad.a = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps a's");
    bad = apart, bad.a_scales = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps a's");
    bad = apart, bad.b = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps b's");
    bad = apart, bad.b_scales = last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps b's");
    bad = apart, bad.a_global = (const float *)(void *)last;
    expect_invalid(&f, &bad, "workspace: its memory overlaps a's");
    bad = apart, bad.d = begin - sizeof f.extra;
    assert_int_equal(bsmm_plan_run(f.plan, &bad), BSMM_OK);
    bad = apart, bad.d = last + 4;
    assert_int_equal(bsmm_plan_run(f.plan, &bad), BSMM_OK);
    fixture_free(&f);
}

/* Expects that a run refuses the array whose pointer is at byte offset `at` of bsmm_buffers. The
 * array begins in the last bytes of the workspace. */
static void expect_apart_from_workspace(fixture *f, size_t at, const char *name) {
    char message[80];
    bsmm_buffers bad = f->buffers;
    set_array(&bad, at, f->arena + f->buffers.workspace_bytes / 4 * 4 - 4);
    snprintf(message, sizeof message, "workspace: its memory overlaps %s's; must not", name);
    expect_invalid(f, &bad, message);
}

/* Tests that C, bias, residual and factors must not overlap the workspace. */
static void test_addends_in_workspace(void **state) {
    static const char *const names[] = {"c", "the bias", "the residual", "row_scale", "col_scale"};
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    const float one = 1;
    const bsmm_epilogue e = {.struct_size = sizeof e,
                             .scale_by = BSMM_SCALE_BY_ROW | BSMM_SCALE_BY_COL,
                             .residual = &f.d.m};
    replan(&f, &(bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                                   .a = &f.a.m,
                                   .b = &f.b.m,
                                   .c = &f.d.m,
                                   .d = &f.d.m,
                                   .beta = &one,
                                   .bias_elem = BSMM_ELEM_F32,
                                   .epilogue = &e});
    for (size_t i = 0; i < BSMM_COUNT(names); i++)
        set_array(&f.buffers, arrays[i].at, f.extra);
    for (size_t i = 0; i < BSMM_COUNT(names); i++)
        expect_apart_from_workspace(&f, arrays[i].at, names[i]);
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

static void test_group_arrays_in_workspace(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    const int32_t sizes[1] = {M}, gather[M] = {4, 3, 2, 1, 0};
    const float alpha[1] = {1}, global[1] = {1};
    const bsmm_group g = {.struct_size = sizeof g,
                          .kind = BSMM_GROUP_ROWS,
                          .flags = BSMM_GROUP_GATHER_A | BSMM_GROUP_EACH_ALPHA |
                                   BSMM_GROUP_EACH_B_GLOBAL,
                          .count = 1};
    replan(&f, &(bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                                   .a = &f.a.m,
                                   .b = &f.b.m,
                                   .d = &f.d.m,
                                   .group = &g});
    f.buffers.group_sizes = sizes;
    f.buffers.gather = gather;
    f.buffers.group_alpha = alpha;
    f.buffers.b_global = global;
    expect_apart_from_workspace(&f, offsetof(bsmm_buffers, group_sizes), "group_sizes");
    expect_apart_from_workspace(&f, offsetof(bsmm_buffers, gather), "gather");
    expect_apart_from_workspace(&f, offsetof(bsmm_buffers, group_alpha), "group_alpha");
    expect_apart_from_workspace(&f, offsetof(bsmm_buffers, b_global), "b");
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

/* Tests that D must not overlap a second-level scale, which a kernel may read after it has written
 * a part of D. */
static void test_globals_in_d(void **state) {
    static const struct {
        size_t at;
        const char *message;
    } globals[] = {
        {offsetof(bsmm_buffers, a_global), "d: its memory overlaps a.global_scale; must not"},
        {offsetof(bsmm_buffers, b_global), "d: its memory overlaps b.global_scale; must not"},
        {offsetof(bsmm_buffers, d_global), "d: its memory overlaps d.global_scale; must not"},
    };
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    for (size_t i = 0; i < BSMM_COUNT(globals); i++) {
        bsmm_buffers bad = f.buffers;
        set_array(&bad, globals[i].at, (const uint8_t *)f.d.m.data + 4);
        expect_invalid(&f, &bad, globals[i].message);
    }
    fixture_free(&f);
}

/* Tests a grouped product with one second-level scale of B for each group. The run must be refused,
 * because the second of these scales is inside the workspace. */
static void test_global_per_group_in_workspace(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    const bsmm_group g = {.struct_size = sizeof g,
                          .kind = BSMM_GROUP_BATCH,
                          .flags = BSMM_GROUP_EACH_B_GLOBAL,
                          .count = 2,
                          .a_step = BSMM_GROUP_SHARED,
                          .b_step = BSMM_GROUP_SHARED};
    const bsmm_matrix d = describe(format_named("bf16"), M, N);
    replan(&f, &(bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                                   .a = &f.a.m,
                                   .b = &f.b.m,
                                   .d = &d,
                                   .group = &g});
    f.buffers.workspace = f.arena + 64;
    f.buffers.b_global = (const float *)(void *)(f.arena + 60);
    expect_invalid(&f, &f.buffers, "workspace: its memory overlaps b.global_scale's; must not");
    fixture_free(&f);
}

static void test_device_rows_in_workspace(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "bf16", 0);
    replan(&f, &(bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                                   .a = &f.a.m,
                                   .b = &f.b.m,
                                   .d = &f.d.m,
                                   .flags = BSMM_MATMUL_ANY_ROWS});
    expect_apart_from_workspace(&f, offsetof(bsmm_buffers, device_rows), "device_rows");
    fixture_free(&f);
}

static void test_packed(void **state) {
    fixture f;
    (void)state;
    fixture_make(&f, "mxfp8", 1);
    uint64_t bytes = bsmm_plan_packed_b_bytes(f.plan);
    uint8_t *const packed = f.arena + ARENA / 2;
    bsmm_buffers bad = f.buffers;
    bad.b = packed + bytes - 1;
    assert_int_equal(bsmm_pack_b(f.plan, &bad, packed, bytes), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "packed_b: its memory overlaps b's"));
    assert_int_equal(bsmm_pack_b(f.plan, &f.buffers, packed, bytes), BSMM_OK);
    f.buffers.packed_b = packed;
    f.buffers.packed_b_bytes = bytes;
    bad = f.buffers, bad.d = packed + bytes - 4;
    expect_invalid(&f, &bad, "packed_b: its memory overlaps d's");
    bad = f.buffers, bad.a = packed + bytes - 1;
    expect_invalid(&f, &bad, "packed_b: its memory overlaps a's");
    bad = f.buffers, bad.workspace = packed + (bytes - 1) / 64 * 64;
    expect_invalid(&f, &bad, "workspace: its memory overlaps packed_b's");
    assert_int_equal(bsmm_plan_run(f.plan, &f.buffers), BSMM_OK);
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surplus),
        cmocka_unit_test(test_surplus_beside_parts),
        cmocka_unit_test(test_surplus_of_description),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_short_struct),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_addends_in_workspace),
        cmocka_unit_test(test_group_arrays_in_workspace),
        cmocka_unit_test(test_globals_in_d),
        cmocka_unit_test(test_global_per_group_in_workspace),
        cmocka_unit_test(test_device_rows_in_workspace),
        cmocka_unit_test(test_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
