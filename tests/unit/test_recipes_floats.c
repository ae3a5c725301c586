/* Tests rules in which recipes with float scales differ. These are recipes for nvfp4 with a
 * second-level scale, and recipes for FP8 with fp32 scales. docs/RECIPES.md has a line for each
 * test. */
#include "quantized_row.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const two_level[] = {"torchao", "te", "modelopt", "compressed-tensors"};

/* Returns the nvfp4 scale code that a recipe gives to a block. The largest magnitude is `amax` in
 * the block and `amax_t` in the tensor. */
static uint32_t nvfp4_scale(const char *recipe, float amax_t, float amax) {
    float values[16] = {amax};
    choice how = {recipe, "nvfp4", 0, kind_of(recipe), &amax_t};
    quantized q = quantize_row(how, values, 16);
    assert_int_equal(q.status, BSMM_OK);
    return q.scales[0];
}

static void test_torchao_and_te_scales(void **state) {
    (void)state;
    assert_int_equal(nvfp4_scale("torchao", 1.6875f, 0.6328125f), 0x72);
    assert_int_equal(nvfp4_scale("te", 1.6875f, 0.6328125f), 0x73);
}

static void test_torchao_and_modelopt_scales(void **state) {
    (void)state;
    assert_int_equal(nvfp4_scale("torchao", 3.5625f, 0.66796875f), 0x6a);
    assert_int_equal(nvfp4_scale("modelopt", 3.5625f, 0.66796875f), 0x6b);
}

static void test_torchao_and_compressed_tensors_scales(void **state) {
    (void)state;
    assert_int_equal(nvfp4_scale("torchao", 14, 11.5f), 0x7b);
    assert_int_equal(nvfp4_scale("compressed-tensors", 14, 11.5f), 0x7c);
}

static void test_global_scales_as_stored(void **state) {
    (void)state;
    const float amax = 1.6875f, zero = 0;
    const float multiplier = amax / 2688, divisor = 2688 / amax;
    const float want[] = {multiplier, 1 / divisor, multiplier, (1 / amax) * 2688};
    for (size_t i = 0; i < BSMM_COUNT(two_level); i++) {
        choice how = {two_level[i], "nvfp4", 0, kind_of(two_level[i]), &amax};
        assert_true(quantize_row(how, &amax, 1).global == want[i]);
        how.amax = &zero;
        assert_true(quantize_row(how, &zero, 1).global == 1 || i == 3);
    }
    choice te = {"te", "nvfp4", 0, BSMM_GLOBAL_DIVISOR, &amax};
    assert_true(quantize_row(te, &amax, 1).global == divisor);
    choice one = {"torchao", "nvfp4", BSMM_QUANTIZE_ONE_LEVEL, 0, &amax};
    assert_true(quantize_row(one, &amax, 1).global == 1);
    choice ggml = {"ggml", "nvfp4", 0, 0, &amax};
    assert_true(quantize_row(ggml, &amax, 1).global == 1);
}

/* Tests the second-level scale of a tensor whose largest magnitude amax_t is so small that 2688 /
 * amax_t overflows. TransformerEngine's recipe then stores FLT_MAX, and that of compressed-tensors
 * stores 1. */
static void test_global_scales_of_tiny_tensors(void **state) {
    (void)state;
    const float tiny = 0x1p-140f;
    choice te = {"te", "nvfp4", 0, BSMM_GLOBAL_DIVISOR, &tiny};
    assert_true(quantize_row(te, &tiny, 1).global == FLT_MAX);
    choice ct = {"compressed-tensors", "nvfp4", 0, BSMM_GLOBAL_DIVISOR, &tiny};
    assert_true(quantize_row(ct, &tiny, 1).global == 1);
    choice torchao = {"torchao", "nvfp4", 0, 0, &tiny};
    assert_true(quantize_row(torchao, &tiny, 1).global == 1);
}

static void test_nvfp4_zero_blocks(void **state) {
    (void)state;
    static const uint32_t want[] = {0x08, 0x00, 0x38, 0x20};
    for (size_t i = 0; i < BSMM_COUNT(two_level); i++) {
        assert_int_equal(nvfp4_scale(two_level[i], 1, 0), want[i]);
        assert_int_equal(nvfp4_scale(two_level[i], 0, 0), want[i]);
    }
    assert_int_equal(scale_of("ggml", "nvfp4", 0), 0);
}

static void test_torchao_keeps_scales_normal(void **state) {
    (void)state;
    assert_int_equal(nvfp4_scale("torchao", 2688, 6 * 0x1p-8f), 0x08);
    assert_int_equal(nvfp4_scale("te", 2688, 6 * 0x1p-8f), 0x02);
    assert_int_equal(nvfp4_scale("modelopt", 2688, 6 * 0x1p-12f), 0x01);
    assert_int_equal(nvfp4_scale("compressed-tensors", 2688, 6 * 0x1p-12f), 0x20);
}

/* Tests how ggml rounds block scales to e4m3 (ggml_fp32_to_ue4m3). `even` is the scale that
 * rounding to nearest even would give. */
static void test_ggml_scales_round_half_up(void **state) {
    (void)state;
    static const struct {
        float scale;
        double ggml, even;
    } rows[] = {{250, 448, 256}, {300, 448, 288}, {1.0625f, 1.125, 1}, {0.0156f, 7.0 / 512, 0x1p-6},
                {240, 240, 240}, {448, 448, 448}};
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        uint32_t even = bsmm_elem_encode(BSMM_ELEM_E4M3, (double)rows[i].scale, true);
        uint32_t ggml = scale_of("ggml", "nvfp4", 6 * rows[i].scale);
        assert_true(bsmm_elem_decode(BSMM_ELEM_E4M3, ggml) == rows[i].ggml);
        assert_true(bsmm_elem_decode(BSMM_ELEM_E4M3, even) == rows[i].even);
    }
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void test_fp8_quotients_and_products(void **state) {
    (void)state;
    static const struct {
        const char *recipe;
        uint32_t code;
    } rows[] = {{"deepseek", 0x7a}, {"deepgemm", 0x7b}};
    const float values[] = {3.25f, 2.4375f};
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        quantized q = quantize_row((choice){rows[i].recipe, "fp8_group128", 0, 0, NULL}, values, 2);
        assert_int_equal(q.codes[1], rows[i].code);
        assert_true(float_of(q.scales[0]) == 3.25f / 448);
    }
    quantized te = quantize_row((choice){"te", "fp8_group128", 0, 0, NULL}, values, 2);
    assert_true(float_of(te.scales[0]) == 1 / (448 / 3.25f));
}

static void test_fp8_zero_blocks(void **state) {
    (void)state;
    static const struct {
        const char *recipe;
        float scale, pow2;
    } rows[] = {
        {"deepseek", 1e-4f / 448, 0x1p-22f}, {"deepgemm", 1e-4f / 448, 0x1p-22f}, {"te", 1, 1}};
    const float zero = 0;
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        choice how = {rows[i].recipe, "fp8_block128", 0, 0, NULL};
        assert_true(float_of(quantize_row(how, &zero, 1).scales[0]) == rows[i].scale);
        how.flags = BSMM_QUANTIZE_POW2;
        assert_true(float_of(quantize_row(how, &zero, 1).scales[0]) == rows[i].pow2);
    }
}

static void test_fp8_power_of_two_scales(void **state) {
    (void)state;
    static const char *const recipes[] = {"deepseek", "deepgemm", "te"};
    for (size_t i = 0; i < BSMM_COUNT(recipes); i++) {
        choice how = {recipes[i], "fp8_group128", BSMM_QUANTIZE_POW2, 0, NULL};
        float amax[] = {448, 449, 447, 1};
        static const float want[] = {1, 2, 1, 0x1p-8f};
        for (size_t j = 0; j < BSMM_COUNT(amax); j++)
            assert_true(float_of(quantize_row(how, &amax[j], 1).scales[0]) == want[j]);
    }
}

/* Tests a bf16 tensor for which 448 / amax overflows. TransformerEngine's recipe then uses the
 * largest bf16 number. */
static void test_te_fp8_of_tiny_bf16(void **state) {
    (void)state;
    uint16_t tiny = 0x0001; /* Code 1 of bf16 is the subnormal 2^-133. */
    uint8_t code;
    float scale;
    bsmm_matrix src = describe(format_named("bf16"), 1, 1);
    bsmm_matrix dst = describe(format_named("fp8_group128"), 1, 1);
    src.data = &tiny;
    dst.data = &code;
    dst.scales = &scale;
    bsmm_quantize_desc desc = {
        .struct_size = sizeof desc, .src = &src, .dst = &dst, .recipe = "te"};
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_OK);
    assert_true(scale == 1 / 0x1.fep127f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchao_and_te_scales),
        cmocka_unit_test(test_torchao_and_modelopt_scales),
        cmocka_unit_test(test_torchao_and_compressed_tensors_scales),
        cmocka_unit_test(test_global_scales_as_stored),
        cmocka_unit_test(test_global_scales_of_tiny_tensors),
        cmocka_unit_test(test_nvfp4_zero_blocks),
        cmocka_unit_test(test_torchao_keeps_scales_normal),
        cmocka_unit_test(test_ggml_scales_round_half_up),
        cmocka_unit_test(test_fp8_quotients_and_products),
        cmocka_unit_test(test_fp8_zero_blocks),
        cmocka_unit_test(test_fp8_power_of_two_scales),
        cmocka_unit_test(test_te_fp8_of_tiny_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
