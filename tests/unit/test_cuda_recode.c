/* Tests the GPU functions that quantize or dequantize one element. The test runs them on the CPU
 * for whole matrices. The bytes must equal those of bsmm_quantize and bsmm_dequantize. The test
 * covers every recipe and format. */
#include "cuda/host/pack_plan.h"
#include "cuda/host/recode_calls.h"
#include "gpu/recode_lane.h"
#include "quantize/recipe.h"
#include "recipe/make.h"
#include "recode_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float value_at(const bsmm_recode *job, int64_t r, int64_t c) {
    uint32_t elem = job->src.m.format.elem;
    uint64_t at = bsmm_operand_index(&job->src, r, c);
    return bsmm_lane_value(elem, bsmm_elem_load(elem, job->src.m.data, at));
}

static uint32_t amax_of(const bsmm_recode *job, int64_t r, int64_t r_end, int64_t c, int64_t c_end,
                        uint32_t limit) {
    uint32_t amax = 0;
    for (int64_t i = r; i < r_end; i++)
        for (int64_t j = c; j < c_end; j++) {
            uint32_t a = bsmm_float_bits(value_at(job, i, j)) & 0x7fffffffu;
            amax = a <= limit && a > amax ? a : amax;
        }
    return amax;
}

static void store(const bsmm_recode *job, int64_t r, int64_t c, uint32_t code) {
    bsmm_elem_store(job->dst.m.format.elem, job->dst.m.data, bsmm_operand_index(&job->dst, r, c),
                    code);
}

static void convert_block(const bsmm_recode *job, const bsmm_quantize_job *q,
                          const bsmm_tensor_step *t, int64_t r, int64_t c) {
    int64_t r_end = bsmm_min_i64(r + q->block_rows, job->src.m.rows);
    int64_t c_end = bsmm_min_i64(c + q->block_cols, job->src.m.cols);
    uint32_t limit = q->steps.skips_nan ? 0x7f800000u : UINT32_MAX;
    uint32_t amax = amax_of(job, r, r_end, c, c_end, limit);
    bsmm_block_step step = bsmm_block_by(q->steps.block, bsmm_bits_float(amax), t);
    bsmm_lane_encoder e = bsmm_lane_encoder_of(q, step.factor);
    if (q->scale)
        bsmm_scale_store_code(q->scale, q->scales,
                              bsmm_axis_at(&q->row_map, (uint32_t)r) +
                                  bsmm_axis_at(&q->col_map, (uint32_t)c),
                              step.code);
    for (int64_t i = r; i < r_end; i++)
        for (int64_t j = c; j < c_end; j++) {
            float value = value_at(job, i, j);
            store(job, i, j,
                  q->dst_bits == 32 ? bsmm_lane_encode_f32(q, step.factor, value)
                                    : bsmm_lane_encode(q, &e, value));
        }
}

static void pad_groups(const bsmm_recode *job) {
    const bsmm_matrix *m = &job->dst.m;
    int64_t group = bsmm_elem_group(m->format.elem);
    bool rows = m->order == BSMM_ORDER_ROW;
    int64_t length = rows ? m->cols : m->rows, lines = rows ? m->rows : m->cols;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t i = length; i < bsmm_round_up(length, group); i++)
            store(job, rows ? line : i, rows ? i : line, 0);
}

static float model_quantize(const bsmm_recode *job) {
    const bsmm_matrix *src = &job->src.m;
    float amax = bsmm_bits_float(amax_of(job, 0, src->rows, 0, src->cols, UINT32_MAX));
    bsmm_quantize_job q = bsmm_quantize_job_of(job, job->two_level ? &amax : NULL);
    bsmm_tensor_step t = q.tensor;
    if (job->two_level) t = bsmm_lane_tensor(&q.tensor, &q.steps, amax);
    if (bsmm_layout_pads(job->dst.m.scale_layout)) memset(q.scales, 0, job->dst.scale_bytes);
    for (int64_t r = 0; r < src->rows; r += q.block_rows)
        for (int64_t c = 0; c < src->cols; c += q.block_cols)
            convert_block(job, &q, &t, r, c);
    pad_groups(job);
    return job->dst.m.global_kind == BSMM_GLOBAL_DIVISOR ? t.divisor : t.multiplier;
}

typedef struct quantize_check {
    uint32_t cases;
} quantize_check;

static void quantizes_alike(const recode_case *c, void *context) {
    quantize_check *check = context;
    test_matrix dst = c->dst;
    uint8_t *data = malloc(c->dst.data_bytes + 1), *scales = malloc(c->dst.scale_bytes + 1);
    const bsmm_recipe *recipe;
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    bsmm_recode job = {.flags = c->flags, .two_level = c->two_level};
    desc.src = &c->src.m;
    desc.dst = &dst.m;
    desc.recipe = c->recipe;
    desc.flags = c->flags;
    memset(data, 0xa5, c->dst.data_bytes);
    memset(scales, 0xa5, c->dst.scale_bytes);
    dst.m.global_scale = c->two_level ? &dst.global : NULL;
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_OK);

    assert_int_equal(bsmm_operand_take(&c->src.m, "src", &job.src), BSMM_OK);
    assert_int_equal(bsmm_operand_take(&c->dst.m, "dst", &job.dst), BSMM_OK);
    job.dst.m.data = data;
    job.dst.m.scales = c->dst.m.scales ? scales : NULL;
    assert_int_equal(bsmm_recipe_find(c->recipe, c->dst.m.format, &recipe), BSMM_OK);
    job.steps = &recipe->steps;
    float level = model_quantize(&job);
    recode_expect(c, "elements", dst.m.data, data, c->dst.data_bytes);
    recode_expect(c, "scales", dst.m.scales, scales, c->dst.m.scales ? c->dst.scale_bytes : 0);
    if (c->two_level) recode_expect(c, "level", &dst.global, &level, sizeof level);
    free(data);
    free(scales);
    check->cases++;
}

static void quantizes_as_the_cpu(void **state) {
    quantize_check check = {0};
    (void)state;
    recode_cases_each(30, quantizes_alike, &check);
    assert_true(check.cases > 1000);
}

static void dequantizes_alike(test_matrix *src, const char *type) {
    test_matrix dst;
    rng r = {3};
    test_matrix_make(&dst, describe(format_named(type), src->m.rows, src->m.cols), FILL_ORDINARY,
                     &r);
    bsmm_recode job = {.device = NULL};
    assert_int_equal(bsmm_dequantize(&src->m, &dst.m), BSMM_OK);
    assert_int_equal(bsmm_operand_take(&src->m, "src", &job.src), BSMM_OK);
    assert_int_equal(bsmm_operand_take(&dst.m, "dst", &job.dst), BSMM_OK);
    bsmm_dequantize_job q = bsmm_dequantize_job_of(&job);
    for (int64_t i = 0; i < src->m.rows; i++)
        for (int64_t j = 0; j < src->m.cols; j++) {
            uint32_t elem = src->m.format.elem, bits = bsmm_elem_row(elem)->bits;
            uint32_t code = bsmm_elem_load(elem, src->m.data, bsmm_operand_index(&job.src, i, j));
            float element =
                bits > 8 ? bsmm_lane_value(elem, code) : bsmm_narrow_value(&q.codec, code);
            float scale = 1, global = src->m.global_scale ? *src->m.global_scale : 1;
            uint64_t at =
                bsmm_axis_at(&q.row_map, (uint32_t)i) + bsmm_axis_at(&q.col_map, (uint32_t)j);
            if (q.scale)
                scale = bsmm_lane_scale_value(q.scale,
                                              bsmm_scale_load_code(q.scale, src->m.scales, at));
            uint32_t got = bsmm_lane_result(&q, bsmm_lane_product(&q, element, scale, global));
            uint32_t expected =
                bsmm_elem_load(dst.m.format.elem, dst.m.data, bsmm_operand_index(&job.dst, i, j));
            if (got != expected)
                fail_msg("%s to %s at %lld, %lld: %08x * %a * %a is %08x, must be %08x",
                         bsmm_format_name(src->m.format), type, (long long)i, (long long)j, code,
                         (double)scale, (double)global, got, expected);
        }
    test_matrix_free(&dst);
}

static void dequantizes_as_the_cpu(void **state) {
    static const char *const types[] = {"f32", "f16", "bf16"};
    bsmm_preset_info info = {.struct_size = sizeof info};
    rng r = {5};
    (void)state;
    for (uint32_t p = 0; bsmm_preset_at(p, &info) == BSMM_OK; p++)
        for (uint32_t i = 0; i < 36; i++) {
            test_matrix src;
            bsmm_matrix shape = describe(info.format, 1 + rng_below(&r, 9), 1 + rng_below(&r, 200));
            shape.global_kind = i % 4 / 2;
            test_matrix_make(&src, shape, (fill)(i / 4 % 3), &r);
            src.m.global_scale = i % 2 ? &src.global : NULL;
            src.global = 0.37f * (float)(1 + rng_below(&r, 100));
            dequantizes_alike(&src, types[i / 12]);
            test_matrix_free(&src);
        }
}

/* Tests that the GPU functions round fp32 to f16 and bf16 as the scalar codec does. Some recipes
 * round in this way if the input is f16 or bf16. */
static void rounds_to_the_source(void **state) {
    static const uint32_t elems[] = {BSMM_ELEM_F16, BSMM_ELEM_BF16, BSMM_ELEM_F32};
    rng r = {6};
    (void)state;
    for (uint32_t i = 0; i < 3000000; i++) {
        uint32_t elem = elems[i % 3], bits = (uint32_t)rng_next(&r);
        /* Some values are near the subnormals of f16. */
        if (i % 4 == 0) bits = (bits & 0xff803fffu) | 0x33000000u;
        float value = bsmm_bits_float(bits);
        bsmm_tensor_step t = bsmm_tensor_step_make(BSMM_ELEM_E2M1, elem, false);
        if (isnan(value)) continue;
        double expected = bsmm_elem_decode(elem, bsmm_elem_encode(elem, (double)value, false));
        assert_true((double)bsmm_round_to(&t, value) == expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantizes_as_the_cpu),
        cmocka_unit_test(dequantizes_as_the_cpu),
        cmocka_unit_test(rounds_to_the_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
