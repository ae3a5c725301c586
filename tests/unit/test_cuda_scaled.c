/* Tests the kernels for block-scaled products on Blackwell (cuda_sm100f_scaled,
 * cuda_sm100f_scaled_small_m, cuda_sm120f_scaled and cuda_sm100f_fp8) and the kernel for bf16 and
 * f16 (cuda_sm100f_wide). The sizes of the products are such that the kernels take different code
 * paths. Every result is compared with a sum in double. The test is skipped unless the device is a
 * real or simulated Blackwell GPU. */
#include "cuda.h"
#include "gpu.h"
#include "operand.h"
#include "scaled_cases.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Lists the kernels under test, each with the major compute capability of its devices. */
static const struct {
    const char *kernel, *simulated;
    int major;
} kernels[] = {{"cuda_sm100f_scaled", "sim:sm_100", 10}, {"cuda_sm120f_scaled", "sim:sm_120", 12}};

/* The tests run the kernel `kernel` on the device `device`. */
static const char *device, *kernel;

static bool runs_on(size_t i, const char *name) {
    if (strncmp(name, "sim:", 4) == 0) return strcmp(name, kernels[i].simulated) == 0;
    return strncmp(name, "cuda:", 5) == 0 &&
           test_cuda_device()->capability / 10 == kernels[i].major;
}

/* Skips the test if there is no device for any of the kernels. */
static void need_device(void) {
    for (uint32_t i = 0; (device = test_gpu_at(i)); i++)
        for (size_t k = 0; k < BSMM_COUNT(kernels); k++)
            if (runs_on(k, device)) {
                kernel = kernels[k].kernel;
                return;
            }
    skip();
}

typedef struct operands {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
} operands;

/* There is no preset fp8_group128_e5m2, so the test makes this format itself. */
static bsmm_format named(const char *name) {
    return strcmp(name, "fp8_group128_e5m2") == 0
               ? (bsmm_format){BSMM_ELEM_E5M2, BSMM_SCALE_F32, 1, 128}
               : format_named(name);
}

static bsmm_matrix shape_of(const scaled_case *c, const char *format, int64_t rows) {
    bsmm_matrix m = describe(named(format), rows, c->k);
    const int64_t group = bsmm_elem_group(m.format.elem);
    if (m.format.scale != BSMM_SCALE_NONE) m.scale_layout = c->layout;
    m.ld = bsmm_round_up(c->k + c->more_cols, group);
    return m;
}

static uint8_t *scale_at(const bsmm_scale_map *map, uint8_t *scales, int64_t row, int64_t col) {
    return scales + bsmm_scale_map_at(map, row, col);
}

/* Fills the padding of the scales with 0xff, which is NaN for both types of scales. */
static void poison_padding(test_matrix *t) {
    bsmm_scale_map map;
    assert_int_equal(bsmm_scale_map_make(&t->m, "t", &map), BSMM_OK);
    uint8_t *stored = malloc(t->scale_bytes);
    memcpy(stored, t->m.scales, t->scale_bytes);
    memset(t->m.scales, 0xff, t->scale_bytes);
    for (int64_t row = 0; row < map.rows; row++)
        for (int64_t col = 0; col < map.cols; col++)
            *scale_at(&map, t->m.scales, row, col) = *scale_at(&map, stored, row, col);
    free(stored);
}

static void make_side(test_matrix *t, const scaled_case *c, const char *format, int64_t rows,
                      rng *r) {
    test_matrix_make(t, shape_of(c, format, rows), c->how, r);
    const uint32_t scale = t->m.format.scale;
    if (scale == BSMM_SCALE_E8M0 || scale == BSMM_SCALE_E4M3) poison_padding(t);
}

static void make(operands *o, const scaled_case *c, rng *r) {
    make_side(&o->a, c, c->a, c->m, r);
    make_side(&o->b, c, c->b, c->n, r);
    test_matrix_make(&o->d, describe(format_named(c->d), c->m, c->n), FILL_ORDINARY, r);
    o->desc = (bsmm_matmul_desc){.struct_size = sizeof o->desc,
                                 .a = &o->a.m,
                                 .b = &o->b.m,
                                 .d = &o->d.m,
                                 .device = device,
                                 .kernel = kernel};
}

static void release(operands *o) {
    test_matrix_free(&o->a);
    test_matrix_free(&o->b);
    test_matrix_free(&o->d);
}

static void multiply(operands *o) {
    memset(o->d.m.data, 0xa5, o->d.data_bytes);
    if (test_multiply(&o->desc)) fail_msg("%s", bsmm_error_message());
}

static bsmm_explanation explain(const operands *o) {
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&o->desc, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, kernel) == 0) return e;
    fail_msg("there is no kernel %s", kernel);
    return e;
}

/* Returns the documented error bound of the kernel under test, as a multiple of sum |a||b|. */
static double bound_of(const operands *o) {
    const bsmm_explanation e = explain(o);
    if (!e.accepts) fail_msg("%s refuses: %s", kernel, e.reason);
    return e.bound;
}

/* Rounds a value to D's format. If the format has 8 bits, values beyond its range become its
 * largest value. */
static double rounded(uint32_t elem, double value) {
    return bsmm_elem_decode(elem, bsmm_elem_encode(elem, value, bsmm_elem_row(elem)->bits == 8));
}

static void check_result(const scaled_case *c, const operands *o, int64_t i, double sum,
                         double error) {
    const uint32_t elem = o->d.m.format.elem, code = bsmm_elem_load(elem, o->d.m.data, (uint64_t)i);
    const double got = bsmm_elem_decode(elem, code), low = rounded(elem, sum - error),
                 high = rounded(elem, sum + error);
    if (isnan(sum) ? isnan(got) : got >= low && got <= high) return;
    fail_msg("%s x %s, %lld x %lld x %lld: D(%lld, %lld) is %a, must be %a to %a", c->a, c->b,
             (long long)c->m, (long long)c->n, (long long)c->k, (long long)(i / c->n),
             (long long)(i % c->n), got, low, high);
}

static void check_results(const scaled_case *c, const operands *o) {
    const double bound = bound_of(o), alpha = o->desc.alpha ? (double)*o->desc.alpha : 1;
    double *a = test_matrix_values(&o->a), *b = test_matrix_values(&o->b);
    for (int64_t i = 0; i < c->m * c->n; i++) {
        const double *row = a + i / c->n * c->k, *col = b + i % c->n * c->k;
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < c->k; k++) {
            sum += row[k] * col[k];
            magnitude += fabs(row[k] * col[k]);
        }
        check_result(c, o, i, alpha * sum, isinf(magnitude) ? 0 : bound * alpha * magnitude);
    }
    free(a);
    free(b);
}

static void check_cases(const scaled_case *c, size_t count) {
    rng r = {5};
    for (size_t i = 0; i < count; i++) {
        operands o;
        make(&o, &c[i], &r);
        multiply(&o);
        check_results(&c[i], &o);
        release(&o);
    }
}

static void test_cases(void **state) {
    (void)state;
    need_device();
    check_cases(cases, BSMM_COUNT(cases));
}

/* Selects a kernel for sm_100. Skips the test if the device is not sm_100. */
static void use_sm100_kernel(const char *name) {
    need_device();
    if (strcmp(kernel, "cuda_sm100f_scaled") != 0) skip();
    kernel = name;
}

static void test_small_m_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    check_cases(small_m_cases, BSMM_COUNT(small_m_cases));
}

static void test_fp8_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_fp8");
    check_cases(fp8_cases, BSMM_COUNT(fp8_cases));
}

static void test_wide_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide");
    check_cases(wide_cases, BSMM_COUNT(wide_cases));
}

static void test_wide_groups_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide_groups");
    check_cases(wide_groups_cases, BSMM_COUNT(wide_groups_cases));
}

/* Tests negative e4m3 scales. The instructions tcgen05.mma and mma.sync ignore the sign of a scale,
 * so the kernels must find negative scales themselves. */
static void check_negative_scales(const scaled_case *c, size_t count) {
    rng r = {31};
    for (size_t i = 0; i < 2 * count; i++) {
        operands o;
        bsmm_scale_map map;
        make(&o, &c[i / 2], &r);
        test_matrix *t = i % 2 ? &o.b : &o.a;
        assert_int_equal(bsmm_scale_map_make(&t->m, "t", &map), BSMM_OK);
        *scale_at(&map, t->m.scales, map.rows - 1, map.cols - 1) ^= 0x80;
        multiply(&o);
        check_results(&c[i / 2], &o);
        release(&o);
    }
}

static void test_negative_scales(void **state) {
    static const scaled_case some[] = {
        {"nvfp4", "nvfp4", "f32", 140, 400, 160, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
        {"nvfp4", "nvfp4", "f32", 129, 570, 16, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}};
    (void)state;
    need_device();
    check_negative_scales(some, BSMM_COUNT(some));
}

/* In the first product, several thread blocks split K, and only one of them reads the negative
 * scale. */
static void test_small_m_negative_scales(void **state) {
    static const scaled_case some[] = {
        {"nvfp4", "nvfp4", "f32", 6, 130, 640, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
        {"nvfp4", "nvfp4", "bf16", 3, 1000, 48, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}};
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    check_negative_scales(some, BSMM_COUNT(some));
}

/* Tests products that are too small for fp32, so that the accumulators become 0. A large alpha
 * makes the results visible. One row of A and one row of B are 0. */
static void check_underflow(int64_t depth) {
    const scaled_case c = {
        "mxfp8", "mxfp8", "f32", 34, 40, depth, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0};
    static const float alpha = 0x1p127f;
    enum { SMALL = 127 - 100, ZERO_ROW = 33 };
    rng r = {37};
    operands o;
    make(&o, &c, &r);
    memset(o.a.m.scales, SMALL, o.a.scale_bytes);
    memset(o.b.m.scales, SMALL, o.b.scale_bytes);
    memset((uint8_t *)o.a.m.data + ZERO_ROW * c.k, 0, (size_t)c.k);
    memset((uint8_t *)o.b.m.data + ZERO_ROW * c.k, 0, (size_t)c.k);
    o.desc.alpha = &alpha;
    multiply(&o);
    check_results(&c, &o);
    release(&o);
}

static void test_underflow(void **state) {
    (void)state;
    need_device();
    check_underflow(96);
}

static void test_small_m_underflow(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    check_underflow(96);
    check_underflow(400);
}

enum { ROWS = 140, COLS = 205, DEPTH = 480 };

static void make_product(operands *o, const char *format, int64_t rows, rng *r) {
    const scaled_case c = {.a = format,
                           .b = format,
                           .d = "f32",
                           .m = rows,
                           .n = COLS,
                           .k = DEPTH,
                           .layout = BSMM_LAYOUT_ROW_MAJOR};
    make(o, &c, r);
}

static void *copy_of(const void *from, size_t bytes) {
    void *copy = malloc(bytes);
    memcpy(copy, from, bytes);
    return copy;
}

static void test_column_order_is_refused(void **state) {
    (void)state;
    need_device();
    rng r = {18};
    operands o;
    make_product(&o, "mxfp8", ROWS, &r);
    bsmm_matrix *const sides[] = {&o.a.m, &o.b.m};
    assert_true(explain(&o).accepts);
    for (int i = 0; i < 2; i++) {
        const bsmm_matrix stored = *sides[i];
        sides[i]->order = BSMM_ORDER_COL;
        sides[i]->ld = stored.rows;
        assert_false(explain(&o).accepts);
        assert_string_equal(explain(&o).reason,
                            i ? "B is ORDER_COL; the kernel takes only ORDER_ROW"
                              : "A is ORDER_COL; the kernel takes only ORDER_ROW");
        *sides[i] = stored;
    }
    release(&o);
}

/* Tests that a second run of a product gives bitwise identical results. Tests also that a product
 * with only some of the rows of A gives bitwise identical results for these rows. */
static void check_same_bits(const char *const *formats, size_t count) {
    enum { FIRST = 5, COUNT = 7 };
    rng r = {17};
    for (size_t i = 0; i < count; i++) {
        operands o;
        make_product(&o, formats[i], ROWS, &r);
        multiply(&o);
        float *before = copy_of(o.d.m.data, o.d.data_bytes);
        multiply(&o);
        assert_memory_equal(o.d.m.data, before, o.d.data_bytes);
        bsmm_matrix rows = rows_of(&o.a.m, FIRST, COUNT), some = rows_of(&o.d.m, FIRST, COUNT);
        o.desc.a = &rows, o.desc.d = &some;
        multiply(&o);
        assert_memory_equal((float *)o.d.m.data + FIRST * COLS, before + FIRST * COLS,
                            COUNT * COLS * sizeof(float));
        free(before);
        release(&o);
    }
}

static void test_same_bits(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp4", "nvfp4"};
    (void)state;
    need_device();
    check_same_bits(formats, BSMM_COUNT(formats));
}

static void test_wide_same_bits(void **state) {
    static const char *const formats[] = {"bf16", "f16"};
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide");
    check_same_bits(formats, BSMM_COUNT(formats));
}

/* Tests products of bf16 that are too small for fp32, so that the accumulators become 0. The kernel
 * must compute these results again in double. */
static void test_wide_underflow(void **state) {
    static const scaled_case c = {
        "bf16", "bf16", "f32", 34, 40, 96, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0};
    static const float alpha = 0x1p127f;
    enum { ZERO_ROW = 33, TINY = 27 << 7 };
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide");
    rng r = {43};
    operands o;
    make(&o, &c, &r);
    test_matrix *const sides[] = {&o.a, &o.b};
    for (int i = 0; i < 2; i++) {
        uint16_t *codes = sides[i]->m.data;
        for (size_t k = 0; k < sides[i]->data_bytes / 2; k++)
            codes[k] = (uint16_t)((codes[k] & 0x807f) | TINY);
        memset(codes + ZERO_ROW * c.k, 0, (size_t)c.k * 2);
    }
    o.desc.alpha = &alpha;
    multiply(&o);
    check_results(&c, &o);
    release(&o);
}

/* Tests a batch-invariant product with few rows of A. Its rows must have the bits that they have in
 * a product with many rows, which another kernel computes. */
static void test_small_m_same_bits(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp4", "nvfp4"};
    static const int64_t counts[] = {1, 20, 64};
    enum { FIRST = 5 };
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    rng r = {41};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        operands o;
        make_product(&o, formats[i], ROWS, &r);
        o.desc.kernel = "cuda_sm100f_scaled";
        o.desc.flags = BSMM_MATMUL_BATCH_INVARIANT;
        multiply(&o);
        float *before = copy_of(o.d.m.data, o.d.data_bytes);
        o.desc.kernel = kernel;
        for (size_t k = 0; k < BSMM_COUNT(counts); k++) {
            bsmm_matrix rows = rows_of(&o.a.m, FIRST, counts[k]),
                        some = rows_of(&o.d.m, FIRST, counts[k]);
            o.desc.a = &rows, o.desc.d = &some;
            multiply(&o);
            assert_memory_equal((float *)o.d.m.data + FIRST * COLS, before + FIRST * COLS,
                                (size_t)counts[k] * COLS * sizeof(float));
        }
        free(before);
        release(&o);
    }
}

static double element(const bsmm_matrix *m, int64_t row, int64_t col) {
    const int64_t at = m->order == BSMM_ORDER_ROW ? row * m->ld + col : col * m->ld + row;
    return bsmm_elem_decode(m->format.elem, bsmm_elem_load(m->format.elem, m->data, (uint64_t)at));
}

/* Compares D of a product with alpha, beta, C and bias with D of the same product without them. The
 * accumulators are equal, so the first D must be the formula applied to them, rounded once. D may
 * have any type and order. */
static void check_epilogue(operands *o, const char *format, uint32_t order, rng *r) {
    const int64_t rows = o->d.m.rows;
    static const float alpha = -1.5f, beta = 0.75f;
    test_matrix c, d;
    float bias[COLS];
    bsmm_matrix shape = describe(format_named(format), rows, COLS);
    shape.order = order, shape.ld = order == BSMM_ORDER_ROW ? COLS + 3 : rows + 4;
    test_matrix_make(&d, shape, FILL_ORDINARY, r);
    test_matrix_make(&c, describe(format_named("bf16"), rows, COLS), FILL_ORDINARY, r);
    c.m.ld = COLS;
    for (int i = 0; i < COLS; i++)
        bias[i] = (float)i * 0.25f - 7;
    multiply(o);
    bsmm_matmul_desc desc = o->desc;
    desc.d = &d.m, desc.c = &c.m, desc.alpha = &alpha, desc.beta = &beta;
    desc.bias = bias, desc.bias_elem = BSMM_ELEM_F32;
    if (test_multiply(&desc)) fail_msg("%s", bsmm_error_message());
    for (int64_t i = 0; i < rows * COLS; i++) {
        const int64_t row = i / COLS, col = i % COLS;
        const double sum = (double)((const float *)o->d.m.data)[i],
                     want = (double)alpha * sum + (double)beta * element(&c.m, row, col) +
                            (double)bias[col];
        assert_true(element(&d.m, row, col) == rounded(d.m.format.elem, want));
    }
    test_matrix_free(&c);
    test_matrix_free(&d);
}

static void check_epilogues(const char *format, int64_t rows) {
    static const char *const results[] = {"f32", "bf16", "f16", "e5m2"};
    rng r = {23};
    operands o;
    make_product(&o, format, rows, &r);
    for (size_t i = 0; i < BSMM_COUNT(results); i++) {
        check_epilogue(&o, results[i], BSMM_ORDER_ROW, &r);
        check_epilogue(&o, results[i], BSMM_ORDER_COL, &r);
    }
    release(&o);
}

static void test_epilogue(void **state) {
    (void)state;
    need_device();
    check_epilogues("mxfp8", ROWS);
}

static void test_small_m_epilogue(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    check_epilogues("mxfp8", 19);
}

static void test_wide_epilogue(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide");
    check_epilogues("bf16", 19);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_small_m_cases),
        cmocka_unit_test(test_fp8_cases),
        cmocka_unit_test(test_wide_cases),
        cmocka_unit_test(test_wide_groups_cases),
        cmocka_unit_test(test_wide_underflow),
        cmocka_unit_test(test_wide_same_bits),
        cmocka_unit_test(test_wide_epilogue),
        cmocka_unit_test(test_negative_scales),
        cmocka_unit_test(test_small_m_negative_scales),
        cmocka_unit_test(test_underflow),
        cmocka_unit_test(test_small_m_underflow),
        cmocka_unit_test(test_column_order_is_refused),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_small_m_same_bits),
        cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_small_m_epilogue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
