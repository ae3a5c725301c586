/* Tests packed weights on every GPU. A kernel must give bitwise identical results with a packed B
 * and with B as it is stored. The packed bytes must not depend on B's order, leading dimension or
 * scale layout, and must be those in docs/PACKING.md. */
#include "gpu.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADER = 128, WAYS = 3 };

static const char *const pairs[][2] = {
    {"mxfp4", "mxfp4"},       {"bf16", "mxfp4"},       {"nvfp4", "nvfp4"},
    {"mxfp8", "mxfp8"},       {"mxfp8", "mxfp6_e2m3"}, {"fp8_group128", "fp8_block128"},
    {"bf16", "fp8_group128"}, {"bf16", "bf16"},        {"f32", "f16"},
    {"f16", "mxfp8"},         {"f16", "nvfp4"},        {"f16", "fp8_block128"},
};

/* Holds one matrix B in three forms: row-major, row-major with gaps and swizzled scales, and
 * column-major. */
typedef struct weights {
    test_matrix ways[WAYS];
} weights;

static void copy_matrix(const bsmm_matrix *from, const bsmm_matrix *to) {
    bsmm_operand source, target;
    assert_int_equal(bsmm_operand_take(from, "from", &source), BSMM_OK);
    assert_int_equal(bsmm_operand_take(to, "to", &target), BSMM_OK);
    bsmm_compact_unpack(&source, &target);
}

static void make_weights(weights *w, const char *format, int64_t n, int64_t k, rng *r) {
    bsmm_matrix rows = describe(format_named(format), n, k), gaps = rows, columns = rows;
    gaps.ld = bsmm_round_up(k, 4) + 32;
    columns.order = BSMM_ORDER_COL;
    if (rows.format.scale) {
        gaps.scale_layout =
            rows.format.scale == BSMM_SCALE_F32 ? BSMM_LAYOUT_COL_MAJOR : BSMM_LAYOUT_NV_128X4;
        columns.scale_layout = BSMM_LAYOUT_COL_MAJOR;
    }
    test_matrix_make(&w->ways[0], rows, FILL_ORDINARY, r);
    test_matrix_make(&w->ways[1], gaps, FILL_ORDINARY, r);
    test_matrix_make(&w->ways[2], columns, FILL_ORDINARY, r);
    for (int i = 1; i < WAYS; i++)
        copy_matrix(&w->ways[0].m, &w->ways[i].m);
}

typedef struct fixture {
    const char *device;
    test_matrix a, d;
    weights b;
    float global; /* `global` is B's second-level scale. 0 means that B has none. */
    bsmm_matmul_desc desc;
    bsmm_buffers buffers;
} fixture;

static void *mutable(const void *pointer) {
    return (void *)(uintptr_t)pointer;
}

static void fixture_make(fixture *f, const char *const pair[2], int64_t m, int64_t n, int64_t k,
                         rng *r) {
    *f = (fixture){.device = NULL};
    test_matrix_make(&f->a, describe(format_named(pair[0]), m, k), FILL_ORDINARY, r);
    test_matrix_make(&f->d, describe(format_named("f32"), m, n), FILL_ORDINARY, r);
    make_weights(&f->b, pair[1], n, k, r);
    f->desc = (bsmm_matmul_desc){
        .struct_size = sizeof f->desc, .a = &f->a.m, .b = &f->b.ways[0].m, .d = &f->d.m};
}

static void fixture_free(fixture *f) {
    test_matrix_free(&f->a);
    test_matrix_free(&f->d);
    for (int i = 0; i < WAYS; i++)
        test_matrix_free(&f->b.ways[i]);
}

static void *copy_there(const fixture *f, const void *from, uint64_t bytes) {
    return from ? test_gpu_new(f->device, from, bytes) : NULL;
}

static void set_b(fixture *f, int way) {
    const test_matrix *b = &f->b.ways[way];
    f->desc.b = &b->m;
    f->buffers.b = copy_there(f, b->m.data, b->data_bytes);
    f->buffers.b_scales = copy_there(f, b->m.scales, b->scale_bytes);
    f->buffers.b_global = f->global != 0 ? copy_there(f, &f->global, sizeof f->global) : NULL;
}

static void drop_b(fixture *f) {
    const void *b[] = {f->buffers.b, f->buffers.b_scales, f->buffers.b_global};
    for (size_t i = 0; i < BSMM_COUNT(b); i++)
        test_gpu_free(f->device, mutable(b[i]));
    f->buffers.b = f->buffers.b_scales = NULL;
    f->buffers.b_global = NULL;
}

static bsmm_plan *open_plan(const fixture *f) {
    bsmm_plan *plan;
    if (bsmm_plan_create(&f->desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    return plan;
}

static void *result_of(fixture *f, const bsmm_plan *plan) {
    bsmm_buffers buffers = f->buffers;
    const bsmm_exec exec = {.struct_size = sizeof exec, .device = f->device};
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = test_gpu_new(f->device, NULL, buffers.workspace_bytes);
    assert_int_equal(bsmm_fill_memory(&exec, buffers.d, 0xA5, f->d.data_bytes), BSMM_OK);
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    void *bits = malloc(f->d.data_bytes);
    test_gpu_read(f->device, bits, buffers.d, f->d.data_bytes);
    test_gpu_free(f->device, buffers.workspace);
    return bits;
}

/* Packs B, which the fixture stores row-major, row-major with gaps, or column-major. Returns the
 * packed bytes in host memory. */
static uint8_t *pack(fixture *f, const bsmm_plan *plan, void **there) {
    const uint64_t bytes = bsmm_plan_packed_b_bytes(plan);
    uint8_t *packed = malloc(bytes);
    assert_true(bytes > 0);
    *there = test_gpu_new(f->device, NULL, bytes);
    const bsmm_buffers b = {.struct_size = sizeof b,
                            .b = f->buffers.b,
                            .b_scales = f->buffers.b_scales,
                            .b_global = f->buffers.b_global};
    if (bsmm_pack_b(plan, &b, *there, bytes) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    test_gpu_read(f->device, packed, *there, bytes);
    return packed;
}

/* Expects the bytes `wanted` at *at, followed by zeros up to the next multiple of 64 bytes. Moves
 * *at past the zeros. */
static void expect_array(const uint8_t **at, const void *wanted, uint64_t bytes) {
    const uint64_t end = (bytes + 63) / 64 * 64;
    if (bytes) assert_memory_equal(*at, wanted, bytes);
    for (uint64_t i = bytes; i < end; i++)
        assert_int_equal((*at)[i], 0);
    *at += end;
}

/* Checks that the header of packed weights is followed by the rows of B, its row-major scales and
 * its second-level scale, in this order. */
static void expect_rows(const fixture *f, const uint8_t *packed, uint64_t bytes) {
    const test_matrix *b = &f->b.ways[0];
    const float value = f->global != 0 ? f->global : 1;
    const uint32_t given = f->global != 0;
    uint8_t global[64] = {0};
    memcpy(global, &value, sizeof value);
    memcpy(global + sizeof value, &given, sizeof given);
    uint8_t *rows = calloc(1, b->data_bytes + 1);
    bsmm_matrix clear = b->m;
    clear.data = rows;
    copy_matrix(&b->m, &clear); /* The copy leaves zeros in the padding of rows. */
    const uint8_t *at = packed + HEADER;
    expect_array(&at, rows, b->data_bytes);
    expect_array(&at, b->m.scales, b->m.scales ? b->scale_bytes : 0);
    expect_array(&at, global, sizeof global);
    assert_true(at == packed + bytes);
    free(rows);
}

static void expect_unpacked(const fixture *f, const uint8_t *packed, uint64_t bytes) {
    test_matrix back, again;
    rng r = {7};
    float global = 0;
    const test_matrix *b = &f->b.ways[0];
    test_matrix_make(&back, f->b.ways[2].m, FILL_SPECIAL, &r);
    test_matrix_make(&again, b->m, FILL_ORDINARY, &r);
    bsmm_matrix to = back.m;
    to.global_scale = &global;
    if (bsmm_unpack_b(packed, bytes, 0, &to) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    copy_matrix(&b->m, &again.m);
    copy_matrix(&back.m, &again.m);
    if (b->m.cols % 8 == 0) assert_memory_equal(again.m.data, b->m.data, b->data_bytes);
    if (b->m.scales) assert_memory_equal(again.m.scales, b->m.scales, b->scale_bytes);
    assert_true(global == (f->global != 0 ? f->global : 1));
    test_matrix_free(&back);
    test_matrix_free(&again);
}

static void expect_info(const bsmm_plan *plan, const uint8_t *packed, uint64_t bytes) {
    bsmm_packed_info plans = BSMM_INIT(bsmm_packed_info), theirs = BSMM_INIT(bsmm_packed_info);
    assert_int_equal(bsmm_plan_packed_info(plan, &plans), BSMM_OK);
    assert_int_equal(bsmm_packed_describe(packed, bytes, &theirs), BSMM_OK);
    assert_memory_equal(&plans, &theirs, sizeof plans);
    assert_true(plans.bytes == bytes);
}

/* Compares the size of the packed B with the size that bsmm_packed_bytes returns without a plan. */
static void expect_size(const fixture *f, uint64_t bytes) {
    uint64_t told;
    const test_matrix *b = &f->b.ways[0];
    if (bsmm_packed_bytes(f->device, BSMM_PACKED_COMPACT, f->desc.b, 0, NULL, &told) != BSMM_OK)
        fail_msg("%s", bsmm_error_message());
    assert_true(told == bytes);
    assert_true(bytes <= HEADER + b->data_bytes + (b->m.scales ? b->scale_bytes : 0) + 3 * 64);
}

/* Stores B as number `way` says, which selects one of several combinations of order (row-major or
 * column-major) and scale layout. Then packs B to the form `form` (BSMM_PACKED_*) and runs the
 * product with the packed B. Fails if the packed bytes differ from those of the first `way`, which
 * are in *first, or if the bits of D differ from `want`. */
static void check_way(fixture *f, uint32_t form, int way, const void *want, uint8_t **first) {
    void *there;
    set_b(f, way);
    f->desc.b_packed = form;
    bsmm_plan *plan = open_plan(f);
    const uint64_t bytes = bsmm_plan_packed_b_bytes(plan);
    uint8_t *packed = pack(f, plan, &there);
    expect_info(plan, packed, bytes);
    drop_b(f);
    if (!*first) {
        *first = packed;
        expect_unpacked(f, packed, bytes);
        if (form == BSMM_PACKED_COMPACT) {
            expect_rows(f, packed, bytes);
            expect_size(f, bytes);
        }
    } else {
        assert_memory_equal(packed, *first, bytes);
        free(packed);
    }
    f->buffers.packed_b = there;
    f->buffers.packed_b_bytes = bytes;
    void *got = result_of(f, plan);
    if (memcmp(got, want, f->d.data_bytes) != 0)
        fail_msg("%s, form %u, %s x %s, %lld x %lld x %lld, way %d: other bits",
                 bsmm_plan_kernel(plan), form, bsmm_format_name(f->a.m.format),
                 bsmm_format_name(f->b.ways[0].m.format), (long long)f->d.m.rows,
                 (long long)f->d.m.cols, (long long)f->a.m.cols, way);
    free(got);
    f->buffers.packed_b = NULL;
    f->buffers.packed_b_bytes = 0;
    f->desc.b_packed = 0;
    test_gpu_free(f->device, there);
    bsmm_plan_destroy(plan);
}

static void check_kernel(fixture *f) {
    f->desc.b_packed = 0;
    set_b(f, 0);
    bsmm_plan *plan = open_plan(f);
    const bool has_panels = bsmm_plan_packed_b_bytes(plan) > 0;
    void *want = result_of(f, plan);
    drop_b(f);
    bsmm_plan_destroy(plan);
    for (uint32_t form = has_panels ? BSMM_PACKED_WIDE : BSMM_PACKED_COMPACT;
         form <= BSMM_PACKED_COMPACT; form++) {
        uint8_t *first = NULL;
        for (int way = 0; way < WAYS; way++)
            check_way(f, form, way, want, &first);
        free(first);
    }
    free(want);
}

static int check_product(fixture *f) {
    int kernels = 0;
    for (test_walk w = test_walk_begin(&f->desc); test_walk_next(&w); kernels++) {
        if (test_walk_on_cpu(&w)) continue;
        f->device = f->desc.device;
        f->buffers = (bsmm_buffers){
            .struct_size = sizeof f->buffers,
            .a = copy_there(f, f->a.m.data, f->a.data_bytes),
            .a_scales = copy_there(f, f->a.m.scales, f->a.scale_bytes),
            .d = test_gpu_new(f->device, NULL, f->d.data_bytes),
        };
        check_kernel(f);
        f->desc.b = &f->b.ways[0].m;
        test_gpu_free(f->device, mutable(f->buffers.a));
        test_gpu_free(f->device, mutable(f->buffers.a_scales));
        test_gpu_free(f->device, f->buffers.d);
    }
    return kernels;
}

static void check_shapes(const int64_t (*shapes)[3], size_t count, float global) {
    rng r = {91};
    int kernels = 0;
    test_gpu_need();
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < count; j++) {
            fixture f;
            fixture_make(&f, pairs[i], shapes[j][0], shapes[j][1], shapes[j][2], &r);
            f.global = global;
            kernels += check_product(&f);
            fixture_free(&f);
        }
    print_message("%d products\n", kernels);
}

static void test_any_number_of_rows(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {
        {1, 80, 256}, {8, 80, 256}, {33, 80, 256}, {65, 80, 256}, {200, 80, 256}};
    check_shapes(shapes, BSMM_COUNT(shapes), 0);
}

static void test_odd_extents(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 71, 95}, {33, 71, 95}, {5, 3, 289}};
    check_shapes(shapes, BSMM_COUNT(shapes), 0);
}

static void test_global_scale(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 71, 256}, {33, 71, 256}};
    check_shapes(shapes, BSMM_COUNT(shapes), 0.75f);
}

/* Tests a plan whose runs read a column-major B as it is stored. Its kernel was chosen for a
 * column-major B. Packed weights do not have this order, so the kernel could not read them. The
 * plan must therefore report 0 packed bytes. */
static void test_plans_without_packed_weights(void **state) {
    (void)state;
    rng r = {92};
    test_gpu_need();
    for (uint32_t i = 0; test_gpu_at(i); i++) {
        fixture f;
        fixture_make(&f, pairs[0], 33, 80, 256, &r);
        f.desc.device = test_gpu_at(i);
        f.desc.b = &f.b.ways[2].m;
        bsmm_packed_info info = BSMM_INIT(bsmm_packed_info);
        bsmm_plan *plan = open_plan(&f);
        assert_int_equal(bsmm_plan_packed_b_bytes(plan), 0);
        assert_int_equal(bsmm_plan_packed_info(plan, &info), BSMM_E_UNSUPPORTED);
        bsmm_plan_destroy(plan);
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_rows),
        cmocka_unit_test(test_odd_extents),
        cmocka_unit_test(test_global_scale),
        cmocka_unit_test(test_plans_without_packed_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
