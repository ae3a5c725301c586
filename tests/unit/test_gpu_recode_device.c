/* Tests that bsmm_quantize, bsmm_dequantize, bsmm_amax and bsmm_relayout_scales write the same
 * bytes on each GPU as on the CPU. Destinations are filled with a pattern before, so that missing
 * writes are found. */
#include "gpu.h"
#include "recode_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Holds the copy of a matrix in device memory. */
typedef struct copy {
    const char *device;
    bsmm_matrix m;
    uint64_t data_bytes, scale_bytes;
} copy;

static copy copy_of(const char *device, const test_matrix *t) {
    copy c = {device, t->m, t->data_bytes, t->m.scales ? t->scale_bytes : 0};
    c.m.data = test_gpu_new(device, t->m.data, t->data_bytes);
    if (t->m.scales) c.m.scales = test_gpu_new(device, t->m.scales, t->scale_bytes);
    if (t->m.global_scale) c.m.global_scale = test_gpu_new(device, t->m.global_scale, 4);
    return c;
}

static void drop(copy *c) {
    test_gpu_free(c->device, c->m.data);
    if (c->m.scales) test_gpu_free(c->device, c->m.scales);
    if (c->m.global_scale) test_gpu_free(c->device, c->m.global_scale);
}

static void expect_bytes(const recode_case *c, const char *what, const char *device,
                         const void *expected, const void *there, uint64_t bytes) {
    uint8_t *got = malloc(bytes + 1);
    if (bytes) test_gpu_read(device, got, there, bytes);
    recode_expect(c, what, expected, got, bytes);
    free(got);
}

/* Returns the number of rounds for this device. A simulated GPU is a hundred times as slow as a
 * real one, so it runs only a sixth of the rounds. */
static uint32_t rounds_of(const char *device, uint32_t rounds) {
    return strncmp(device, "sim:", 4) == 0 ? (rounds + 5) / 6 : rounds;
}

static void quantizes_alike(const recode_case *c, void *context) {
    const char *device = context;
    copy src = copy_of(device, &c->src), dst = copy_of(device, &c->dst);
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.recipe = c->recipe;
    desc.flags = c->flags;
    desc.src = &c->src.m;
    desc.dst = &c->dst.m;
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_OK);
    desc.src = &src.m;
    desc.dst = &dst.m;
    desc.device = device;
    if (bsmm_quantize(&desc, NULL) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    expect_bytes(c, "scales", device, c->dst.m.scales, dst.m.scales, dst.scale_bytes);
    expect_bytes(c, "elements", device, c->dst.m.data, dst.m.data, dst.data_bytes);
    if (c->two_level)
        expect_bytes(c, "level", device, c->dst.m.global_scale, dst.m.global_scale, sizeof(float));
    drop(&src);
    drop(&dst);
}

static void quantizes_as_the_cpu(const char *device) {
    recode_cases_each(rounds_of(device, 15), quantizes_alike, (void *)(uintptr_t)device);
}

static void amax_alike(const recode_case *c, void *context) {
    const char *device = context;
    copy src = copy_of(device, &c->src);
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    float expected, *there = test_gpu_new(device, NULL, sizeof *there);
    exec.device = device;
    assert_int_equal(bsmm_amax(&c->src.m, &expected), BSMM_OK);
    assert_int_equal(bsmm_amax_on(&exec, &src.m, there), BSMM_OK);
    expect_bytes(c, "amax", device, &expected, there, sizeof expected);
    test_gpu_free(device, there);
    drop(&src);
}

static void amax_as_the_cpu(const char *device) {
    recode_cases_each(rounds_of(device, 5), amax_alike, (void *)(uintptr_t)device);
}

/* Dequantizes src on the device and on the CPU, and compares the bytes. If the format has a
 * second-level scale, the function does this once for each second-level scale in `levels`. */
static void dequantize_case(const char *device, test_matrix *src, bsmm_matrix shape,
                            const float *levels, size_t count) {
    recode_case c = {.src = *src, .recipe = "dequantize"};
    rng r = {9};
    test_matrix_make(&c.dst, shape, FILL_ORDINARY, &r);
    memset(c.dst.m.data, 0xa5, c.dst.data_bytes);
    for (size_t i = 0; i < (c.src.m.global_scale ? count : 1); i++) {
        if (c.src.m.global_scale) *c.src.m.global_scale = levels[i];
        copy from = copy_of(device, &c.src), to = copy_of(device, &c.dst);
        bsmm_exec exec = BSMM_INIT(bsmm_exec);
        exec.device = device;
        assert_int_equal(bsmm_dequantize(&c.src.m, &c.dst.m), BSMM_OK);
        if (bsmm_dequantize_on(&exec, &from.m, &to.m) != BSMM_OK)
            fail_msg("%s", bsmm_error_message());
        expect_bytes(&c, "values", device, c.dst.m.data, to.m.data, to.data_bytes);
        drop(&from);
        drop(&to);
    }
    test_matrix_free(&c.dst);
}

static void dequantize_format(const char *device, bsmm_format format, uint32_t i, rng *r) {
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const float levels[] = {0.3728f, 1, 0x1p-100f, 0x1p100f, 0x1p-140f, 448 * 6};
    bool whole = i % 2;
    test_matrix src;
    bsmm_matrix from = describe(format, whole ? 64 : 1 + (int64_t)rng_below(r, 40),
                                whole ? (int64_t)128 << i % 3 : 1 + (int64_t)rng_below(r, 300));
    bsmm_matrix to = describe(format_named(types[i % 3]), from.rows, from.cols);
    from.order = i % 5 == 4;
    to.order = i % 7 == 6;
    from.global_kind = i % 8 >= 6;
    if (format.scale) from.scale_layout = i % 9;
    if (from.scale_layout == BSMM_LAYOUT_TILE_CONTIGUOUS)
        from.scale_tile_rows = from.scale_tile_cols = 1 + rng_below(r, 5);
    if (i % 4 == 3) from.ld = bsmm_round_up(from.order ? from.rows : from.cols, 4) + 4;
    test_matrix_make(&src, from, (fill)(i / 3 % 3), r);
    src.m.global_scale = i % 8 >= 4 && format.scale ? &src.global : NULL;
    dequantize_case(device, &src, to, levels, BSMM_COUNT(levels));
    test_matrix_free(&src);
}

/* Returns a number whose product with `factor` is very close to the midpoint between two bf16 or
 * f16 numbers. If `divides` is set, this holds for the quotient instead. Rounded to fp32, this
 * result is the midpoint itself, so that a second rounding to bf16 or f16 may go the wrong way.
 * Kernels must round only once. */
static float near_middle(rng *r, float factor, bool divides) {
    /* `halves` is the number of significant bits of bf16 (8) or f16 (11). */
    uint32_t halves = rng_below(r, 2) ? 8 : 11;
    float middle = (float)((1u << halves) + 2 * rng_below(r, 1u << (halves - 1)) + 1);
    middle *= rng_below(r, 2) ? 0x1p-9f : 0x1p-3f;
    return divides ? factor / middle : middle / factor;
}

/* Tests values for which the product with a scale, or the quotient by it, is next to the midpoint
 * between two results. Some scales are 0. */
static void dequantize_hard(const char *device, const char *name, const char *type, int64_t cols,
                            uint32_t kind, rng *r) {
    bsmm_matrix from = describe(format_named(name), 70, cols);
    test_matrix src;
    float levels[8];
    from.global_kind = kind;
    test_matrix_make(&src, from, FILL_ORDINARY, r);
    for (uint64_t i = 0; i < src.scale_bytes / 4 && from.format.scale == BSMM_SCALE_F32; i++)
        ((float *)src.m.scales)[i] =
            rng_below(r, 9) ? near_middle(r, (float)(2 * rng_below(r, 8) + 1), false) : 0;
    for (uint64_t i = 0; i < src.scale_bytes && from.format.scale == BSMM_SCALE_E4M3; i++)
        ((uint8_t *)src.m.scales)[i] = rng_below(r, 9) ? (uint8_t)(0x28 + rng_below(r, 0x20)) : 0;
    for (size_t i = 0; i < BSMM_COUNT(levels); i++)
        levels[i] = near_middle(r, (float)((2 * rng_below(r, 8) + 1) * (i % 2 ? 3 : 1)),
                                kind == BSMM_GLOBAL_DIVISOR);
    src.m.global_scale = from.format.scale == BSMM_SCALE_E4M3 ? &src.global : NULL;
    dequantize_case(device, &src, describe(format_named(type), 70, cols), levels,
                    BSMM_COUNT(levels));
    test_matrix_free(&src);
}

static void dequantizes_hard_scales_as_the_cpu(const char *device) {
    static const char *const types[] = {"bf16", "f16", "f32"};
    rng r = {11};
    for (size_t t = 0; t < BSMM_COUNT(types); t++)
        for (int64_t cols = 8; cols <= 520; cols = 3 * cols + 48) {
            dequantize_hard(device, "fp8_group128", types[t], cols, 0, &r);
            dequantize_hard(device, "fp8_block128", types[t], cols, 0, &r);
            dequantize_hard(device, "nvfp4", types[t], cols, BSMM_GLOBAL_MULTIPLIER, &r);
            dequantize_hard(device, "nvfp4", types[t], cols, BSMM_GLOBAL_DIVISOR, &r);
        }
}

static void dequantizes_as_the_cpu(const char *device) {
    static const char *const unscaled[] = {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e3m2",
                                           "e2m3", "e2m1", "f32",      "f16",      "bf16"};
    bsmm_preset_info info = {.struct_size = sizeof info};
    rng r = {7};
    for (uint32_t i = 0; i < rounds_of(device, 36); i++) {
        for (uint32_t p = 0; bsmm_preset_at(p, &info) == BSMM_OK; p++)
            dequantize_format(device, info.format, i, &r);
        for (size_t u = 0; u < BSMM_COUNT(unscaled); u++)
            dequantize_format(device, format_named(unscaled[u]), i, &r);
    }
}

/* Tests that -0 keeps the right sign with second-level scales that multiply or divide, and that are
 * positive or negative. */
static void zeros_keep_their_signs(const char *device) {
    static const char *const formats[] = {"mxfp8", "mxfp6_e2m3", "mxfp4", "nvfp4", "fp8_group128"};
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const float levels[] = {1, 0.5f, -0.5f, 3};
    rng r = {12};
    for (uint32_t i = 0; i < BSMM_COUNT(formats) * BSMM_COUNT(types) * 2; i++) {
        test_matrix src;
        bsmm_matrix from = describe(format_named(formats[i / 6]), 5, 144);
        uint32_t elem = from.format.elem;
        from.global_kind = i % 2;
        test_matrix_make(&src, from, FILL_ORDINARY, &r);
        for (uint64_t k = 0; k < 5 * 144; k += 3)
            bsmm_elem_store(elem, src.m.data, k, bsmm_elem_encode(elem, -0.0, true));
        src.m.global_scale = &src.global;
        dequantize_case(device, &src, describe(format_named(types[i / 2 % 3]), 5, 144), levels,
                        BSMM_COUNT(levels));
        test_matrix_free(&src);
    }
}

static bsmm_matrix scales_shape(const char *name, int64_t rows, int64_t cols, uint32_t layout,
                                rng *r) {
    bsmm_matrix m = describe(format_named(name), rows, cols);
    m.scale_layout = layout;
    if (layout == BSMM_LAYOUT_TILE_CONTIGUOUS) {
        m.scale_tile_rows = 1 + rng_below(r, 20);
        m.scale_tile_cols = 1 + rng_below(r, 6);
    }
    if (layout <= BSMM_LAYOUT_COL_MAJOR && rng_below(r, 3) == 0)
        m.scale_ld = (layout == BSMM_LAYOUT_ROW_MAJOR ? cols : rows) + 16 * rng_below(r, 3);
    return m;
}

static void move_case(const char *device, const char *name, uint32_t from, uint32_t to,
                      int64_t rows, int64_t cols, rng *r) {
    recode_case c = {.recipe = "relayout"};
    test_matrix_make(&c.src, scales_shape(name, rows, cols, from, r), FILL_SPECIAL, r);
    test_matrix_make(&c.dst, scales_shape(name, rows, cols, to, r), FILL_SPECIAL, r);
    c.src.m.global_scale = c.dst.m.global_scale = NULL;
    memset(c.dst.m.scales, 0xa5, c.dst.scale_bytes);
    copy src = copy_of(device, &c.src), dst = copy_of(device, &c.dst);
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    exec.device = device;
    assert_int_equal(bsmm_relayout_scales(&c.src.m, &c.dst.m), BSMM_OK);
    if (bsmm_relayout_scales_on(&exec, &src.m, &dst.m) != BSMM_OK)
        fail_msg("%s", bsmm_error_message());
    expect_bytes(&c, "scales", device, c.dst.m.scales, dst.m.scales, dst.scale_bytes);
    drop(&src);
    drop(&dst);
    test_matrix_free(&c.src);
    test_matrix_free(&c.dst);
}

static void moves_scales_as_the_cpu(const char *device) {
    static const char *const formats[] = {"mxfp8", "nvfp4", "fp8_group128", "fp8_block128"};
    rng r = {8};
    for (size_t f = 0; f < BSMM_COUNT(formats); f++)
        for (uint32_t from = 0; from < 9; from++)
            for (uint32_t to = 0; to < 9; to++) {
                move_case(device, formats[f], from, to, 1 + rng_below(&r, 500),
                          1 + rng_below(&r, 900), &r);
                /* With these sizes, the kernels use loads and stores of 16 bytes. */
                move_case(device, formats[f], from, to, 64 * (1 + rng_below(&r, 3)),
                          512 * (1 + rng_below(&r, 2)), &r);
            }
    /* A row of 90 or 91 scales has as many bytes, which is no multiple of 4. The scales of most
     * rows therefore do not begin at a multiple of 4 bytes, and a GPU thread cannot load four of
     * them as one word. It loads two bytes (90 scales) or one byte (91 scales) at a time. */
    for (int64_t scales = 90; scales < 92; scales++)
        move_case(device, "mxfp8", BSMM_LAYOUT_ROW_MAJOR, BSMM_LAYOUT_NV_128X4, 300, 32 * scales,
                  &r);
}

static void on_each_device(void **state) {
    static void (*const tests[])(const char *) = {
        quantizes_as_the_cpu,   amax_as_the_cpu,         dequantizes_as_the_cpu,
        zeros_keep_their_signs, moves_scales_as_the_cpu, dequantizes_hard_scales_as_the_cpu,
    };
    const char *device;
    (void)state;
    test_gpu_need();
    for (uint32_t i = 0; (device = test_gpu_at(i)); i++)
        for (size_t t = 0; t < sizeof tests / sizeof tests[0]; t++)
            tests[t](device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_each_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
