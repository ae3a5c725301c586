/* Tests the epilogue of the CPU kernels on products that are so large that they have many cache
 * blocks and panels (some packed rows of an operand), with several threads. The operands are small
 * numbers whose sums are exact in every kernel, so D must be bitwise identical to the formula. */
#include "core/epilogue.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* With a gated activation, the first HALF rows of B give the gates and the other HALF rows give the
 * ups, by which gates are multiplied. HALF is no multiple of any kernel's panel width, so one panel
 * contains gates and ups. */
enum { HALF = 330, N = 2 * HALF, K = 200, MOST_ROWS = 200 };

typedef struct fused {
    test_matrix a, b, c, residual;
    float bias[N], row_scale[MOST_ROWS], col_scale[N], alpha, beta;
    /* `values` holds the results before the conversion to D's format. */
    float values[MOST_ROWS * N];
    bsmm_epilogue epilogue;
    bsmm_matmul_desc desc;
} fused;

/* Returns a random multiple of 1/4 between -3 and 3. */
static float small(rng *r) {
    return (float)rng_below(r, 25) / 4 - 3;
}

static void fill_small(test_matrix *t, rng *r) {
    const bsmm_format *f = &t->m.format;
    for (int64_t i = 0; i < t->m.rows * t->m.cols; i++) {
        double value = (double)rng_below(r, 13) / 2 - 3;
        if (f->elem == BSMM_ELEM_E2M1 && (value == 2.5 || value == -2.5)) value = 0;
        bsmm_elem_store(f->elem, t->m.data, (uint64_t)i, bsmm_elem_encode(f->elem, value, true));
    }
    uint64_t bytes = f->scale ? bsmm_scale_row_of(f->scale)->bytes : 1;
    for (uint64_t i = 0; f->scale && i < t->scale_bytes / bytes; i++)
        bsmm_scale_store_code(f->scale, t->m.scales, i,
                              f->scale == BSMM_SCALE_E8M0   ? 127
                              : f->scale == BSMM_SCALE_E4M3 ? 0x38
                                                            : 0x3f800000);
}

static void make_small(test_matrix *t, const char *format, int64_t rows, int64_t cols, rng *r) {
    test_matrix_make(t, describe(format_named(format), rows, cols), FILL_ORDINARY, r);
    t->m.global_scale = NULL;
    fill_small(t, r);
}

static void fused_make(fused *x, const char *a, const char *b, int64_t rows, bsmm_epilogue e,
                       rng *r) {
    bool is_gated = bsmm_activation_row_of(e.activation)->info.is_gated;
    *x = (fused){.alpha = 0.5f, .beta = 2, .epilogue = e};
    make_small(&x->a, a, rows, K, r);
    make_small(&x->b, b, N, K, r);
    make_small(&x->c, "f16", rows, N, r);
    make_small(&x->residual, "bf16", rows, is_gated ? HALF : N, r);
    for (int i = 0; i < N; i++) {
        x->bias[i] = small(r);
        x->col_scale[i] = small(r);
    }
    for (int i = 0; i < MOST_ROWS; i++)
        x->row_scale[i] = small(r);
    x->epilogue.struct_size = sizeof x->epilogue;
    x->epilogue.residual = &x->residual.m;
    x->epilogue.scale_by = BSMM_SCALE_BY_ROW | BSMM_SCALE_BY_COL;
    x->epilogue.row_scale = x->row_scale;
    x->epilogue.col_scale = x->col_scale;
    x->desc = (bsmm_matmul_desc){.struct_size = sizeof x->desc,
                                 .a = &x->a.m,
                                 .b = &x->b.m,
                                 .c = &x->c.m,
                                 .alpha = &x->alpha,
                                 .beta = &x->beta,
                                 .bias = x->bias,
                                 .bias_elem = BSMM_ELEM_F32,
                                 .device = "cpu",
                                 .epilogue = &x->epilogue};
}

static void fused_free(fused *x) {
    test_matrix *const all[] = {&x->a, &x->b, &x->c, &x->residual};
    for (size_t i = 0; i < BSMM_COUNT(all); i++)
        test_matrix_free(all[i]);
}

static void make_values(fused *x) {
    int64_t rows = x->a.m.rows, cols = x->residual.m.cols;
    double *a = test_matrix_values(&x->a), *b = test_matrix_values(&x->b);
    double *c = test_matrix_values(&x->c), *residual = test_matrix_values(&x->residual);
    double *sums = calloc((size_t)(rows * N), sizeof *sums);
    const bsmm_product_epilogue f = {
        .activation = bsmm_activation_row_of(x->epilogue.activation),
        .limit = x->epilogue.limit > 0 ? (double)x->epilogue.limit : 1e300,
        .slope = x->epilogue.slope != 0 ? (double)x->epilogue.slope : 1,
        .up_offset = (double)x->epilogue.up_offset};
    bool pairs = x->epilogue.halves == BSMM_HALVES_INTERLEAVED;
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < N; n++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += a[m * K + k] * b[n * K + k];
            sums[m * N + n] =
                (double)x->alpha * sum + (double)x->beta * c[m * N + n] + (double)x->bias[n];
        }
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < cols; n++) {
            const double *row = sums + m * N;
            double up = cols == N ? 0 : row[pairs ? 2 * n + 1 : n + HALF];
            double y = bsmm_epilogue_activate(&f, row[pairs ? 2 * n : n], up);
            y = (y + residual[m * cols + n]) * (double)x->row_scale[m] * (double)x->col_scale[n];
            x->values[m * cols + n] = (float)y;
        }
    double *const all[] = {a, b, c, residual, sums};
    for (size_t i = 0; i < BSMM_COUNT(all); i++)
        free(all[i]);
}

static void make_expected(const fused *x, test_matrix *d) {
    bsmm_matrix values = describe(format_named("f32"), d->m.rows, d->m.cols);
    values.data = (void *)(uintptr_t)x->values;
    const bsmm_quantize_desc q = {.struct_size = sizeof q, .src = &values, .dst = &d->m};
    if (bsmm_quantize(&q, NULL) != BSMM_OK) fail_msg("%s", bsmm_error_message());
}

static void poison(test_matrix *d) {
    memset(d->m.data, 0xa5, d->data_bytes);
    if (d->scale_bytes) memset(d->m.scales, 0xa5, d->scale_bytes);
}

static void expect_same(const fused *x, const test_matrix *got, const test_matrix *want) {
    const char *name = bsmm_activation_row_of(x->epilogue.activation)->info.name;
    if (memcmp(got->m.data, want->m.data, got->data_bytes) == 0 &&
        (!got->scale_bytes || memcmp(got->m.scales, want->m.scales, got->scale_bytes) == 0))
        return;
    fail_msg("%s, %s over halves %u -> %s, %lld rows, %u threads: D differs", x->desc.kernel, name,
             x->epilogue.halves, bsmm_format_name(got->m.format), (long long)got->m.rows,
             x->desc.threads);
}

static uint64_t whole_lines(uint64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* Runs the plan with a workspace that ends before an unreadable page. */
static void check_plan(fused *x, test_matrix *d, const test_matrix *want, void *packed,
                       uint64_t packed_bytes) {
    bsmm_plan *plan;
    x->desc.b_packed = packed != NULL;
    assert_int_equal(bsmm_plan_create(&x->desc, &plan), BSMM_OK);
    assert_true(!packed || bsmm_plan_packed_b_bytes(plan) == packed_bytes);
    uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    bsmm_buffers buffers = {.struct_size = sizeof buffers,
                            .a = x->a.m.data,
                            .a_scales = x->a.m.scales,
                            .b = x->b.m.data,
                            .b_scales = x->b.m.scales,
                            .c = x->c.m.data,
                            .d = d->m.data,
                            .d_scales = d->m.scales,
                            .bias = x->bias,
                            .residual = x->residual.m.data,
                            .row_scale = x->row_scale,
                            .col_scale = x->col_scale,
                            .workspace = guarded_alloc(whole_lines(bytes)),
                            .workspace_bytes = bytes,
                            .packed_b = packed,
                            .packed_b_bytes = packed_bytes};
    poison(d);
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    expect_same(x, d, want);
    guarded_free(buffers.workspace, whole_lines(bytes));
    bsmm_plan_destroy(plan);
    x->desc.b_packed = 0;
}

/* Checks a run with a packed B. B is packed by a plan without an epilogue, because the packed bytes
 * do not depend on the epilogue. */
static void check_packed(fused *x, test_matrix *d, const test_matrix *want) {
    bsmm_matmul_desc plain = x->desc;
    bsmm_matrix wide = describe(format_named("f32"), x->a.m.rows, N);
    bsmm_plan *packer;
    plain.d = &wide;
    plain.epilogue = NULL;
    plain.b_packed = 1;
    assert_int_equal(bsmm_plan_create(&plain, &packer), BSMM_OK);
    uint64_t bytes = bsmm_plan_packed_b_bytes(packer);
    void *packed = aligned_alloc(64, whole_lines(bytes));
    const bsmm_buffers b = {.struct_size = sizeof b, .b = x->b.m.data, .b_scales = x->b.m.scales};
    assert_int_equal(bsmm_pack_b(packer, &b, packed, bytes), BSMM_OK);
    check_plan(x, d, want, packed, bytes);
    free(packed);
    bsmm_plan_destroy(packer);
}

enum { MOST_KERNELS = 32 };
/* `has_run` says for each kernel, in the order of bsmm_explain, whether it has computed a
 * product. */
static bool has_run[MOST_KERNELS];

/* Checks the product with each kernel that accepts it. Returns the number of these kernels. */
static int check_kernels(fused *x, const char *format, uint32_t order) {
    test_matrix d, want;
    rng r = {1};
    int ran = 0;
    bsmm_matrix shape = describe(format_named(format), x->a.m.rows, x->residual.m.cols);
    shape.order = order;
    if (order == BSMM_ORDER_COL) shape.ld = shape.rows;
    test_matrix_make(&d, shape, FILL_ORDINARY, &r);
    test_matrix_make(&want, shape, FILL_ORDINARY, &r);
    d.m.global_scale = want.m.global_scale = NULL;
    make_expected(x, &want);
    x->desc.d = &d.m;
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&x->desc, i, &e) == BSMM_OK; i++) {
        if (!e.accepts) continue;
        assert_true(i < MOST_KERNELS);
        has_run[i] = true;
        x->desc.kernel = e.kernel;
        for (x->desc.threads = 1; x->desc.threads <= 3; x->desc.threads += 2) {
            poison(&d);
            if (bsmm_matmul(&x->desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
            expect_same(x, &d, &want);
        }
        check_plan(x, &d, &want, NULL, 0);
        if (e.packed_b_bytes) check_packed(x, &d, &want);
        ran++;
    }
    x->desc.kernel = NULL;
    test_matrix_free(&d);
    test_matrix_free(&want);
    return ran;
}

static const bsmm_epilogue epilogues[] = {
    {.activation = BSMM_ACTIVATION_NONE},
    {.activation = BSMM_ACTIVATION_SILU, .slope = 1.702f},
    {.activation = BSMM_ACTIVATION_SWIGLU, .limit = 7, .up_offset = 1},
    {.activation = BSMM_ACTIVATION_GEGLU_TANH, .halves = BSMM_HALVES_INTERLEAVED},
};

static const struct {
    const char *a, *b;
    int64_t rows;
} operands[] = {
    {"mxfp4", "mxfp4", 1},   {"mxfp4", "mxfp4", 20}, {"mxfp4", "mxfp4", 200},
    {"mxfp8", "mxfp4", 200}, {"bf16", "nvfp4", 20},  {"fp8_group128", "fp8_block128", 70},
    {"f32", "mxfp8", 1},     {"f32", "mxfp8", 70},
};

/* Fails unless every kernel that this processor can run has computed a product. */
static void expect_all_have_run(void) {
    const bsmm_matrix a = describe(format_named("f32"), 1, K), b = describe(a.format, N, K);
    const bsmm_matrix d = describe(a.format, 1, N);
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .device = "cpu"};
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&desc, i, &e) == BSMM_OK; i++)
        if (strcmp(e.device, "cpu") == 0 && !has_run[i] &&
            !strstr(e.reason, "the processor has no"))
            fail_msg("%s took no product", e.kernel);
}

static void test_every_kernel(void **state) {
    (void)state;
    static fused x;
    rng r = {81};
    for (size_t i = 0; i < BSMM_COUNT(operands); i++)
        for (size_t j = 0; j < BSMM_COUNT(epilogues); j++) {
            fused_make(&x, operands[i].a, operands[i].b, operands[i].rows, epilogues[j], &r);
            make_values(&x);
            assert_true(check_kernels(&x, "f32", BSMM_ORDER_ROW) >= 2);
            fused_free(&x);
        }
    expect_all_have_run();
}

/* Copies the rows of B in the order 0, N/2, 1, N/2 + 1 and so on. In `from`, the first half of the
 * rows gives the gates of a gated activation and the second half gives the ups. In `to`, gates and
 * ups alternate. */
static void interleave(const test_matrix *from, test_matrix *to) {
    size_t row = from->data_bytes / N, scales = from->scale_bytes / N;
    for (size_t n = 0; n < N; n++) {
        size_t at = n / 2 + n % 2 * HALF;
        memcpy((uint8_t *)to->m.data + n * row, (uint8_t *)from->m.data + at * row, row);
        memcpy((uint8_t *)to->m.scales + n * scales, (uint8_t *)from->m.scales + at * scales,
               scales);
    }
}

/* Tests a gated activation, f(gate) * up, with scales outside the range of fp32. A kernel then
 * computes the affected results again in double, for which it must find two rows of B: the one that
 * gives the gate and the one that gives the up. The test runs each product twice, with the rows of
 * B in two orders: first all gates and then all ups, or gates and ups alternately. Both runs must
 * give the same bits of D. */
static void check_extreme(const char *a_format, const char *b_format, int64_t rows) {
    test_matrix a, b, permuted, d;
    rng r = {84};
    test_matrix_make(&a, describe(format_named(a_format), rows, K), FILL_EXTREME, &r);
    test_matrix_make(&b, describe(format_named(b_format), N, K), FILL_EXTREME, &r);
    test_matrix_make(&permuted, b.m, FILL_ORDINARY, &r);
    test_matrix_make(&d, describe(format_named("f32"), rows, HALF), FILL_ORDINARY, &r);
    a.m.global_scale = b.m.global_scale = permuted.m.global_scale = NULL;
    interleave(&b, &permuted);
    uint8_t *split = malloc(d.data_bytes);
    const float tiny = 0x1p-100f;
    bsmm_epilogue e = {.struct_size = sizeof e, .activation = BSMM_ACTIVATION_GEGLU};
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a.m,
                             .d = &d.m,
                             .alpha = &tiny,
                             .device = "cpu",
                             .epilogue = &e};
    bsmm_explanation x = {.struct_size = sizeof x};
    desc.b = &b.m;
    for (uint32_t i = 0; bsmm_explain(&desc, i, &x) == BSMM_OK; i++) {
        if (!x.accepts) continue;
        desc.kernel = x.kernel;
        assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
        memcpy(split, d.m.data, d.data_bytes);
        e.halves = BSMM_HALVES_INTERLEAVED;
        desc.b = &permuted.m;
        assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
        if (memcmp(split, d.m.data, d.data_bytes) != 0) fail_msg("%s: other bits", x.kernel);
        e.halves = BSMM_HALVES_SPLIT;
        desc.b = &b.m;
    }
    free(split);
    test_matrix *const all[] = {&a, &b, &permuted, &d};
    for (size_t i = 0; i < BSMM_COUNT(all); i++)
        test_matrix_free(all[i]);
}

static void test_extreme_scales(void **state) {
    (void)state;
    for (int64_t rows = 7; rows <= 70; rows *= 10) {
        check_extreme("mxfp4", "mxfp4", rows);
        check_extreme("mxfp8", "nvfp4", rows);
        check_extreme("f32", "mxfp8", rows);
    }
}

/* Tests a gated activation with a block-scaled D. D has half as many columns as A x B^T. The scale
 * of a block of D follows from all results of the block, so the cache block that a kernel computes
 * at a time must contain whole scale blocks of D. */
static void test_outputs(void **state) {
    (void)state;
    static const char *const outputs[] = {"mxfp8", "mxfp4", "fp8_group128"};
    static fused x;
    rng r = {82};
    for (size_t j = 0; j < BSMM_COUNT(epilogues); j++) {
        fused_make(&x, "mxfp4", "mxfp4", 150, epilogues[j], &r);
        make_values(&x);
        assert_true(check_kernels(&x, "f32", BSMM_ORDER_COL) >= 2);
        for (size_t i = 0; i < BSMM_COUNT(outputs); i++)
            assert_true(check_kernels(&x, outputs[i], BSMM_ORDER_ROW) >= 1);
        fused_free(&x);
    }
}

/* Tests K = 0. Only C and the bias then contribute to D. */
static void test_no_sums(void **state) {
    (void)state;
    rng r = {83};
    static fused x;
    for (size_t j = 0; j < BSMM_COUNT(epilogues); j++) {
        fused_make(&x, "f32", "f32", 70, epilogues[j], &r);
        memset(x.b.m.data, 0, x.b.data_bytes);
        make_values(&x);
        x.a.m.cols = x.b.m.cols = 0;
        x.a.m.ld = x.b.m.ld = 0;
        x.a.m.data_bytes = x.b.m.data_bytes = 0;
        assert_true(check_kernels(&x, "f32", BSMM_ORDER_ROW) >= 2);
        fused_free(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kernel),
        cmocka_unit_test(test_extreme_scales),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_no_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
