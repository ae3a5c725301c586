/* Tests rules in which the recipes of different projects differ. docs/RECIPES.md has a line for
 * each test. */
#include "quantized_row.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static float up(float value) {
    return nextafterf(value, INFINITY);
}
static float down(float value) {
    return nextafterf(value, 0);
}

/* Returns the e2m1 code of `value` in a block that also contains 6. The 6 makes the e8m0 scale
 * 1. */
static uint32_t e2m1_code(const char *recipe, float value) {
    float values[32] = {6, value};
    quantized q = quantize_row((choice){recipe, "mxfp4", 0, 0, NULL}, values, 32);
    assert_int_equal(q.status, BSMM_OK);
    assert_int_equal(q.scales[0], 127);
    assert_int_equal(q.codes[0], 7);
    return q.codes[1];
}

static void test_e8m0_scale_of_each_rule(void **state) {
    (void)state;
    static const char *const recipes[] = {"ocp", "rceil", "ceil", "even", "compressed-tensors"};
    static const struct {
        const char *format;
        float amax;
        uint32_t scales[5];
    } rows[] = {
        {"mxfp8", 448, {127, 127, 128, 127, 128}},  {"mxfp8", 449, {127, 128, 128, 127, 128}},
        {"mxfp8", 500, {127, 128, 128, 128, 128}},  {"mxfp8", 1, {119, 119, 119, 119, 119}},
        {"mxfp8", 7.5f, {121, 122, 122, 121, 122}}, {"mxfp4", 3, {126, 126, 127, 126, 126}},
        {"mxfp4", 3.5f, {126, 127, 127, 127, 127}}, {"mxfp4", 6, {127, 127, 128, 127, 127}},
        {"mxfp4", 6.5f, {127, 128, 128, 127, 127}}, {"mxfp4", 7, {127, 128, 128, 128, 128}},
    };
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        for (size_t j = 0; j < BSMM_COUNT(recipes); j++)
            assert_int_equal(scale_of(recipes[j], rows[i].format, rows[i].amax), rows[i].scales[j]);
}

static void test_ocp_saturates_what_its_scale_does_not_reach(void **state) {
    (void)state;
    static const struct {
        const char *format;
        float amax;
        uint32_t code;
    } rows[] = {{"mxfp8", 449, 0x7e}, {"mxfp8", 500, 0x7e}, {"mxfp4", 3.5f, 7},
                {"mxfp4", 6.5f, 7},   {"mxfp4", 7, 7},      {"mxfp8_e5m2", 65535, 0x7b}};
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        quantized q = quantize_row((choice){"ocp", rows[i].format, 0, 0, NULL}, &rows[i].amax, 1);
        assert_int_equal(q.codes[0], rows[i].code);
    }
}

/* Tests a block with the single value 7. The recipe rceil gives it the scale 2, so the element is
 * 3.5. This is halfway between 3 and 4, and must be rounded to 4. */
static void test_rceil_rounds_seven_up(void **state) {
    (void)state;
    const float seven = 7;
    quantized q = quantize_row((choice){"rceil", "mxfp4", 0, 0, NULL}, &seven, 1);
    assert_int_equal(q.scales[0], 128);
    assert_int_equal(q.codes[0], 6);
}

/* Tests recipes that compute a scale's exponent by log2f, which rounds to fp32. For the float just
 * below 256, log2f gives 8, although the exponent of this float is 7. Other recipes read the
 * exponent from the float's bits. */
static void test_floor_of_log2f_beside_a_power_of_two(void **state) {
    (void)state;
    const float below = down(256);
    assert_int_equal(scale_of("ocp", "mxfp4", below), 127 + 7 - 2);
    assert_int_equal(scale_of("ggml", "mxfp4", below), 127 + 8 - 2);
    assert_int_equal(scale_of("ggml", "mxfp4", 255), 127 + 7 - 2);
    const float above = 6 * up(1024); /* log2f(above / 6) is rounded to exactly 10. */
    assert_int_equal(scale_of("rceil", "mxfp4", above), 127 + 11);
    assert_int_equal(scale_of("modelopt", "mxfp4", above), 127 + 10);
}

static void test_zero_blocks(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *format;
        uint32_t scale, code;
    } rows[] = {
        {"ocp", "mxfp4", 0, 0},
        {"rceil", "mxfp4", 0, 0},
        {"ceil", "mxfp8", 0, 0},
        {"even", "mxfp8", 0, 0},
        {"torchao", "mxfp4", 0, 0},
        {"te", "mxfp8", 0, 0},
        {"ggml", "mxfp4", 0, 0},
        {"modelopt", "mxfp4", 0, 8},
        {"modelopt", "mxfp8", 0, 0},
        {"compressed-tensors", "mxfp4", 0, 0},
        {"quark", "mxfp4", 1, 0},
        /* The smallest scale of DeepGEMM's recipe is 1e-4 / 6, rounded up to 2^-15. */
        {"deepgemm", "mxfp4", 127 - 15, 0},
    };
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        float zero = 0;
        quantized q = quantize_row((choice){rows[i].recipe, rows[i].format, 0, 0, NULL}, &zero, 1);
        assert_int_equal(q.scales[0], rows[i].scale);
        assert_int_equal(q.codes[0], rows[i].code);
    }
}

static void test_infinite_and_nan_amax(void **state) {
    (void)state;
    assert_int_equal(scale_of("ocp", "mxfp8", INFINITY), 255 - 8);
    assert_int_equal(scale_of("ceil", "mxfp8", INFINITY), 255 - 8);
    assert_int_equal(scale_of("even", "mxfp4", -INFINITY), 255 - 2);
    assert_int_equal(scale_of("rceil", "mxfp8", INFINITY), 254);
    assert_int_equal(scale_of("te", "mxfp8", INFINITY), 254);
    static const char *const poisoned[] = {"ocp", "rceil", "ceil", "even", "torchao", "te"};
    for (size_t i = 0; i < BSMM_COUNT(poisoned); i++) {
        assert_int_equal(scale_of(poisoned[i], "mxfp8", NAN), 255);
        assert_int_equal(scale_of(poisoned[i], "mxfp4", -NAN), 255);
    }
    const float mixed[32] = {3, NAN, -2};
    quantized q = quantize_row((choice){"ggml", "mxfp4", 0, 0, NULL}, mixed, 32);
    assert_int_equal(q.scales[0], 126);
    assert_int_equal(q.codes[1], 0);
}

/* Tests the smallest scale of the recipe rceil. If amax, divided by the largest value of the
 * format, is exactly 2^-127, the scale code must be 0. If the quotient is larger, the code must be
 * 1. */
static void test_rceil_of_the_smallest_scale(void **state) {
    (void)state;
    assert_int_equal(scale_of("rceil", "mxfp4", 6 * 0x1p-127f), 0);
    assert_int_equal(scale_of("te", "mxfp4", 6 * 0x1p-127f), 0);
    assert_int_equal(scale_of("rceil", "mxfp4", 6 * 0x1.8p-127f), 1);
    assert_int_equal(scale_of("rceil", "mxfp4", FLT_MAX), 127 + 126);
}

/* Tests the element that each recipe computes from the value 2^-127 if the block's scale code is 0,
 * which means the scale 2^-127. Most recipes divide the value by the scale and get the element 1
 * (code 2). The recipe torchao divides by 2^-126 instead and gets 0.5 (code 1). The recipe te does
 * not scale the value, which then rounds to 0. */
static void test_values_under_scale_byte_zero(void **state) {
    (void)state;
    static const struct {
        const char *recipe;
        uint32_t code;
    } rows[] = {{"ocp", 2}, {"rceil", 2}, {"ceil", 2}, {"even", 2}, {"torchao", 1}, {"te", 0}};
    const float smallest = 0x1p-127f;
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        quantized q = quantize_row((choice){rows[i].recipe, "mxfp4", 0, 0, NULL}, &smallest, 1);
        assert_int_equal(q.scales[0], 0);
        assert_int_equal(q.codes[0], rows[i].code);
    }
}

static void test_halfway_elements(void **state) {
    (void)state;
    static const struct {
        float value;
        uint32_t even, down;
    } rows[] = {{0.25f, 0, 0}, {0.75f, 2, 1}, {1.25f, 2, 2}, {1.75f, 4, 3},
                {2.5f, 4, 4},  {3.5f, 6, 5},  {5, 6, 6}};
    static const char *const even[] = {"ocp", "even", "torchao", "compressed-tensors", "quark"};
    static const char *const to_zero[] = {"ggml", "modelopt"};
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        for (size_t j = 0; j < BSMM_COUNT(even); j++)
            assert_int_equal(e2m1_code(even[j], rows[i].value), rows[i].even);
        for (size_t j = 0; j < BSMM_COUNT(to_zero); j++) {
            assert_int_equal(e2m1_code(to_zero[j], rows[i].value), rows[i].down);
            assert_int_equal(e2m1_code(to_zero[j], up(rows[i].value)), rows[i].down + 1);
            assert_int_equal(e2m1_code(to_zero[j], down(rows[i].value)), rows[i].down);
        }
    }
    /* e2m1 has no value between 0 and 0.5. 0.2505 is above the midpoint 0.25, so it rounds to 0.5
     * (code 1). If it were rounded to bf16 first, it would become 0.25, and this tie would round to
     * 0. */
    assert_int_equal(e2m1_code("compressed-tensors", 0.2505f), 1);
}

static void test_signs_of_zeros(void **state) {
    (void)state;
    static const struct {
        const char *recipe;
        uint32_t plus, minus, small, small_negative;
    } rows[] = {
        {"ocp", 0, 8, 0, 8},      {"torchao", 0, 8, 0, 8}, {"compressed-tensors", 0, 0, 0, 8},
        {"modelopt", 8, 8, 0, 8}, {"ggml", 0, 0, 0, 0},    {"quark", 0, 0, 0, 0},
    };
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        assert_int_equal(e2m1_code(rows[i].recipe, 0.0f), rows[i].plus);
        assert_int_equal(e2m1_code(rows[i].recipe, -0.0f), rows[i].minus);
        assert_int_equal(e2m1_code(rows[i].recipe, 0.01f), rows[i].small);
        assert_int_equal(e2m1_code(rows[i].recipe, -0.01f), rows[i].small_negative);
    }
}

/* Tests that the recipe "compressed-tensors" encodes -0 as a negative zero in mxfp6. In mxfp4 the
 * same recipe encodes -0 as +0. */
static void test_compressed_tensors_mxfp6_keeps_signs(void **state) {
    (void)state;
    const float values[] = {7.5f, -0.0f, -0.01f, 0.0f};
    static const uint32_t want[] = {0x1f, 0x20, 0x20, 0};
    quantized q = quantize_row((choice){"compressed-tensors", "mxfp6_e2m3", 0, 0, NULL}, values, 4);
    assert_memory_equal(q.codes, want, sizeof want);
}

static void test_cast_saturates_fp8(void **state) {
    (void)state;
    const float values[] = {464, 465, INFINITY, -1e9f};
    quantized q = quantize_row((choice){NULL, "e4m3", 0, 0, NULL}, values, 4);
    static const uint32_t want[] = {0x7e, 0x7e, 0x7e, 0xfe};
    uint32_t code;
    assert_memory_equal(q.codes, want, sizeof want);
    assert_int_equal(bsmm_encode_elem(BSMM_ELEM_E4M3, 464, 0, &code), BSMM_OK);
    assert_int_equal(code, 0x7e);
    assert_int_equal(bsmm_encode_elem(BSMM_ELEM_E4M3, 465, 0, &code), BSMM_OK);
    assert_int_equal(code, 0x7f);
    const float large = 61440;
    assert_int_equal(quantize_row((choice){"cast", "e5m2", 0, 0, NULL}, &large, 1).codes[0], 0x7b);
    assert_int_equal(quantize_row((choice){"cast", "f16", 0, 0, NULL}, values + 3, 1).codes[0],
                     0xfc00);
}

static void test_defaults_are_the_presets(void **state) {
    (void)state;
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    float values[MOST];
    for (int i = 0; i < MOST; i++)
        values[i] = sinf((float)i) * 20;
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++) {
        quantized named =
            quantize_row((choice){preset.default_recipe, preset.name, 0, 0, NULL}, values, MOST);
        quantized unnamed = quantize_row((choice){NULL, preset.name, 0, 0, NULL}, values, MOST);
        assert_int_equal(named.status, BSMM_OK);
        assert_memory_equal(&named, &unnamed, sizeof named);
    }
}

/* Tests that every recipe quantizes to each format that bsmm_recipe_at lists for it. */
static void test_listed_formats_are_taken(void **state) {
    (void)state;
    bsmm_recipe_info info = {.struct_size = sizeof info};
    uint32_t count = 0;
    for (; bsmm_recipe_at(count, &info) == BSMM_OK; count++) {
        char formats[160], *rest = formats;
        assert_true(*info.rule && *info.source && strlen(info.formats) < sizeof formats);
        strcpy(formats, info.formats);
        for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;) {
            float one = 1;
            choice how = {info.name, name, info.flags, kind_of(info.name), NULL};
            quantized q = quantize_row(how, &one, 1);
            if (q.status != BSMM_OK) fail_msg("%s %s: %s", info.name, name, bsmm_error_message());
        }
    }
    assert_true(count > 20);
    assert_int_equal(bsmm_recipe_at(count, &info), BSMM_E_NOT_FOUND);
}

static void test_unknown_recipes_are_named(void **state) {
    (void)state;
    const float one = 1;
    assert_int_equal(quantize_row((choice){"sorcery", "mxfp4", 0, 0, NULL}, &one, 1).status,
                     BSMM_E_NOT_FOUND);
    assert_non_null(strstr(bsmm_error_message(), "\"sorcery\""));
    assert_non_null(strstr(bsmm_error_message(), "compressed-tensors"));
    assert_int_equal(quantize_row((choice){"deepseek", "mxfp4", 0, 0, NULL}, &one, 1).status,
                     BSMM_E_UNSUPPORTED);
    assert_non_null(strstr(bsmm_error_message(), "mxfp4"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_e8m0_scale_of_each_rule),
        cmocka_unit_test(test_ocp_saturates_what_its_scale_does_not_reach),
        cmocka_unit_test(test_rceil_rounds_seven_up),
        cmocka_unit_test(test_floor_of_log2f_beside_a_power_of_two),
        cmocka_unit_test(test_zero_blocks),
        cmocka_unit_test(test_infinite_and_nan_amax),
        cmocka_unit_test(test_rceil_of_the_smallest_scale),
        cmocka_unit_test(test_values_under_scale_byte_zero),
        cmocka_unit_test(test_halfway_elements),
        cmocka_unit_test(test_signs_of_zeros),
        cmocka_unit_test(test_compressed_tensors_mxfp6_keeps_signs),
        cmocka_unit_test(test_cast_saturates_fp8),
        cmocka_unit_test(test_defaults_are_the_presets),
        cmocka_unit_test(test_listed_formats_are_taken),
        cmocka_unit_test(test_unknown_recipes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
