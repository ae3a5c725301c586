/* Tests that the packing kernels on a GPU write the same bytes as their per-thread functions on the
 * CPU (tests/support/pack_model.h). The test covers every format, order and scale layout with
 * random codes. The packed memory is filled with a pattern before, so that missing writes are
 * found. */
#include "cuda.h"
#include "operand.h"
#include "pack_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const formats[] = {
    "mxfp8",        "mxfp8_e5m2",   "mxfp6_e2m3",
    "mxfp6_e3m2",   "mxfp4",        "nvfp4",
    "fp8_group128", "fp8_block128", "fp8_group128_fnuz",
    "e4m3",         "e5m2",         "e5m2fnuz",
    "e2m1",         "bf16",         "f16",
    "f32",
};

typedef struct on_device {
    const bsmm_cuda_device *device;
    /* `host` describes an operand in host memory, and `operand` describes its copy in device
       memory. */
    bsmm_operand host, operand;
} on_device;

static on_device upload(const bsmm_cuda_device *device, const test_matrix *t) {
    on_device d = {.device = device};
    assert_int_equal(bsmm_operand_take(&t->m, "m", &d.host), BSMM_OK);
    d.operand = d.host;
    d.operand.m.data = test_cuda_new(device, t->m.data, t->data_bytes);
    if (t->m.scales) d.operand.m.scales = test_cuda_new(device, t->m.scales, t->scale_bytes);
    return d;
}

static void release(const on_device *d) {
    test_cuda_free(d->device, d->operand.m.data);
    if (d->operand.m.scales) test_cuda_free(d->device, d->operand.m.scales);
}

/* Fills the gaps between the header, the packed scales and the elements with the test's pattern.
 * Packing kernels do not write these gaps. */
static void poison_gaps(uint8_t *memory, const bsmm_pack_layout *at, bool with_scales) {
    uint64_t padded = at->elements;
    memset(memory + BSMM_PACK_HEADER_BYTES, 0xa5, at->group_scales - BSMM_PACK_HEADER_BYTES);
    if (!with_scales) memset(memory + at->group_scales, 0xa5, padded - at->group_scales);
}

static void compare(const on_device *d, bsmm_pack_route route, bool with_scales) {
    bsmm_pack_layout at = bsmm_pack_layout_of(d->host.m.rows, d->host.m.cols, route);
    uint8_t *expected = malloc(at.bytes), *got = malloc(at.bytes);
    void *memory = test_cuda_new(d->device, NULL, at.bytes);
    memset(expected, 0xa5, at.bytes);
    poison_gaps(expected, &at, with_scales);
    bsmm_pack_launch host = bsmm_pack_launch_of(&d->host, route, with_scales, expected);
    bsmm_pack_launch launch = bsmm_pack_launch_of(&d->operand, route, with_scales, memory);
    pack_model(&host, &d->host);
    assert_int_equal(bsmm_pack_load(d->device, &launch), BSMM_OK);
    assert_int_equal(bsmm_cuda_enter(d->device), BSMM_OK);
    assert_int_equal(bsmm_pack_run(d->device, &launch, NULL), BSMM_OK);
    bsmm_cuda_leave(d->device);
    test_cuda_read(d->device, got, memory, at.bytes);
    /* If the header has the flag WIDE, the packed elements are unspecified, so they are not
     * compared. */
    bool wide = ((bsmm_pack_header *)(void *)expected)->flags & BSMM_PACK_WIDE;
    for (uint64_t i = 0; i < (wide ? at.elements : at.bytes); i++)
        if (expected[i] != got[i])
            fail_msg(
                "%s (%s): %lld x %lld, order %u, layout %u, scales %d: byte %llu is %02x, must "
                "be %02x (elements from %llu on)",
                launch.function->name, bsmm_format_name(d->host.m.format),
                (long long)d->host.m.rows, (long long)d->host.m.cols, d->host.m.order,
                d->host.m.scale_layout, with_scales, (unsigned long long)i, got[i], expected[i],
                (unsigned long long)at.elements);
    test_cuda_free(d->device, memory);
    free(expected);
    free(got);
}

static void compare_routes(const bsmm_cuda_device *device, const test_matrix *t) {
    char why[160];
    on_device d = upload(device, t);
    for (int route = 0; route < 3; route++)
        if (!bsmm_pack_refuse(&d.host, 'A', (bsmm_pack_route)route, why, sizeof why)) {
            compare(&d, (bsmm_pack_route)route, true);
            compare(&d, (bsmm_pack_route)route, false);
        }
    release(&d);
}

/* Returns the shape of test i. In half of the tests, rows and columns are multiples of 128, for
 * which the packing kernels have a fast path with loads of 16 bytes. */
static bsmm_matrix shape_of(const char *name, uint32_t i, rng *r) {
    bool whole = i % 4 < 2;
    int64_t rows = whole ? (int64_t)128 << rng_below(r, 2) : 1 + (int64_t)rng_below(r, 300);
    int64_t cols = whole ? (int64_t)128 << rng_below(r, 5) : 1 + (int64_t)rng_below(r, 700);
    bsmm_matrix m = describe(format_named(name), rows, cols);
    m.order = i % 2;
    int64_t line = m.order == BSMM_ORDER_ROW ? cols : rows;
    if (i % 3 == 0) m.ld = bsmm_round_up(line, 4) + 4 * rng_below(r, 9);
    if (m.format.scale == BSMM_SCALE_NONE) return m;
    m.scale_layout = i % 9;
    if (m.scale_layout != BSMM_LAYOUT_TILE_CONTIGUOUS) return m;
    m.scale_tile_rows = 1 + rng_below(r, 9);
    m.scale_tile_cols = 1 + rng_below(r, 5);
    return m;
}

static void kernels_write_the_models_bytes(void **state) {
    const bsmm_cuda_device *device = test_cuda_device();
    rng r = {40};
    (void)state;
    for (size_t f = 0; f < BSMM_COUNT(formats); f++)
        for (uint32_t i = 0; i < 18; i++) {
            test_matrix t;
            test_matrix_make(&t, shape_of(formats[f], i, &r), (fill)(i % 3), &r);
            t.m.global_scale = NULL;
            compare_routes(device, &t);
            test_matrix_free(&t);
        }
}

/* Tests blocks with the smallest codes of the format. Packing with rounding (BSMM_PACK_FAST)
 * multiplies these by the largest factors. */
static void least_codes_are_folded(void **state) {
    static const struct {
        const char *format;
        uint8_t mask;
    } cases[] = {{"mxfp8", 0x81},
                 {"mxfp8", 0x83},
                 {"mxfp8", 0x87},
                 {"mxfp8_e5m2", 0x81},
                 {"mxfp8_e5m2", 0x83}};
    const bsmm_cuda_device *device = test_cuda_device();
    rng r = {43};
    (void)state;
    for (size_t i = 0; i < 2 * BSMM_COUNT(cases); i++) {
        test_matrix t;
        bsmm_matrix shape = describe(format_named(cases[i / 2].format), 20, 400);
        shape.order = i % 2;
        test_matrix_make(&t, shape, FILL_ORDINARY, &r);
        uint8_t *codes = t.m.data;
        for (uint64_t b = 0; b < t.data_bytes; b++)
            codes[b] &= cases[i / 2].mask;
        compare_routes(device, &t);
        test_matrix_free(&t);
    }
}

static void check_scales(const bsmm_cuda_device *device, const char *name, uint32_t layout,
                         bool by_row, rng *r) {
    test_matrix t;
    bsmm_matrix shape = describe(format_named(name), 1 + rng_below(r, 400), 1 + rng_below(r, 900));
    shape.scale_layout = layout;
    shape.scale_tile_rows = shape.scale_tile_cols = layout == BSMM_LAYOUT_TILE_CONTIGUOUS ? 3 : 0;
    test_matrix_make(&t, shape, FILL_ORDINARY, r);
    on_device d = upload(device, &t);
    float got[404 * 8], *to = test_cuda_new(device, NULL, sizeof got);
    bsmm_pack_scales_launch launch = bsmm_pack_scales_launch_of(&d.operand, by_row, to);
    assert_int_equal(bsmm_pack_scales_load(device, &launch), BSMM_OK);
    assert_int_equal(bsmm_cuda_enter(device), BSMM_OK);
    assert_int_equal(bsmm_pack_scales_run(device, &launch, NULL), BSMM_OK);
    bsmm_cuda_leave(device);
    test_cuda_read(device, got, to, sizeof got);
    int64_t rows = by_row ? bsmm_round_up(shape.rows, 4) : bsmm_ceil_div(shape.rows, 128);
    int64_t cols = bsmm_ceil_div(shape.cols, 128);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < cols; c++) {
            int64_t block = by_row ? i / shape.format.block_rows : i;
            bool there = !by_row || i < shape.rows;
            uint64_t at = there ? bsmm_scale_map_at(&d.host.map, block, c) : 0;
            double expected = there ? bsmm_scale_load(BSMM_SCALE_F32, t.m.scales, at) : 0;
            assert_true((double)got[by_row ? c * rows + i : i * cols + c] == expected);
        }
    test_cuda_free(device, to);
    release(&d);
    test_matrix_free(&t);
}

static void scales_come_from_any_layout(void **state) {
    const bsmm_cuda_device *device = test_cuda_device();
    rng r = {42};
    (void)state;
    for (uint32_t layout = 0; layout < 9; layout++) {
        check_scales(device, "fp8_group128", layout, true, &r);
        check_scales(device, "fp8_block128", layout, true, &r);
        check_scales(device, "fp8_block128", layout, false, &r);
    }
}

/* Packs an operand to f16 in device memory and copies the result to `got`. If `at_once` is true,
 * one kernel packs to f16. Otherwise one kernel packs to bf16, and a second kernel converts to
 * f16. */
static void pack_f16(const on_device *d, uint32_t shift, bool at_once, uint8_t *got) {
    const bsmm_pack_layout at = bsmm_pack_layout_of(d->host.m.rows, d->host.m.cols, BSMM_PACK_BF16);
    const bool may_stay = d->host.m.format.scale == BSMM_SCALE_E8M0;
    void *memory = test_cuda_new(d->device, NULL, at.bytes);
    bsmm_pack_launch launch = at_once
                                  ? bsmm_pack_f16_launch_of(&d->operand, true, shift)
                                  : bsmm_pack_launch_of(&d->operand, BSMM_PACK_BF16, true, memory);
    bsmm_pack_half_launch half = bsmm_pack_half_launch_of(&d->operand, shift);
    bsmm_pack_bind(&d->operand, memory, &launch);
    half.job.words = launch.job.elements;
    half.job.header = may_stay ? launch.job.header : NULL;
    assert_int_equal(bsmm_pack_load(d->device, &launch), BSMM_OK);
    assert_int_equal(bsmm_pack_half_load(d->device, &half), BSMM_OK);
    assert_int_equal(bsmm_cuda_enter(d->device), BSMM_OK);
    assert_int_equal(bsmm_pack_run(d->device, &launch, NULL), BSMM_OK);
    if (!at_once) assert_int_equal(bsmm_pack_half_run(d->device, &half, NULL), BSMM_OK);
    bsmm_cuda_leave(d->device);
    test_cuda_read(d->device, got, memory, at.bytes);
    test_cuda_free(d->device, memory);
}

/* Compares packing to f16 by one kernel with packing by two kernels. Returns true if f16 can
 * represent all values. If it cannot, the packed elements are unspecified, and only the bytes
 * before them are compared. */
static bool compare_f16(const bsmm_cuda_device *device, const test_matrix *t, uint32_t shift) {
    on_device d = upload(device, t);
    const bsmm_pack_layout at = bsmm_pack_layout_of(d.host.m.rows, d.host.m.cols, BSMM_PACK_BF16);
    uint8_t *expected = malloc(at.bytes), *got = malloc(at.bytes);
    assert_true(bsmm_pack_has_f16(&d.operand));
    pack_f16(&d, shift, false, expected);
    pack_f16(&d, shift, true, got);
    const bool holds = d.host.m.format.scale != BSMM_SCALE_E8M0 ||
                       bsmm_pack_is_half((const bsmm_pack_header *)(void *)expected, shift);
    for (uint64_t i = 0; i < (holds ? at.bytes : at.elements); i++)
        if (expected[i] != got[i])
            fail_msg("%s: %lld x %lld, layout %u: byte %llu is %02x, must be %02x (elements from "
                     "%llu on)",
                     bsmm_format_name(d.host.m.format), (long long)d.host.m.rows,
                     (long long)d.host.m.cols, d.host.m.scale_layout, (unsigned long long)i, got[i],
                     expected[i], (unsigned long long)at.elements);
    release(&d);
    free(expected);
    free(got);
    return holds;
}

/* Replaces the e8m0 scales of a matrix, in one of three ways. `i` is the number of the test case,
 * and i % 3 selects the way. In one way, scales are random, from 2^least to 2^3. In another one,
 * most bits of half of the elements are cleared, too. In the third one, all elements are 0, and
 * scales may be anything except NaN, because 0 can be represented with any scale. */
static void draw_scales(test_matrix *t, int least, uint32_t i, rng *r) {
    uint8_t *codes = t->m.data, *scales = t->m.scales;
    const bool empty = i % 3 == 1;
    for (uint64_t b = 0; b < t->scale_bytes; b++)
        scales[b] =
            (uint8_t)(empty ? rng_below(r, 255)
                            : (uint32_t)(127 + least) + rng_below(r, (uint32_t)(4 - least)));
    for (uint64_t b = 0; b < t->data_bytes; b++)
        if (empty || (i % 3 == 2 && b / 96 % 2)) codes[b] &= empty ? 0 : 0x88;
}

/* Tests that packing to f16 by one kernel gives the same bits as packing by two kernels. Packed
 * values are multiplied by 2^shift, with the shifts of the kernel cuda_sm90a_f16. If all scales lie
 * between 2^least and 2^3, f16 represents all values. */
static void one_kernel_packs_to_f16(void **state) {
    static const struct {
        const char *format;
        uint32_t shift;
        int least;
    } cases[] = {{"mxfp4", 10, -33},     {"mxfp6_e2m3", 10, -31}, {"mxfp6_e3m2", 8, -28},
                 {"mxfp8", 4, -19},      {"nvfp4", 0, 0},         {"fp8_group128", 0, 0},
                 {"fp8_block128", 0, 0}, {"e4m3", 0, 0},          {"e5m2", 0, 0}};
    const bsmm_cuda_device *device = test_cuda_device();
    rng r = {44};
    (void)state;
    for (size_t f = 0; f < BSMM_COUNT(cases); f++)
        for (uint32_t i = 0; i < 18; i++) {
            test_matrix t;
            bsmm_matrix shape = shape_of(cases[f].format, 2 * i, &r);
            const bool drawn = cases[f].least && i % 2;
            test_matrix_make(&t, shape, drawn ? FILL_ORDINARY : (fill)(i / 2 % 3), &r);
            t.m.global_scale = NULL;
            if (drawn) draw_scales(&t, cases[f].least, i / 2, &r);
            const bool holds = compare_f16(device, &t, cases[f].shift);
            if (drawn) assert_true(holds);
            test_matrix_free(&t);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_write_the_models_bytes),
        cmocka_unit_test(least_codes_are_folded),
        cmocka_unit_test(scales_come_from_any_layout),
        cmocka_unit_test(one_kernel_packs_to_f16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
