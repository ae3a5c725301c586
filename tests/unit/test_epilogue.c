/* Compares the epilogue of every kernel with formulas in long double. The formulas are those of
 * torch and gpt-oss. */
#include "activated.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef long double real;

static real sigmoid(real x) {
    return 1 / (1 + expl(-x));
}
static real f_none(real x, real slope) {
    (void)slope;
    return x;
}
static real f_silu(real x, real slope) {
    return x * sigmoid(slope * x);
}
static real f_gelu(real x, real slope) {
    (void)slope;
    return x * 0.5L * (1 + erfl(x * 0.707106781186547524400844362104849039L));
}
static real f_gelu_tanh(real x, real slope) {
    (void)slope;
    real inner = 0.797884560802865355879892119868763737L * (x + 0.044715L * x * x * x);
    return 0.5L * x * (1 + tanhl(inner));
}
static real f_relu(real x, real slope) {
    (void)slope;
    return x > 0 ? x : 0;
}
static real f_relu2(real x, real slope) {
    return f_relu(x, slope) * f_relu(x, slope);
}

static const struct {
    const char *name;
    real (*f)(real x, real slope);
    bool gated, sloped;
} formulas[] = {
    {"none", f_none, false, false},           {"silu", f_silu, false, true},
    {"gelu", f_gelu, false, false},           {"gelu_tanh", f_gelu_tanh, false, false},
    {"relu", f_relu, false, false},           {"relu2", f_relu2, false, false},
    {"swiglu", f_silu, true, true},           {"geglu", f_gelu, true, false},
    {"geglu_tanh", f_gelu_tanh, true, false},
};

/* Holds the expected value of a result, and the largest amount by which a kernel's result may
 * differ from it. */
typedef struct about {
    real value, slack;
} about;

/* `x` is the argument of an activation function, and may be wrong by up to x.slack. Returns the
 * largest slope that the function has between x.value - x.slack and x.value + x.slack. The result
 * of the function may be wrong by x.slack times this slope. */
static real steepness(uint32_t activation, about x) {
    return activation == BSMM_ACTIVATION_RELU2 ? 2 * fabsl(x.value) + x.slack : 1.13L;
}

static about activate(const bsmm_epilogue *e, about x) {
    real slope = e->slope != 0 ? (real)e->slope : 1;
    real value = formulas[e->activation].f(x.value, slope);
    return (about){value, steepness(e->activation, x) * x.slack + fabsl(value) * 0x1p-45L +
                              fabsl(x.value) * 0x1p-60L};
}

static about gated(const bsmm_epilogue *e, about gate, about up) {
    if (e->limit > 0) {
        real limit = (real)e->limit;
        gate.value = gate.value > limit ? limit : gate.value;
        up.value = up.value > limit ? limit : up.value < -limit ? -limit : up.value;
    }
    up.value += (real)e->up_offset;
    about f = activate(e, gate);
    return (about){f.value * up.value,
                   f.slack * (fabsl(up.value) + up.slack) + fabsl(f.value) * up.slack};
}

static about before_epilogue(const activated *p, int64_t m, int64_t n, double bound) {
    real sum = 0, magnitude = 0;
    for (int64_t k = 0; k < K; k++) {
        real term = (real)p->a_values[m * K + k] * (real)p->b_values[n * K + k];
        sum += term;
        magnitude += fabsl(term);
    }
    about x = {(real)p->alpha * sum,
               ((real)bound + (real)K * 0x1p-53L) * fabsl((real)p->alpha) * magnitude};
    if (p->desc.c) x.value += (real)p->beta * (real)test_matrix_value(&p->c, m, n);
    if (p->desc.bias) x.value += (real)p->bias[n];
    return x;
}

static about expected(const activated *p, int64_t m, int64_t n, double bound) {
    const bsmm_epilogue *e = &p->epilogue;
    bool pairs = e->halves == BSMM_HALVES_INTERLEAVED;
    about y;
    if (formulas[e->activation].gated)
        y = gated(e, before_epilogue(p, m, pairs ? 2 * n : n, bound),
                  before_epilogue(p, m, pairs ? 2 * n + 1 : n + HALF, bound));
    else
        y = activate(e, before_epilogue(p, m, n, bound));
    if (e->residual) y.value += (real)test_matrix_value(&p->residual, m, n);
    real factor = e->scale_by ? (real)p->row_scale[m] * (real)p->col_scale[n] : 1;
    return (about){y.value * factor, y.slack * fabsl(factor) + fabsl(y.value * factor) * 0x1p-50L};
}

static void check(const activated *p, const char *kernel, double bound) {
    uint32_t elem = p->d.m.format.elem;
    bool saturate = bsmm_elem_row(elem)->bits == 8;
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < p->d.m.cols; n++) {
            about y = expected(p, m, n, bound);
            double got = test_matrix_value(&p->d, m, n);
            double low = (double)(y.value - y.slack), high = (double)(y.value + y.slack);
            low = bsmm_elem_decode(elem, bsmm_elem_encode(elem, low, saturate));
            high = bsmm_elem_decode(elem, bsmm_elem_encode(elem, high, saturate));
            if (!(low <= got && got <= high))
                fail_msg("%s, %s -> %s, at (%lld, %lld): got %a, want %a to %a", kernel,
                         formulas[p->epilogue.activation].name, bsmm_format_name(p->d.m.format),
                         (long long)m, (long long)n, got, low, high);
        }
}

static void check_every_kernel(activated *p) {
    int ran = 0;
    for (test_walk w = test_walk_begin(&p->desc); test_walk_next(&w); ran++) {
        memset(p->d.m.data, 0xa5, p->d.data_bytes);
        if (test_multiply(&p->desc) != BSMM_OK)
            fail_msg("%s: %s", w.e.kernel, bsmm_error_message());
        check(p, w.e.kernel, w.e.bound);
    }
    assert_true(ran >= test_walk_least(2));
}

static void test_every_activation(void **state) {
    (void)state;
    static const char *const outputs[] = {"f32", "bf16", "e4m3"};
    rng r = {71};
    for (uint32_t i = 0; i < BSMM_COUNT(formulas); i++)
        for (uint32_t halves = 0; halves <= formulas[i].gated; halves++)
            for (uint32_t q = 0; q < 2 * BSMM_COUNT(outputs); q++) {
                bsmm_epilogue e = {.activation = i, .halves = halves};
                if (formulas[i].sloped && q % 2) e.slope = 1.702f;
                activated p;
                activated_make(&p, &e, outputs[q / 2], q % 2, &r);
                check_every_kernel(&p);
                activated_free(&p);
            }
}

/* Tests the activation of gpt-oss, which clamps its arguments. Some gates and ups must be beyond
 * the limits, so that clamping is tested. */
static void test_gpt_oss(void **state) {
    (void)state;
    rng r = {72};
    for (uint32_t everything = 0; everything < 2; everything++) {
        activated p;
        activated_make(&p, &gpt_oss, "f32", everything, &r);
        int beyond[2] = {0};
        for (int64_t n = 0; n < N; n++)
            beyond[n % 2] += fabsl(before_epilogue(&p, 0, n, 0).value) > 7;
        assert_true(beyond[0] > 0 && beyond[1] > 0);
        check_every_kernel(&p);
        activated_free(&p);
    }
}

/* Tests a gated activation, which multiplies each gate by an "up", with two orders of B's rows. In
 * the split order, all gates come first. In the interleaved order, gates and ups alternate. A
 * product must give bitwise identical results with both orders. */
static void test_interleaved_gives_the_bits_of_split(void **state) {
    (void)state;
    rng r = {73};
    bsmm_epilogue e = gpt_oss;
    e.halves = BSMM_HALVES_SPLIT;
    activated p;
    activated_make(&p, &e, "f32", false, &r);
    bsmm_operand b;
    assert_int_equal(bsmm_operand_take(&p.b.m, "b", &b), BSMM_OK);
    size_t row = (size_t)b.m.ld / 2, scales = (size_t)b.map.cols;
    uint8_t *data = malloc(p.b.data_bytes), *codes = malloc(p.b.scale_bytes);
    float *split = malloc(p.d.data_bytes);
    for (size_t n = 0; n < N; n++) {
        size_t from = n / 2 + (n % 2) * HALF;
        memcpy(data + n * row, (uint8_t *)p.b.m.data + from * row, row);
        memcpy(codes + n * scales, (uint8_t *)p.b.m.scales + from * scales, scales);
    }
    for (test_walk w = test_walk_begin(&p.desc); test_walk_next(&w);) {
        assert_int_equal(test_multiply(&p.desc), BSMM_OK);
        memcpy(split, p.d.m.data, p.d.data_bytes);
        bsmm_matrix permuted = p.b.m;
        permuted.data = data;
        permuted.scales = codes;
        p.desc.b = &permuted;
        p.epilogue.halves = BSMM_HALVES_INTERLEAVED;
        assert_int_equal(test_multiply(&p.desc), BSMM_OK);
        assert_memory_equal(split, p.d.m.data, p.d.data_bytes);
        p.desc.b = &p.b.m;
        p.epilogue.halves = BSMM_HALVES_SPLIT;
    }
    free(data);
    free(codes);
    free(split);
    activated_free(&p);
}

/* Tests a quantized D. Its bytes must be those that bsmm_quantize makes from the fp32 results of
 * the same product. */
static void test_quantized_output(void **state) {
    (void)state;
    rng r = {74};
    activated p, scaled;
    activated_make(&p, &gpt_oss, "f32", false, &r);
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    test_matrix_make(&scaled.d, describe(format_named("mxfp8"), M, HALF), FILL_ORDINARY, &r);
    uint8_t *data = malloc(scaled.d.data_bytes), *scales = malloc(scaled.d.scale_bytes);
    const bsmm_quantize_desc q = {.struct_size = sizeof q, .src = &p.d.m, .dst = &scaled.d.m};
    /* The kernel `ref` computes the product here. Other kernels sum in fp32, so their results would
     * differ from the expected values. */
    p.desc.kernel = "ref";
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    assert_int_equal(bsmm_quantize(&q, NULL), BSMM_OK);
    memcpy(data, scaled.d.m.data, scaled.d.data_bytes);
    memcpy(scales, scaled.d.m.scales, scaled.d.scale_bytes);
    memset(scaled.d.m.data, 0xa5, scaled.d.data_bytes);
    p.desc.d = &scaled.d.m;
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    assert_memory_equal(data, scaled.d.m.data, scaled.d.data_bytes);
    assert_memory_equal(scales, scaled.d.m.scales, scaled.d.scale_bytes);
    free(data);
    free(scales);
    test_matrix_free(&scaled.d);
    activated_free(&p);
}

/* Tests special values of an activation function. K is 0, so its argument is the bias. */
static void test_special_values(void **state) {
    (void)state;
    const float inf = INFINITY;
    float bias[] = {NAN, inf, -inf, 0, -0.0f, -1000, 1000};
    static const struct {
        uint32_t activation;
        float want[BSMM_COUNT(bias)];
    } rows[] = {
        {BSMM_ACTIVATION_SILU, {NAN, INFINITY, NAN, 0, 0, 0, 1000}},
        {BSMM_ACTIVATION_GELU, {NAN, INFINITY, NAN, 0, 0, 0, 1000}},
        {BSMM_ACTIVATION_GELU_TANH, {NAN, INFINITY, NAN, 0, 0, 0, 1000}},
        {BSMM_ACTIVATION_RELU, {NAN, INFINITY, 0, 0, 0, 0, 1000}},
        {BSMM_ACTIVATION_RELU2, {NAN, INFINITY, 0, 0, 0, 0, 1e6f}},
    };
    float d[BSMM_COUNT(bias)], unused = 0;
    bsmm_matrix am = describe(format_named("f32"), 1, 0), dm = am, bm = am;
    bm.rows = dm.cols = BSMM_COUNT(bias);
    dm.data = d;
    am.data = bm.data = &unused;
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        const bsmm_epilogue e = {.struct_size = sizeof e, .activation = rows[i].activation};
        bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &am, .b = &bm, .d = &dm};
        desc.bias = bias;
        desc.bias_elem = BSMM_ELEM_F32;
        desc.epilogue = &e;
        for (test_walk w = test_walk_begin(&desc); test_walk_next(&w);) {
            if (!test_walk_on_cpu(&w)) continue;
            assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
            for (size_t q = 0; q < BSMM_COUNT(bias); q++)
                if (!(d[q] == rows[i].want[q] || (isnan(d[q]) && isnan(rows[i].want[q]))))
                    fail_msg("%s: f(%g) is %g", formulas[e.activation].name, (double)bias[q],
                             (double)d[q]);
        }
    }
}

static void test_residual_may_be_d(void **state) {
    (void)state;
    rng r = {75};
    activated p;
    activated_make(&p, &gpt_oss, "bf16", true, &r);
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    uint8_t *apart = malloc(p.d.data_bytes);
    memcpy(apart, p.d.m.data, p.d.data_bytes);
    memcpy(p.d.m.data, p.residual.m.data, p.d.data_bytes);
    p.epilogue.residual = &p.d.m;
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    assert_memory_equal(apart, p.d.m.data, p.d.data_bytes);
    free(apart);
    activated_free(&p);
}

/* Tests that a plan keeps no pointers of its description. A run must read the residual and the
 * factors from the buffers of this run. */
static void test_plan(void **state) {
    (void)state;
    rng r = {76};
    activated p;
    activated_make(&p, &gpt_oss, "f32", true, &r);
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    float *want = malloc(p.d.data_bytes);
    memcpy(want, p.d.m.data, p.d.data_bytes);
    bsmm_plan *plan;
    p.epilogue.row_scale = p.epilogue.col_scale = NULL;
    assert_int_equal(bsmm_plan_create(&p.desc, &plan), BSMM_OK);
    memset(&p.epilogue, 0xff, sizeof p.epilogue);
    uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    bsmm_buffers buffers = {.struct_size = sizeof buffers,
                            .a = p.a.m.data,
                            .a_scales = p.a.m.scales,
                            .b = p.b.m.data,
                            .b_scales = p.b.m.scales,
                            .c = p.c.m.data,
                            .d = p.d.m.data,
                            .bias = p.bias,
                            .workspace = aligned_alloc(64, (bytes + 63) / 64 * 64),
                            .workspace_bytes = bytes,
                            .residual = p.residual.m.data,
                            .row_scale = p.row_scale,
                            .col_scale = p.col_scale};
    memset(p.d.m.data, 0xa5, p.d.data_bytes);
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    assert_memory_equal(want, p.d.m.data, p.d.data_bytes);
    buffers.col_scale = NULL;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    assert_int_equal(strncmp(bsmm_error_message(), "col_scale", 9), 0);
    free(buffers.workspace);
    bsmm_plan_destroy(plan);
    free(want);
    activated_free(&p);
}

static void test_table(void **state) {
    (void)state;
    bsmm_activation_info info = {.struct_size = sizeof info};
    uint32_t count = 0;
    for (; bsmm_activation_at(count, &info) == BSMM_OK; count++) {
        assert_string_equal(info.name, formulas[count].name);
        assert_int_equal(info.activation, count);
        assert_int_equal(info.is_gated, formulas[count].gated);
        assert_int_equal(info.has_slope, formulas[count].sloped);
        assert_true(info.formula[0] && info.source[0]);
    }
    assert_int_equal(count, BSMM_COUNT(formulas));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_activation),
        cmocka_unit_test(test_gpt_oss),
        cmocka_unit_test(test_interleaved_gives_the_bits_of_split),
        cmocka_unit_test(test_quantized_output),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_residual_may_be_d),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
