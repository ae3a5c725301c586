#include "gpu_conversions.h"
#include "core/backend.h"
#include "gpu.h"
#include "operand.h"
#include "recode_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* `device` is the name of the GPU that runs the conversions. */
static const char *device;

static void expect_same(const recode_case *c, const char *what, const void *expected,
                        const void *there, uint64_t bytes) {
    uint8_t *got = malloc(bytes + 1);
    test_gpu_read(device, got, there, bytes);
    recode_expect(c, what, expected, got, bytes);
    free(got);
}

/* Copies a matrix to the device. The caller frees the memory by drop(). */
static bsmm_matrix upload(const test_matrix *t) {
    bsmm_matrix m = t->m;
    m.data = test_gpu_new(device, t->m.data, t->data_bytes);
    if (t->m.scales) m.scales = test_gpu_new(device, t->m.scales, t->scale_bytes);
    if (t->m.global_scale) m.global_scale = test_gpu_new(device, t->m.global_scale, 4);
    return m;
}

static void drop(const bsmm_matrix *m) {
    test_gpu_free(device, m->data);
    test_gpu_free(device, m->scales);
    test_gpu_free(device, (void *)(uintptr_t)m->global_scale);
}

static void quantize_alike(const recode_case *c, void *context) {
    (void)context;
    bsmm_matrix src = upload(&c->src), dst = upload(&c->dst);
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.recipe = c->recipe, desc.flags = c->flags;
    desc.src = &c->src.m, desc.dst = &c->dst.m;
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_OK);
    desc.src = &src, desc.dst = &dst, desc.device = device;
    if (bsmm_quantize(&desc, NULL) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    expect_same(c, "elements", c->dst.m.data, dst.data, c->dst.data_bytes);
    if (dst.scales) expect_same(c, "scales", c->dst.m.scales, dst.scales, c->dst.scale_bytes);
    drop(&src);
    drop(&dst);
}

/* Quantizes to nvfp4 by the default recipe. This recipe is tested separately, because it has
 * kernels of its own. */
static void quantize_nv(const char *type) {
    rng r = {4};
    recode_case c = {.recipe = "torchao"};
    bsmm_matrix shape = describe(format_named("nvfp4"), 128, 256);
    shape.scale_layout = BSMM_LAYOUT_NV_128X4;
    test_matrix_make(&c.src, describe(format_named(type), 128, 256), FILL_ORDINARY, &r);
    test_matrix_make(&c.dst, shape, FILL_ORDINARY, &r);
    c.dst.m.global_scale = &c.dst.global;
    quantize_alike(&c, NULL);
    test_matrix_free(&c.src);
    test_matrix_free(&c.dst);
}

static void dequantize_alike(const char *from, const char *to, uint32_t kind, uint32_t order) {
    rng r = {5};
    bsmm_exec exec = {.struct_size = sizeof exec, .device = device};
    recode_case c = {.recipe = "dequantize"};
    bsmm_matrix shape = describe(format_named(from), 24, 256);
    shape.order = order, shape.global_kind = kind;
    if (order) shape.ld = 0;
    test_matrix_make(&c.src, shape, FILL_ORDINARY, &r);
    test_matrix_make(&c.dst, describe(format_named(to), 24, 256), FILL_ORDINARY, &r);
    c.src.m.global_scale = strcmp(from, "nvfp4") == 0 ? &c.src.global : NULL;
    c.src.global = 0.3728f;
    bsmm_matrix src = upload(&c.src), dst = upload(&c.dst);
    assert_int_equal(bsmm_dequantize(&c.src.m, &c.dst.m), BSMM_OK);
    if (bsmm_dequantize_on(&exec, &src, &dst) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    expect_same(&c, "values", c.dst.m.data, dst.data, c.dst.data_bytes);
    drop(&src);
    drop(&dst);
    test_matrix_free(&c.src);
    test_matrix_free(&c.dst);
}

/* Moves scales from row_major to `layout`. If the caller chooses the tile size of the layout, a
 * tile has 3 x 5 scales. */
static void move_scales(uint32_t layout) {
    rng r = {6};
    bsmm_exec exec = {.struct_size = sizeof exec, .device = device};
    recode_case c = {.recipe = "relayout"};
    bsmm_matrix shape = describe(format_named("mxfp8"), 40, 256);
    test_matrix_make(&c.src, shape, FILL_ORDINARY, &r);
    shape.scale_layout = layout;
    if (layout == BSMM_LAYOUT_TILE_CONTIGUOUS) shape.scale_tile_rows = 3, shape.scale_tile_cols = 5;
    test_matrix_make(&c.dst, shape, FILL_ORDINARY, &r);
    bsmm_matrix src = upload(&c.src), dst = upload(&c.dst);
    assert_int_equal(bsmm_relayout_scales(&c.src.m, &c.dst.m), BSMM_OK);
    if (bsmm_relayout_scales_on(&exec, &src, &dst) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    expect_same(&c, "scales", c.dst.m.scales, dst.scales, c.dst.scale_bytes);
    drop(&src);
    drop(&dst);
    test_matrix_free(&c.src);
    test_matrix_free(&c.dst);
}

/* Packs a column-major B to the compact packed form, in which pieces of 16 rows are interleaved.
 * The bytes must equal those of the same B in row-major order. */
static void pack_columns(void) {
    enum { HEADER = 128, ROWS = 24, COLS = 64 };
    rng r = {7};
    test_matrix a, b, d;
    bsmm_matrix shape = describe(format_named("e4m3"), ROWS, COLS);
    shape.order = BSMM_ORDER_COL;
    shape.ld = ROWS;
    test_matrix_make(&a, describe(format_named("bf16"), 4, COLS), FILL_ORDINARY, &r);
    test_matrix_make(&b, shape, FILL_ORDINARY, &r);
    test_matrix_make(&d, describe(format_named("f32"), 4, ROWS), FILL_ORDINARY, &r);
    const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                   .a = &a.m,
                                   .b = &b.m,
                                   .d = &d.m,
                                   .device = device,
                                   .b_packed = BSMM_PACKED_COMPACT};
    bsmm_plan *plan;
    if (bsmm_plan_create(&desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    const uint64_t bytes = bsmm_plan_packed_b_bytes(plan);
    uint8_t *packed = malloc(bytes);
    const uint8_t *codes = b.m.data;
    void *there = test_gpu_new(device, NULL, bytes);
    void *stored = test_gpu_new(device, b.m.data, b.data_bytes);
    const bsmm_buffers buffers = {.struct_size = sizeof buffers, .b = stored};
    if (bsmm_pack_b(plan, &buffers, there, bytes) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    test_gpu_read(device, packed, there, bytes);
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < COLS; k++)
            assert_int_equal(packed[HEADER + row * COLS + k], codes[k * ROWS + row]);
    test_gpu_free(device, stored);
    test_gpu_free(device, there);
    free(packed);
    bsmm_plan_destroy(plan);
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&d);
}

static void store_words(void) {
    static const uint32_t sent[] = {1, 0xffffffff, 3};
    const bsmm_backend *backend;
    const void *record;
    uint32_t got[3];
    void *memory = test_gpu_new(device, NULL, sizeof got);
    assert_int_equal(bsmm_device_open(device, &backend, &record), BSMM_OK);
    assert_int_equal(backend->store(record, NULL, memory, sent, sizeof sent), BSMM_OK);
    test_gpu_read(device, got, memory, sizeof got);
    assert_memory_equal(got, sent, sizeof sent);
    test_gpu_free(device, memory);
}

void gpu_conversions_run(const char *name) {
    static const char *const types[] = {"f32", "f16", "bf16"}, *const formats[] = {
                                                                   "mxfp4",        "nvfp4",
                                                                   "mxfp6_e2m3",   "mxfp8",
                                                                   "fp8_group128", "e4m3fnuz",
                                                                   "e2m1",         "e2m3"};
    device = name;
    recode_cases_each(6, quantize_alike, NULL);
    for (size_t f = 0; f < BSMM_COUNT(formats); f++)
        for (size_t t = 0; t < BSMM_COUNT(types); t++)
            for (uint32_t way = 0; way < 3; way++)
                dequantize_alike(formats[f], types[t],
                                 way == 1 ? BSMM_GLOBAL_DIVISOR : BSMM_GLOBAL_MULTIPLIER, way == 2);
    for (size_t t = 0; t < BSMM_COUNT(types); t++)
        quantize_nv(types[t]);
    move_scales(BSMM_LAYOUT_NV_128X4);
    move_scales(BSMM_LAYOUT_TILE_CONTIGUOUS);
    pack_columns();
    store_words();
}
