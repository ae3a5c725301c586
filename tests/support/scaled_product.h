/* The tests of the kernels for block-scaled products on Blackwell share these functions. They make
 * operands, multiply them by one kernel, and compare every result with a sum in double. */
#ifndef BSMM_TEST_SCALED_PRODUCT_H
#define BSMM_TEST_SCALED_PRODUCT_H

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

/* Lists the kernels under test. Each row also has the name of a simulated device and the major
 * compute capability of the real devices that run the kernel. */
static const struct {
    const char *kernel, *simulated;
    int major;
} kernels[] = {{"cuda_sm100f_scaled", "sim:sm_100", 10}, {"cuda_sm120f_scaled", "sim:sm_120", 12}};

/* The tests run the kernel `kernel` on the device `device`. */
static const char *device, *kernel;

static inline bool runs_on(size_t i, const char *name) {
    if (strncmp(name, "sim:", 4) == 0) return strcmp(name, kernels[i].simulated) == 0;
    return strncmp(name, "cuda:", 5) == 0 &&
           test_cuda_device()->capability / 10 == kernels[i].major;
}

/* Skips the test if there is no device for any of the kernels. */
static inline void need_device(void) {
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
static inline bsmm_format named(const char *name) {
    return strcmp(name, "fp8_group128_e5m2") == 0
               ? (bsmm_format){BSMM_ELEM_E5M2, BSMM_SCALE_F32, 1, 128}
               : format_named(name);
}

static inline bsmm_matrix shape_of(const scaled_case *c, const char *format, int64_t rows) {
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
static inline void poison_padding(test_matrix *t) {
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

static inline void make_side(test_matrix *t, const scaled_case *c, const char *format, int64_t rows,
                             rng *r) {
    test_matrix_make(t, shape_of(c, format, rows), c->how, r);
    const uint32_t scale = t->m.format.scale;
    if (scale == BSMM_SCALE_E8M0 || scale == BSMM_SCALE_E4M3) poison_padding(t);
}

static inline void make(operands *o, const scaled_case *c, rng *r) {
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

static inline void release(operands *o) {
    test_matrix_free(&o->a);
    test_matrix_free(&o->b);
    test_matrix_free(&o->d);
}

static inline void multiply(operands *o) {
    memset(o->d.m.data, 0xa5, o->d.data_bytes);
    if (test_multiply(&o->desc)) fail_msg("%s", bsmm_error_message());
}

static inline bsmm_explanation explain(const operands *o) {
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&o->desc, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, kernel) == 0) return e;
    fail_msg("there is no kernel %s", kernel);
    return e;
}

/* Returns the documented error bound of the kernel under test, as a multiple of sum |a||b|. */
static inline double bound_of(const operands *o) {
    const bsmm_explanation e = explain(o);
    if (!e.accepts) fail_msg("%s refuses: %s", kernel, e.reason);
    return e.bound;
}

/* Rounds a value to D's format. If the format has 8 bits, values beyond its range become its
 * largest value. */
static inline double rounded(uint32_t elem, double value) {
    return bsmm_elem_decode(elem, bsmm_elem_encode(elem, value, bsmm_elem_row(elem)->bits == 8));
}

static inline void check_result(const scaled_case *c, const operands *o, int64_t i, double sum,
                                double error) {
    const uint32_t elem = o->d.m.format.elem, code = bsmm_elem_load(elem, o->d.m.data, (uint64_t)i);
    const double got = bsmm_elem_decode(elem, code), low = rounded(elem, sum - error),
                 high = rounded(elem, sum + error);
    if (isnan(sum) ? isnan(got) : got >= low && got <= high) return;
    fail_msg("%s x %s, %lld x %lld x %lld: D(%lld, %lld) is %a, must be %a to %a", c->a, c->b,
             (long long)c->m, (long long)c->n, (long long)c->k, (long long)(i / c->n),
             (long long)(i % c->n), got, low, high);
}

static inline void check_results(const scaled_case *c, const operands *o) {
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

static inline void check_cases(const scaled_case *c, size_t count) {
    rng r = {5};
    for (size_t i = 0; i < count; i++) {
        operands o;
        make(&o, &c[i], &r);
        multiply(&o);
        check_results(&c[i], &o);
        release(&o);
    }
}

/* Selects a kernel for sm_100. Skips the test if the device is not sm_100. */
static inline void use_sm100_kernel(const char *name) {
    need_device();
    if (strcmp(kernel, "cuda_sm100f_scaled") != 0) skip();
    kernel = name;
}

/* Tests negative e4m3 scales. The instructions tcgen05.mma and mma.sync ignore the sign of a scale,
 * so the kernels must find negative scales themselves. */
static inline void check_negative_scales(const scaled_case *c, size_t count) {
    rng r = {31};
    for (size_t i = 0; i < 4 * count; i++) {
        operands o;
        bsmm_scale_map map;
        make(&o, &c[i / 4], &r);
        test_matrix *t = i % 2 ? &o.b : &o.a;
        assert_int_equal(bsmm_scale_map_make(&t->m, "t", &map), BSMM_OK);
        const bool last = i % 4 < 2;
        const int64_t row = last ? map.rows - 1 : (int64_t)(rng_next(&r) % (uint64_t)map.rows),
                      col = last ? map.cols - 1 : (int64_t)(rng_next(&r) % (uint64_t)map.cols);
        *scale_at(&map, t->m.scales, row, col) ^= 0x80;
        multiply(&o);
        check_results(&c[i / 4], &o);
        release(&o);
    }
}

static inline void *copy_of(const void *from, size_t bytes) {
    void *copy = malloc(bytes);
    memcpy(copy, from, bytes);
    return copy;
}

static inline double element(const bsmm_matrix *m, int64_t row, int64_t col) {
    const int64_t at = m->order == BSMM_ORDER_ROW ? row * m->ld + col : col * m->ld + row;
    return bsmm_elem_decode(m->format.elem, bsmm_elem_load(m->format.elem, m->data, (uint64_t)at));
}

/* Computes a product twice, once with alpha, beta, C and bias, and once without them. The
 * accumulators are the same in both runs, and the second run returns them. Checks that the D of the
 * first run is alpha * accumulator + beta * C + bias, rounded once. D may have any type and order.
 */
static inline void check_epilogue(operands *o, const char *format, uint32_t order, rng *r) {
    const int64_t rows = o->d.m.rows, cols = o->d.m.cols;
    static const float alpha = -1.5f, beta = 0.75f;
    test_matrix c, d;
    float *bias = malloc((size_t)cols * sizeof *bias);
    bsmm_matrix shape = describe(format_named(format), rows, cols);
    shape.order = order, shape.ld = order == BSMM_ORDER_ROW ? cols + 3 : rows + 4;
    test_matrix_make(&d, shape, FILL_ORDINARY, r);
    test_matrix_make(&c, describe(format_named("bf16"), rows, cols), FILL_ORDINARY, r);
    c.m.ld = cols;
    for (int64_t i = 0; i < cols; i++)
        bias[i] = (float)i * 0.25f - 7;
    multiply(o);
    bsmm_matmul_desc desc = o->desc;
    desc.d = &d.m, desc.c = &c.m, desc.alpha = &alpha, desc.beta = &beta;
    desc.bias = bias, desc.bias_elem = BSMM_ELEM_F32;
    if (test_multiply(&desc)) fail_msg("%s", bsmm_error_message());
    for (int64_t i = 0; i < rows * cols; i++) {
        const int64_t row = i / cols, col = i % cols;
        const double sum = (double)((const float *)o->d.m.data)[i],
                     want = (double)alpha * sum + (double)beta * element(&c.m, row, col) +
                            (double)bias[col];
        assert_true(element(&d.m, row, col) == rounded(d.m.format.elem, want));
    }
    test_matrix_free(&c);
    test_matrix_free(&d);
    free(bias);
}

#endif
