/* Tests the tables of formats and layouts. The numbers in them must be those of the OCP
 * specifications and must agree with the codecs. Also tests how codes are packed into bytes. */
#include "operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The properties of element formats in this table are from table 1 of OCP 8-bit v1.0, table 2 of MX
 * v1.0, IEEE 754, and the AMD CDNA3 ISA. */
static const struct {
    const char *name;
    uint32_t bits;
    int32_t bias;
    double max, min_normal, min_subnormal;
} known[] = {
    {"f32", 32, 127, 3.4028234663852886e38, 0x1p-126, 0x1p-149},
    {"f16", 16, 15, 65504, 0x1p-14, 0x1p-24},
    {"bf16", 16, 127, 3.3895313892515355e38, 0x1p-126, 0x1p-133},
    {"e4m3", 8, 7, 448, 0x1p-6, 0x1p-9},
    {"e4m3fnuz", 8, 8, 240, 0x1p-7, 0x1p-10},
    {"e5m2", 8, 15, 57344, 0x1p-14, 0x1p-16},
    {"e5m2fnuz", 8, 16, 57344, 0x1p-15, 0x1p-17},
    {"e3m2", 6, 3, 28, 0x1p-2, 0x1p-4},
    {"e2m3", 6, 1, 7.5, 1, 0x1p-3},
    {"e2m1", 4, 1, 6, 1, 0.5},
    {"e8m0", 8, 127, 0x1p127, 0x1p-127, 0},
};

static void test_elements_have_the_standards_figures(void **state) {
    (void)state;
    bsmm_elem_info info = {.struct_size = sizeof info};
    for (uint32_t i = 0; bsmm_elem_at(i, &info) == BSMM_OK; i++) {
        if (i == BSMM_COUNT(known)) fail_msg("%s: no figures of its standard here", info.name);
        assert_string_equal(info.name, known[i].name);
        assert_int_equal(info.elem, i + 1);
        if (info.bits != known[i].bits || info.bias != known[i].bias || info.max != known[i].max ||
            info.min_normal != known[i].min_normal || info.min_subnormal != known[i].min_subnormal)
            fail_msg("%s: its row has %u bits, bias %d, max %g, min_normal %g, min_subnormal %g",
                     info.name, info.bits, info.bias, info.max, info.min_normal,
                     info.min_subnormal);
    }
    assert_int_equal(bsmm_elem_at(BSMM_COUNT(known), &info), BSMM_E_NOT_FOUND);
}

/* Tests that the largest finite value and the smallest positive value that the codec of an element
 * format returns are those in the format's row of the table. */
static void test_elements_agree_with_their_codec(void **state) {
    (void)state;
    for (uint32_t elem = BSMM_ELEM_F16; elem < BSMM_ELEM_COUNT; elem++) {
        const bsmm_elem_info *info = bsmm_elem_row(elem);
        double max = 0, min = INFINITY;
        for (uint32_t code = 0; code < 1u << info->bits; code++) {
            double value = fabs(bsmm_elem_decode(elem, code));
            if (isfinite(value) && value > max) max = value;
            if (value > 0 && value < min) min = value;
        }
        if (max != info->max ||
            min != (info->min_subnormal > 0 ? info->min_subnormal : info->min_normal))
            fail_msg("%s: its codes go from %g to %g, its row does not", info->name, min, max);
    }
}

static bool survives(uint32_t through, double value) {
    uint32_t code = bsmm_elem_encode(through, value, false);
    double back = bsmm_elem_decode(through, code);
    return isnan(value) ? isnan(back) : back == value;
}

/* Finds the properties of an element format, such as "small integer" or "exact in bf16", by looking
 * at all of its codes. */
static bsmm_elem_traits traits_by_codes(uint32_t elem) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    bsmm_elem_traits t = {.in_matrices = bsmm_elem_decode(elem, 1u << (info->bits - 1)) <= 0 ||
                                         isnan(bsmm_elem_decode(elem, 1u << (info->bits - 1))),
                          .wide = info->bits > 8,
                          .small_integer = info->bits <= 6,
                          .exact_in_bf16 = true,
                          .exact_in_f16 = true,
                          .shifts_to_f16 = info->mantissa_bits <= 10,
                          .lone_nan = isnan(bsmm_elem_decode(elem, 1u << (info->bits - 1)))};
    t.narrow = !t.wide && t.in_matrices;
    for (uint32_t code = 0; code < 1u << info->bits; code++) {
        double value = bsmm_elem_decode(elem, code), integer = value / info->min_subnormal;
        uint32_t half = code << (info->mantissa_bits <= 10 ? 10 - info->mantissa_bits : 0);
        t.has_inf |= isinf(value) != 0;
        t.exact_in_bf16 &= survives(BSMM_ELEM_BF16, value);
        t.exact_in_f16 &= survives(BSMM_ELEM_F16, value);
        if (isfinite(value) && value > 0 && (half > 0x7bff || half >> 10 >= 31))
            t.shifts_to_f16 = false;
        t.small_integer &= isfinite(value) && fabs(integer) <= 63 && integer == rint(integer);
    }
    return t;
}

#define SAME(field)                                                                                \
    if (said->field != found.field)                                                                \
    fail_msg("%s: its traits say " #field " = %d", bsmm_elem_row(elem)->name, said->field)

static void test_traits_are_those_of_the_codes(void **state) {
    (void)state;
    for (uint32_t elem = BSMM_ELEM_F16; elem < BSMM_ELEM_COUNT; elem++) {
        const bsmm_elem_traits *said = &bsmm_elem_traits_of[elem];
        bsmm_elem_traits found = traits_by_codes(elem);
        SAME(in_matrices);
        SAME(wide);
        SAME(narrow);
        SAME(has_inf);
        if (!said->in_matrices) continue;
        SAME(small_integer);
        SAME(exact_in_bf16);
        SAME(exact_in_f16);
        SAME(shifts_to_f16);
        SAME(lone_nan);
    }
    const bsmm_elem_traits *f32 = &bsmm_elem_traits_of[BSMM_ELEM_F32];
    assert_true(f32->in_matrices && f32->wide && f32->has_inf);
    assert_false(f32->narrow || f32->exact_in_bf16 || f32->exact_in_f16 || f32->small_integer);
    assert_false(bsmm_elem_is_wide(BSMM_ELEM_NONE) || bsmm_elem_is_wide(BSMM_ELEM_COUNT));
    assert_false(bsmm_elem_is_narrow(BSMM_ELEM_NONE) || bsmm_elem_is_narrow(BSMM_ELEM_COUNT));
}

/* Tests that the library accepts the format of every preset, and that the preset's recipe
 * quantizes to it. */
static void test_presets_are_formats(void **state) {
    (void)state;
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++) {
        bsmm_matrix m = describe(preset.format, 256, 256),
                    plain = describe(format_named("f32"), 0, 0);
        uint64_t bytes;
        if (bsmm_data_bytes(&m, &bytes) != BSMM_OK || bsmm_scale_bytes(&m, &bytes) != BSMM_OK)
            fail_msg("%s: %s", preset.name, bsmm_error_message());
        float global = 1;
        m.rows = m.cols = 0;
        m.global_scale = &global;
        bsmm_quantize_desc desc = {
            .struct_size = sizeof desc, .src = &plain, .dst = &m, .recipe = preset.default_recipe};
        if (bsmm_quantize(&desc, NULL) != BSMM_OK)
            fail_msg("%s, recipe %s: %s", preset.name, preset.default_recipe, bsmm_error_message());
    }
}

static void test_names_both_ways(void **state) {
    (void)state;
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    uint32_t count = 0;
    for (; bsmm_preset_at(count, &preset) == BSMM_OK; count++) {
        assert_string_equal(bsmm_format_name(preset.format), preset.name);
        assert_true(bsmm_format_equal(format_named(preset.name), preset.format));
    }
    assert_true(count >= 8);
    assert_string_equal(bsmm_format_name(format_named("bf16")), "bf16");
    assert_string_equal(bsmm_format_name(format_named("mxfp6")), "mxfp6_e2m3");
    assert_string_equal(bsmm_format_name((bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 64}),
                        "custom");
    bsmm_format format;
    assert_int_equal(bsmm_format_from_name("e8m0", &format), BSMM_E_NOT_FOUND);
    assert_int_equal(bsmm_format_from_name("mxfp5", &format), BSMM_E_NOT_FOUND);
    assert_non_null(strstr(bsmm_error_message(), "mxfp8_e5m2"));
}

static double bits_per_weight(const char *name) {
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++)
        if (strcmp(preset.name, name) == 0) return preset.bits_per_weight;
    fail_msg("no preset %s", name);
    return 0;
}

static void test_bits_per_weight(void **state) {
    (void)state;
    assert_true(bits_per_weight("mxfp8") == 8.25);
    assert_true(bits_per_weight("mxfp6_e2m3") == 6.25);
    assert_true(bits_per_weight("mxfp4") == 4.25);
    assert_true(bits_per_weight("nvfp4") == 4.5);
    assert_true(bits_per_weight("fp8_group128") == 8.25);
    assert_true(bits_per_weight("fp8_block128") == 8 + 32.0 / 16384);
}

/* Tests how 4-bit and 6-bit codes are packed into bytes. The first code has the lowest bits of the
 * first byte. */
static void test_packing_order(void **state) {
    (void)state;
    uint8_t four[1] = {0}, six[3] = {0};
    bsmm_elem_store(BSMM_ELEM_E2M1, four, 0, 0x1);
    bsmm_elem_store(BSMM_ELEM_E2M1, four, 1, 0x2);
    assert_int_equal(four[0], 0x21);
    for (uint32_t i = 0; i < 4; i++)
        bsmm_elem_store(BSMM_ELEM_E3M2, six, i, 0x30 + i);
    uint32_t word = (uint32_t)six[0] | (uint32_t)six[1] << 8 | (uint32_t)six[2] << 16;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(word >> 6 * i & 0x3f, 0x30 + i);
}

/* Stores random codes at random positions. Compares the packed bytes with an array that has one
 * code in each byte. */
static void test_packing_changes_no_neighbour(void **state) {
    (void)state;
    enum { COUNT = 96, STORES = 20000 };
    rng r = {11};
    for (uint32_t elem = 1; elem < BSMM_ELEM_COUNT; elem++) {
        uint32_t bits = bsmm_elem_row(elem)->bits;
        uint64_t bytes;
        assert_true(bsmm_elem_bytes(elem, COUNT, &bytes));
        uint8_t *packed = guarded_alloc(bytes);
        uint32_t plain[COUNT];
        for (uint32_t i = 0; i < COUNT; i++)
            plain[i] = bsmm_elem_load(elem, packed, i);
        for (int i = 0; i < STORES; i++) {
            uint32_t at = rng_below(&r, COUNT), code = (uint32_t)rng_next(&r);
            if (bits < 32) code &= (1u << bits) - 1;
            bsmm_elem_store(elem, packed, at, code);
            plain[at] = code;
            uint32_t probe = rng_below(&r, COUNT);
            assert_int_equal(bsmm_elem_load(elem, packed, probe), plain[probe]);
        }
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(bsmm_elem_load(elem, packed, i), plain[i]);
        guarded_free(packed, bytes);
    }
}

/* Tests the largest size of a matrix, INT64_MAX bytes. A matrix with one more column must be
 * refused. */
static void test_largest_size(void **state) {
    (void)state;
    bsmm_matrix m = {.struct_size = sizeof m,
                     .format = {.elem = BSMM_ELEM_E4M3},
                     .rows = 65,
                     .cols = 63,
                     .ld = INT64_MAX / 64};
    uint64_t bytes = 0;
    assert_int_equal(bsmm_data_bytes(&m, &bytes), BSMM_OK);
    assert_true(bytes == INT64_MAX);
    m.cols = 64;
    assert_int_equal(bsmm_data_bytes(&m, &bytes), BSMM_E_INVALID);
}

/* A tiled scale layout is described by digits (bsmm_digit), from which the offset of a scale in its
 * tile is computed. Checks that the offsets of a layout are all different and lie inside the
 * tile. */
static void check_digits(const bsmm_layout_info *layout) {
    uint32_t extents[2] = {1, 1}, tile = layout->tile_rows * layout->tile_cols, at = 0;
    uint8_t *seen = calloc(tile, 1);
    for (uint32_t i = 0; i < layout->digit_count; i++)
        extents[layout->digits[i].axis] *= layout->digits[i].extent;
    if (extents[0] != layout->tile_rows || extents[1] != layout->tile_cols)
        fail_msg("%s: its digits cover %u x %u of a tile of %u x %u", layout->name, extents[0],
                 extents[1], layout->tile_rows, layout->tile_cols);
    for (uint32_t number = 0; number < tile; number++, at = 0) {
        uint32_t rest = number;
        for (uint32_t i = 0; i < layout->digit_count; rest /= layout->digits[i++].extent)
            at += rest % layout->digits[i].extent * layout->digits[i].stride;
        if (at >= tile || seen[at]++)
            fail_msg("%s: two scales of a tile lie at %u, or one outside of it", layout->name, at);
    }
    free(seen);
}

static void test_digits_number_the_tile(void **state) {
    (void)state;
    bsmm_layout_info info = {.struct_size = sizeof info};
    for (uint32_t i = 0; bsmm_layout_at(i, &info) == BSMM_OK; i++) {
        uint32_t layout;
        assert_int_equal(info.layout, i);
        assert_int_equal(bsmm_layout_from_name(info.name, &layout), BSMM_OK);
        assert_int_equal(layout, i);
        if (info.digit_count) check_digits(&info);
    }
    assert_int_equal(bsmm_layout_at(BSMM_LAYOUT_COUNT, &info), BSMM_E_NOT_FOUND);
}

static void check_bijection(uint32_t layout, int64_t rows, int64_t cols) {
    bsmm_format format = {BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 32};
    bsmm_matrix m = describe(format, rows, cols * 32);
    m.scale_layout = layout;
    if (layout == BSMM_LAYOUT_TILE_CONTIGUOUS) m.scale_tile_rows = 7, m.scale_tile_cols = 3;
    uint64_t bytes, offset;
    assert_int_equal(bsmm_scale_bytes(&m, &bytes), BSMM_OK);
    assert_true(bytes >= (uint64_t)(rows * cols));
    uint8_t *seen = calloc(bytes + 1, 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            assert_int_equal(bsmm_scale_offset(&m, r, c, &offset), BSMM_OK);
            if (offset >= bytes || seen[offset])
                fail_msg("%s: (%d, %d) lies at %u of %u, or another one does",
                         bsmm_layout_name(layout), (int)r, (int)c, (unsigned)offset,
                         (unsigned)bytes);
            seen[offset] = 1;
        }
    free(seen);
}

static void test_layouts_are_bijections(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {5, 3}, {32, 8}, {33, 9}, {128, 4}, {300, 37}};
    for (uint32_t layout = 0; layout < BSMM_LAYOUT_COUNT; layout++)
        for (size_t i = 0; i < BSMM_COUNT(shapes); i++)
            check_bijection(layout, shapes[i][0], shapes[i][1]);
}

static void test_padded_sizes(void **state) {
    (void)state;
    static const struct {
        const char *layout;
        uint64_t scales;
    } rows[] = {{"row_major", 300 * 37},     {"col_major", 300 * 37},    {"nv_128x4", 384 * 40},
                {"nv_8x4", 304 * 40},        {"cdna4_mfma16", 320 * 40}, {"cdna4_mfma32", 320 * 40},
                {"cublas_vec128", 300 * 37}, {"cublas_blk128", 300 * 40}};
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        bsmm_matrix m =
            describe((bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 32}, 300, 37 * 32);
        uint64_t bytes;
        assert_int_equal(bsmm_layout_from_name(rows[i].layout, &m.scale_layout), BSMM_OK);
        assert_int_equal(bsmm_scale_bytes(&m, &bytes), BSMM_OK);
        assert_int_equal(bytes, rows[i].scales * sizeof(float));
    }
}

static void test_scale_offset_refuses(void **state) {
    (void)state;
    uint64_t offset;
    bsmm_matrix m = describe(format_named("mxfp4"), 4, 64);
    assert_int_equal(bsmm_scale_offset(&m, 4, 0, &offset), BSMM_E_INVALID);
    assert_int_equal(bsmm_scale_offset(&m, 0, 2, &offset), BSMM_E_INVALID);
    assert_int_equal(bsmm_scale_offset(&m, 0, -1, &offset), BSMM_E_INVALID);
    m = describe(format_named("bf16"), 4, 64);
    assert_int_equal(bsmm_scale_offset(&m, 0, 0, &offset), BSMM_E_INVALID);
    uint32_t layout;
    assert_int_equal(bsmm_layout_from_name("nonesuch", &layout), BSMM_E_NOT_FOUND);
}

static void test_codec_arguments(void **state) {
    (void)state;
    uint32_t code;
    double value;
    assert_int_equal(bsmm_encode_elem(0, 1, 1, &code), BSMM_E_INVALID);
    assert_int_equal(bsmm_encode_elem(BSMM_ELEM_COUNT, 1, 1, &code), BSMM_E_INVALID);
    assert_int_equal(bsmm_encode_elem(BSMM_ELEM_E2M1, 1, 1, NULL), BSMM_E_INVALID);
    assert_int_equal(bsmm_decode_elem(BSMM_ELEM_E2M1, 16, &value), BSMM_E_INVALID);
    assert_int_equal(bsmm_decode_elem(BSMM_ELEM_E2M1, 15, &value), BSMM_OK);
    assert_true(value == -6);
}

static void test_status_names(void **state) {
    (void)state;
    assert_string_equal(bsmm_status_name(BSMM_OK), "BSMM_OK");
    assert_string_equal(bsmm_status_name(BSMM_E_DEVICE), "BSMM_E_DEVICE");
    assert_string_equal(bsmm_status_name((bsmm_status)99), "unknown");
    char text[32];
    assert_int_equal(bsmm_version(), BSMM_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", BSMM_VERSION / 10000, BSMM_VERSION / 100 % 100,
             BSMM_VERSION % 100);
    /* The library's version must be that of the CMake project. */
    assert_string_equal(text, BSMM_PROJECT_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements_have_the_standards_figures),
        cmocka_unit_test(test_elements_agree_with_their_codec),
        cmocka_unit_test(test_traits_are_those_of_the_codes),
        cmocka_unit_test(test_presets_are_formats),
        cmocka_unit_test(test_names_both_ways),
        cmocka_unit_test(test_bits_per_weight),
        cmocka_unit_test(test_packing_order),
        cmocka_unit_test(test_packing_changes_no_neighbour),
        cmocka_unit_test(test_largest_size),
        cmocka_unit_test(test_digits_number_the_tile),
        cmocka_unit_test(test_layouts_are_bijections),
        cmocka_unit_test(test_padded_sizes),
        cmocka_unit_test(test_scale_offset_refuses),
        cmocka_unit_test(test_codec_arguments),
        cmocka_unit_test(test_status_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
