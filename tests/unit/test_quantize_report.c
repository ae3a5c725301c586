/* Tests that bsmm_dequantize rounds the exact value only once, and that bsmm_quantize and
 * bsmm_compare report errors as bsmm.h defines them. */
#include "operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_dequantize(bsmm_matrix shape, uint32_t elem, fill how, rng *r) {
    test_matrix src, dst;
    bsmm_operand o;
    bsmm_matrix to = describe((bsmm_format){.elem = elem}, shape.rows, shape.cols);
    to.order = !shape.order;
    test_matrix_make(&src, shape, how, r);
    test_matrix_make(&dst, to, FILL_ORDINARY, r);
    src.global = 0.7f;
    if (rng_below(r, 2)) src.m.global_scale = &src.global;
    if (bsmm_dequantize(&src.m, &dst.m) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    assert_int_equal(bsmm_operand_take(&dst.m, "dst", &o), BSMM_OK);
    double *values = test_matrix_values(&src);
    for (int64_t i = 0; i < shape.rows; i++)
        for (int64_t j = 0; j < shape.cols; j++) {
            double value = values[i * shape.cols + j];
            uint32_t got = bsmm_elem_load(elem, dst.m.data, bsmm_operand_index(&o, i, j));
            uint32_t want = bsmm_elem_encode(elem, value, false);
            bool same = isnan(value) ? isnan(bsmm_elem_decode(elem, got)) : got == want;
            if (!same) fail_msg("%a in %s is 0x%x", value, bsmm_elem_row(elem)->name, got);
        }
    free(values);
    test_matrix_free(&src);
    test_matrix_free(&dst);
}

static void test_dequantize_rounds_once(void **state) {
    (void)state;
    rng r = {1};
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++)
        for (uint32_t elem = BSMM_ELEM_F32; elem <= BSMM_ELEM_BF16; elem++)
            for (int how = FILL_ORDINARY; how <= FILL_SPECIAL; how++) {
                bsmm_matrix shape = describe(preset.format, 33, 300);
                shape.order = i & 1;
                shape.global_kind = (uint32_t)how & 1;
                check_dequantize(shape, elem, (fill)how, &r);
            }
}

static void test_dequantize_between_plain_formats(void **state) {
    (void)state;
    rng r = {2};
    for (uint32_t from = next_elem(BSMM_ELEM_NONE); from; from = next_elem(from))
        for (uint32_t to = BSMM_ELEM_F32; to <= BSMM_ELEM_BF16; to++)
            check_dequantize(describe((bsmm_format){.elem = from}, 20, 301), to, FILL_SPECIAL, &r);
}

/* Tests a value just below the midpoint between two bf16 numbers. The right result is the lower of
 * the two. If the value were rounded to fp32 first, it would become the midpoint, and rounding the
 * midpoint to bf16 (ties to even) would give the upper number. */
static void test_dequantize_does_not_round_twice(void **state) {
    (void)state;
    float above = 1 + 0x3p-8f + 0x1p-23f, divisor = 1 + 0x1p-23f;
    uint16_t got;
    bsmm_matrix src = describe(format_named("f32"), 1, 1);
    bsmm_matrix dst = describe(format_named("bf16"), 1, 1);
    src.data = &above;
    src.global_scale = &divisor;
    src.global_kind = BSMM_GLOBAL_DIVISOR;
    dst.data = &got;
    double value = (double)above / (double)divisor;
    assert_true(value < 1 + 0x3p-8 && (float)value == 1 + 0x3p-8f);
    assert_int_equal(bsmm_dequantize(&src, &dst), BSMM_OK);
    assert_true(bsmm_elem_decode(BSMM_ELEM_BF16, got) == 1 + 0x1p-7);
}

static void test_dequantize_refuses(void **state) {
    (void)state;
    uint8_t codes[64] = {0}, scales[2] = {127, 127};
    float values[64];
    bsmm_matrix src = describe(format_named("mxfp8"), 2, 32);
    bsmm_matrix dst = describe(format_named("f32"), 2, 32), bad;
    src.data = codes;
    src.scales = scales;
    dst.data = values;
    bad = dst, bad.format = format_named("e4m3");
    assert_int_equal(bsmm_dequantize(&src, &bad), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "dst.format"));
    bad = dst, bad.cols = 31;
    assert_int_equal(bsmm_dequantize(&src, &bad), BSMM_E_INVALID);
    bad = src, bad.scales = NULL;
    assert_int_equal(bsmm_dequantize(&bad, &dst), BSMM_E_INVALID);
    bad = src, bad.data = values;
    assert_int_equal(bsmm_dequantize(&bad, &dst), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "overlaps"));
    assert_int_equal(bsmm_dequantize(NULL, &dst), BSMM_E_INVALID);
}

static bsmm_quantize_report compare(const bsmm_matrix *src, const bsmm_matrix *quantized) {
    bsmm_quantize_report report = {.struct_size = sizeof report};
    assert_int_equal(bsmm_compare(src, quantized, &report), BSMM_OK);
    return report;
}

/* Tests the report of an mxfp4 block with the values 7, 0.2 and 1 and the scale 1. The value 7
 * must be clipped to 6, and 0.2 must become 0. */
static void test_report_of_three_values(void **state) {
    (void)state;
    float values[] = {7, 0.2f, 1, 0};
    uint8_t codes[2], scale;
    bsmm_matrix src = describe(format_named("f32"), 1, 4);
    bsmm_matrix dst = describe(format_named("mxfp4"), 1, 4);
    src.data = values;
    dst.data = codes;
    dst.scales = &scale;
    bsmm_quantize_desc desc = {.struct_size = sizeof desc, .src = &src, .dst = &dst};
    bsmm_quantize_report report = {.struct_size = sizeof report};
    assert_int_equal(bsmm_quantize(&desc, &report), BSMM_OK);
    double small = (double)0.2f * (double)0.2f;
    assert_true(report.signal == 49 + small + 1);
    assert_true(report.noise == 1 + small);
    assert_true(report.sqnr_db == 10 * log10(report.signal / report.noise));
    assert_true(report.max_error == 1);
    assert_true(report.clipped == 0.25);
    assert_true(report.underflowed == 0.25);
    assert_int_equal(report.count, 4);
    assert_int_equal(report.struct_size, sizeof report);
}

/* Tests the report of a matrix whose tensor scale is a divisor. The largest value that the block
 * can represent is 0.125. A value of 0.125 must not count as clipped. It would count as clipped if
 * the code multiplied by the rounded reciprocal of the divisor. */
static void test_report_under_a_divisor(void **state) {
    (void)state;
    uint8_t codes[16], scale = 7;
    float values[16], level = 49;
    bsmm_matrix src = describe(format_named("f32"), 1, 16);
    bsmm_matrix quantized = describe((bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_E4M3, 1, 16}, 1, 16);
    memset(codes, 0x7e, sizeof codes);
    for (int i = 0; i < 16; i++)
        values[i] = 0.125f;
    src.data = values;
    quantized.data = codes;
    quantized.scales = &scale;
    quantized.global_scale = &level;
    quantized.global_kind = BSMM_GLOBAL_DIVISOR;
    assert_true(compare(&src, &quantized).noise == 0);
    assert_true(compare(&src, &quantized).clipped == 0);
}

static void test_report_of_exact_and_empty(void **state) {
    (void)state;
    float values[] = {6, -1.5f, 0, 2};
    uint8_t codes[4];
    bsmm_matrix src = describe(format_named("f32"), 2, 2);
    bsmm_matrix dst = describe(format_named("e2m1"), 2, 2);
    src.data = values;
    dst.data = codes;
    bsmm_quantize_desc desc = {.struct_size = sizeof desc, .src = &src, .dst = &dst};
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_OK);
    bsmm_quantize_report report = compare(&src, &dst);
    assert_true(isinf(report.sqnr_db) && report.sqnr_db > 0);
    assert_true(report.max_error == 0 && report.clipped == 0 && report.underflowed == 0);
    src.rows = dst.rows = 0;
    report = compare(&src, &dst);
    assert_true(isinf(report.sqnr_db) && report.clipped == 0 && report.count == 0);
}

static void test_report_shows_nan(void **state) {
    (void)state;
    float values[] = {1, 2, 3, 4};
    uint8_t codes[2] = {0x22, 0x22}, scale = 255;
    bsmm_matrix src = describe(format_named("f32"), 1, 4);
    bsmm_matrix dst = describe(format_named("mxfp4"), 1, 4);
    src.data = values;
    dst.data = codes;
    dst.scales = &scale;
    bsmm_quantize_report report = compare(&src, &dst);
    assert_true(isnan(report.noise) && isnan(report.max_error) && isnan(report.sqnr_db));
    assert_true(report.clipped == 0 && report.underflowed == 0 && report.signal == 30);
}

/* Tests the largest error in a report. If a value is NaN, later finite errors must not replace the
 * NaN. */
static void test_largest_error_stays_nan(void **state) {
    (void)state;
    float values[2 * 64] = {0};
    uint8_t codes[2 * 32], scales[] = {255, 127, 127, 127};
    bsmm_matrix src = describe(format_named("f32"), 2, 64);
    bsmm_matrix dst = describe(format_named("mxfp4"), 2, 64);
    memset(codes, 0x22, sizeof codes);
    src.data = values;
    dst.data = codes;
    dst.scales = scales;
    assert_true(isnan(compare(&src, &dst).max_error));
    scales[0] = 127;
    assert_true(compare(&src, &dst).max_error == 1);
}

/* Computes the expected report by its definition, one value at a time. */
static void check_definition(const test_matrix *src, const test_matrix *q) {
    double signal = 0, noise = 0, max_error = 0, clipped = 0, underflowed = 0;
    const bsmm_format *f = &q->m.format;
    double level = q->m.global_scale ? (double)*q->m.global_scale : 1;
    double count = (double)(src->m.rows * src->m.cols);
    for (int64_t i = 0; i < src->m.rows; i++)
        for (int64_t j = 0; j < src->m.cols; j++) {
            double x = test_matrix_value(src, i, j), y = test_matrix_value(q, i, j);
            uint64_t at;
            assert_int_equal(bsmm_scale_offset(&q->m, i / f->block_rows, j / f->block_cols, &at),
                             BSMM_OK);
            double limit =
                bsmm_elem_row(f->elem)->max * bsmm_scale_load(f->scale, q->m.scales, at) * level;
            signal += x * x;
            noise += (x - y) * (x - y);
            max_error = fmax(max_error, fabs(x - y));
            clipped += fabs(x) > limit;
            underflowed += x != 0 && y == 0;
        }
    bsmm_quantize_report report = compare(&src->m, &q->m);
    assert_true(fabs(report.signal - signal) <= 1e-12 * signal);
    assert_true(fabs(report.noise - noise) <= 1e-12 * noise);
    assert_true(fabs(report.sqnr_db - 10 * log10(signal / noise)) <= 1e-9);
    assert_true(report.max_error == max_error);
    assert_true(report.clipped == clipped / count);
    assert_true(report.underflowed == underflowed / count);
    assert_int_equal(report.count, src->m.rows * src->m.cols);
}

static void check_threads(const test_matrix *src, const test_matrix *q) {
    bsmm_quantize_report want = compare(&src->m, &q->m);
    for (uint32_t threads = 1; threads <= 7; threads += 2) {
        bsmm_quantize_report report = {.struct_size = sizeof report};
        bsmm_quantize_desc desc = {
            .struct_size = sizeof desc, .src = &src->m, .dst = &q->m, .threads = threads};
        assert_int_equal(bsmm_quantize(&desc, &report), BSMM_OK);
        assert_memory_equal(&report, &want, sizeof report);
    }
}

static void test_reports_of_presets(void **state) {
    (void)state;
    rng r = {3};
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++) {
        test_matrix src, q;
        bsmm_matrix from = describe(format_named(i & 1 ? "bf16" : "f32"), 150, 333);
        from.order = i >> 1 & 1;
        test_matrix_make(&src, from, FILL_ORDINARY, &r);
        test_matrix_make(&q, describe(preset.format, 150, 333), FILL_ORDINARY, &r);
        q.m.global_scale = &q.global;
        bsmm_quantize_desc desc = {.struct_size = sizeof desc, .src = &src.m, .dst = &q.m};
        assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_OK);
        check_definition(&src, &q);
        check_threads(&src, &q);
        test_matrix_free(&src);
        test_matrix_free(&q);
    }
}

/* Tests that both matrices of a comparison may have any format. Exchanging the matrices must give
 * the same errors, and a matrix must have no errors compared with itself. */
static void test_compare_takes_any_formats(void **state) {
    (void)state;
    rng r = {5};
    test_matrix src, q;
    test_matrix_make(&src, describe(format_named("nvfp4"), 6, 80), FILL_ORDINARY, &r);
    test_matrix_make(&q, describe(format_named("fp8_block128"), 6, 80), FILL_ORDINARY, &r);
    const bsmm_quantize_report there = compare(&src.m, &q.m), back = compare(&q.m, &src.m);
    assert_true(there.noise > 0 && there.noise == back.noise);
    assert_true(there.max_error == back.max_error);
    assert_true(isfinite(there.sqnr_db) && there.signal != back.signal);
    const bsmm_quantize_report own = compare(&src.m, &src.m);
    assert_true(own.noise == 0 && own.max_error == 0 && own.clipped == 0);
    assert_true(own.signal == there.signal);
    test_matrix_free(&src);
    test_matrix_free(&q);
}

static void test_compare_refuses(void **state) {
    (void)state;
    float values[4] = {0};
    bsmm_quantize_report report = {.struct_size = sizeof report};
    bsmm_matrix m = describe(format_named("f32"), 2, 2), bad = m;
    m.data = bad.data = values;
    bad.rows = 1;
    assert_int_equal(bsmm_compare(&m, &bad, &report), BSMM_E_INVALID);
    assert_int_equal(bsmm_compare(&m, &m, NULL), BSMM_E_INVALID);
    bad = m, bad.data = NULL;
    assert_int_equal(bsmm_compare(&m, &bad, &report), BSMM_E_INVALID);
    assert_int_equal(bsmm_compare(&m, &m, &report), BSMM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dequantize_rounds_once),
        cmocka_unit_test(test_dequantize_between_plain_formats),
        cmocka_unit_test(test_dequantize_does_not_round_twice),
        cmocka_unit_test(test_dequantize_refuses),
        cmocka_unit_test(test_report_of_three_values),
        cmocka_unit_test(test_report_under_a_divisor),
        cmocka_unit_test(test_report_of_exact_and_empty),
        cmocka_unit_test(test_report_shows_nan),
        cmocka_unit_test(test_largest_error_stays_nan),
        cmocka_unit_test(test_reports_of_presets),
        cmocka_unit_test(test_compare_takes_any_formats),
        cmocka_unit_test(test_compare_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
