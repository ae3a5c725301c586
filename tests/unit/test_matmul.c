/* Compares the results of every kernel, including GPU kernels if there is a GPU, with a product
 * that the test computes in double. The test covers all pairs of formats, many shapes, orders and
 * scale layouts, extreme values, and several numbers of threads. It fills D with a pattern first,
 * so that missing writes show. */
#include "core/describe.h"
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static format_list formats;

typedef struct product {
    test_matrix a, b, c, d;
    float alpha, beta;
    float *bias; /* Points to N floats in guarded memory. */
    bsmm_matmul_desc desc;
} product;

static void product_make(product *p, bsmm_matrix a, bsmm_matrix b, bsmm_matrix d, fill how,
                         rng *r) {
    *p = (product){.alpha = 1};
    test_matrix_make(&p->a, a, how, r);
    test_matrix_make(&p->b, b, how, r);
    test_matrix_make(&p->d, d, FILL_SPECIAL, r);
    p->desc = (bsmm_matmul_desc){.struct_size = sizeof p->desc,
                                 .a = &p->a.m,
                                 .b = &p->b.m,
                                 .d = &p->d.m,
                                 .alpha = &p->alpha};
}

static void product_add_c_and_bias(product *p, const char *format, rng *r) {
    test_matrix_make(&p->c, describe(format_named(format), p->d.m.rows, p->d.m.cols), FILL_ORDINARY,
                     r);
    p->alpha = -1.5f;
    p->beta = 0.75f;
    p->bias = guarded_alloc((uint64_t)p->d.m.cols * sizeof(float));
    for (int64_t i = 0; i < p->d.m.cols; i++)
        p->bias[i] = (float)rng_below(r, 1000) / 250 - 2;
    p->desc.c = &p->c.m;
    p->desc.beta = &p->beta;
    p->desc.bias = p->bias;
    p->desc.bias_elem = BSMM_ELEM_F32;
}

static void product_free(product *p) {
    if (p->bias) guarded_free(p->bias, (uint64_t)p->d.m.cols * sizeof(float));
    test_matrix_free(&p->a);
    test_matrix_free(&p->b);
    test_matrix_free(&p->c);
    test_matrix_free(&p->d);
}

typedef struct expected {
    /* `value` is the sum of the terms of a result, and `magnitude` is the sum of their magnitudes.
     */
    double value, magnitude;
} expected;

static expected sum_terms(const product *p, const double *a, const double *b, int64_t i,
                          int64_t j) {
    int64_t k = p->a.m.cols;
    expected e = {0, 0};
    for (int64_t q = 0; q < k; q++) {
        double term = a[i * k + q] * b[j * k + q];
        e.value += term;
        e.magnitude += fabs(term);
    }
    e.value *= (double)p->alpha;
    e.magnitude *= fabs((double)p->alpha);
    if (p->desc.c) e.value += (double)p->beta * test_matrix_value(&p->c, i, j);
    if (p->bias) e.value += (double)p->bias[j];
    return e;
}

/* Returns the expected elements of D, row after row. The caller frees them. */
static expected *sum_all(const product *p) {
    double *a = test_matrix_values(&p->a), *b = test_matrix_values(&p->b);
    int64_t rows = p->d.m.rows, cols = p->d.m.cols;
    expected *all = malloc(sizeof *all * (size_t)(rows * cols + 1));
    assert_non_null(all);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            all[i * cols + j] = sum_terms(p, a, b, i, j);
    free(a);
    free(b);
    return all;
}

/* Returns true if a result is correct. It may differ from the expected value by `slack` and by
 * half a unit in the last place of D's format. It may overflow as this format does. */
static bool close_enough(uint32_t elem, double got, double want, double slack) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    bool saturate = bsmm_elem_row(elem)->bits == 8;
    double low = bsmm_elem_decode(elem, bsmm_elem_encode(elem, want - slack, saturate));
    double high = bsmm_elem_decode(elem, bsmm_elem_encode(elem, want + slack, saturate));
    return low <= got && got <= high;
}

/* Checks all elements of D. `bound` is the kernel's error bound as a multiple of sum |a||b|. The
 * tolerance also includes the rounding of the expected sum, which is computed in double. */
static void check(const product *p, const expected *all, const char *kernel, double bound) {
    double *values = test_matrix_values(&p->d);
    double d_global = p->d.m.global_scale ? (double)*p->d.m.global_scale : 1;
    for (int64_t i = 0; i < p->d.m.rows; i++)
        for (int64_t j = 0; j < p->d.m.cols; j++) {
            expected e = all[i * p->d.m.cols + j];
            double got = values[i * p->d.m.cols + j] / d_global;
            double slack = (bound + (double)p->a.m.cols * 0x1p-53) * e.magnitude;
            if (isnan(e.value) || isinf(e.magnitude)) slack = 0;
            if (!close_enough(p->d.m.format.elem, got, e.value / d_global, slack / d_global))
                fail_msg("%s: %s x %s -> %s, %lld x %lld x %lld, at (%lld, %lld): got %a, want %a, "
                         "slack %a",
                         kernel, bsmm_format_name(p->a.m.format), bsmm_format_name(p->b.m.format),
                         bsmm_format_name(p->d.m.format), (long long)p->d.m.rows,
                         (long long)p->d.m.cols, (long long)p->a.m.cols, (long long)i, (long long)j,
                         got, e.value, slack);
        }
    free(values);
}

/* Runs the product by every kernel that accepts it, on every device. The function computes the
 * expected values only once, because that is slow. */
static void check_every_kernel(product *p) {
    expected *all = sum_all(p);
    int ran = 0;
    for (test_walk w = test_walk_begin(&p->desc); test_walk_next(&w); ran++) {
        if (p->d.data_bytes) memset(p->d.m.data, 0xa5, p->d.data_bytes);
        if (test_multiply(&p->desc) != BSMM_OK)
            fail_msg("%s: %s", w.e.kernel, bsmm_error_message());
        check(p, all, w.e.kernel, w.e.bound);
    }
    free(all);
    assert_true(ran >= test_walk_least(1));
}

static void run_pair(const char *a, const char *b, const char *d, int64_t m, int64_t n, int64_t k,
                     fill how, rng *r) {
    product p;
    product_make(&p, describe(format_named(a), m, k), describe(format_named(b), n, k),
                 describe(format_named(d), m, n), how, r);
    check_every_kernel(&p);
    product_free(&p);
}

/* Returns true if the test includes this pair of formats. The environment variable
 * BSMM_TEST_FORMATS="e2m1 mxfp4" restricts the test to pairs with one of the named formats. */
static bool wants_pair(const char *a, const char *b) {
    const char *only = getenv("BSMM_TEST_FORMATS");
    return !only || strstr(only, a) || strstr(only, b);
}

static void test_all_pairs_of_formats(void **state) {
    (void)state;
    rng r = {1};
    for (size_t i = 0; i < formats.count; i++)
        for (size_t j = 0; j < formats.count; j++) {
            if (!wants_pair(formats.names[i], formats.names[j])) continue;
            run_pair(formats.names[i], formats.names[j], "f32", 9, 21, 300, FILL_ORDINARY, &r);
            run_pair(formats.names[i], formats.names[j], "f32", 5, 7, 161, FILL_EXTREME, &r);
            run_pair(formats.names[i], formats.names[j], "f32", 6, 5, 80, FILL_SPECIAL, &r);
        }
}

static void test_shapes(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 17, 130};
    static const int64_t depths[] = {0, 1, 2, 31, 33, 129, 515};
    rng r = {2};
    for (size_t i = 0; i < BSMM_COUNT(sizes); i++)
        for (size_t j = 0; j < BSMM_COUNT(sizes); j++)
            for (size_t q = 0; q < BSMM_COUNT(depths); q++) {
                run_pair("mxfp8", "mxfp4", "f32", sizes[i], sizes[j], depths[q], FILL_EXTREME, &r);
                run_pair("nvfp4", "fp8_block128", "bf16", sizes[i], sizes[j], depths[q],
                         FILL_ORDINARY, &r);
            }
}

/* Tests values of K near the sizes of cache blocks, because CPU kernels that pack operands divide
 * K into cache blocks. */
static void test_chunks(void **state) {
    (void)state;
    static const char *const names[] = {"mxfp4", "nvfp4", "mxfp8", "fp8_group128", "f32"};
    static const int64_t depths[] = {512, 640, 641, 1281, 2050, 2560, 2561, 5121};
    rng r = {13};
    for (size_t i = 0; i < BSMM_COUNT(names); i++)
        for (size_t q = 0; q < BSMM_COUNT(depths); q++)
            run_pair(names[i], names[i], q % 2 ? "f32" : "bf16", 33, 50, depths[q], FILL_ORDINARY,
                     &r);
}

/* Tests few rows of A with values of K that are multiples of the number of elements that a kernel
 * adds at once. For such K, the kernels that read B without packing it use their fast path. */
static void test_few_rows(void **state) {
    (void)state;
    static const char *const a[] = {"bf16", "f16", "mxfp8", "fp8_group128"};
    static const char *const b[] = {"mxfp4",      "nvfp4", "mxfp6_e2m3",
                                    "mxfp6_e3m2", "mxfp8", "fp8_block128"};
    static const int64_t rows[] = {1, 3, 16, 29, 50};
    rng r = {11};
    for (size_t i = 0; i < BSMM_COUNT(a); i++)
        for (size_t j = 0; j < BSMM_COUNT(b); j++)
            for (size_t q = 0; q < BSMM_COUNT(rows); q++) {
                run_pair(a[i], b[j], "f32", rows[q], 70, 256, FILL_EXTREME, &r);
                run_pair(a[i], b[j], "bf16", rows[q], 33, 2048, FILL_ORDINARY, &r);
                run_pair(a[i], b[j], "f32", rows[q], 20, 1152, FILL_SPECIAL, &r);
            }
}

/* Tests dot products that are often 0, because elements have few bits and K is short. A large
 * alpha makes even sums that are too small for fp32 visible. */
static void test_few_rows_with_sums_of_zero(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"mxfp4", "mxfp4"},
                                           {"nvfp4", "nvfp4"},
                                           {"nvfp4", "mxfp4"},
                                           {"mxfp8", "mxfp6_e2m3"},
                                           {"e4m3", "mxfp4"}};
    static const float alphas[] = {1, 0x1p120f};
    rng r = {16};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < BSMM_COUNT(alphas); j++)
            for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++) {
                product p;
                product_make(&p, describe(format_named(pairs[i][0]), 9, 96),
                             describe(format_named(pairs[i][1]), 70, 96),
                             describe(format_named("f32"), 9, 70), how, &r);
                p.alpha = alphas[j];
                check_every_kernel(&p);
                product_free(&p);
            }
}

/* Tests matrices B with fp32 scales and few rows of A. A scale belongs to a row of B, several
 * rows, all of B, or a part of a row. */
static void test_few_rows_of_row_scales(void **state) {
    (void)state;
    enum { N = 70, K = 672 };
    static const bsmm_format a[] = {{BSMM_ELEM_BF16, 0, 0, 0},
                                    {BSMM_ELEM_F16, 0, 0, 0},
                                    {BSMM_ELEM_F32, 0, 0, 0},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 32},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, K},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128}};
    static const bsmm_format b[] = {{BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, K},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 7, K},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, N, K},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 24, 256}};
    static const int64_t rows[] = {1, 29, 3, 10, 16, 50};
    static const char *const d[] = {"f32", "bf16"};
    rng r = {15};
    for (size_t i = 0; i < BSMM_COUNT(a); i++)
        for (size_t j = 0; j < BSMM_COUNT(b); j++)
            for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++) {
                product p;
                const int64_t m = rows[(i + j + how) % BSMM_COUNT(rows)];
                product_make(&p, describe(a[i], m, K), describe(b[j], N, K),
                             describe(format_named(d[j % 2]), m, N), how, &r);
                check_every_kernel(&p);
                product_free(&p);
            }
}

/* Tests rows of A that do not fit in the shared memory of an SM. */
static void test_few_long_rows(void **state) {
    (void)state;
    rng r = {12};
    run_pair("bf16", "mxfp4", "f32", 32, 40, 25600, FILL_ORDINARY, &r);
    run_pair("mxfp8", "mxfp8", "bf16", 29, 20, 22000, FILL_ORDINARY, &r);
    run_pair("fp8_group128", "fp8_block128", "f32", 30, 20, 24704, FILL_ORDINARY, &r);
    run_pair("f16", "nvfp4", "f32", 14, 20, 20480, FILL_EXTREME, &r);
    run_pair("bf16", "mxfp6_e3m2", "f32", 19, 40, 22432, FILL_ORDINARY, &r);
    run_pair("bf16", "fp8_block128", "f32", 7, 20, 82048, FILL_ORDINARY, &r);
    run_pair("bf16", "fp8_group128", "f32", 7, 20, 20608, FILL_ORDINARY, &r);
    run_pair("bf16", "mxfp4", "f32", 61, 40, 25600, FILL_ORDINARY, &r);
    run_pair("bf16", "mxfp8", "f32", 50, 40, 22000, FILL_ORDINARY, &r);
}

static void test_outputs_factors_and_bias(void **state) {
    (void)state;
    static const char *const outputs[] = {"f32", "f16", "bf16", "e4m3", "e5m2", "e4m3fnuz"};
    static const char *const inputs[] = {"f32", "f16", "bf16"};
    rng r = {3};
    for (size_t i = 0; i < BSMM_COUNT(outputs); i++)
        for (size_t j = 0; j < BSMM_COUNT(inputs); j++)
            for (uint32_t order = 0; order < 2; order++) {
                product p;
                bsmm_matrix d = describe(format_named(outputs[i]), 19, 37);
                d.order = order;
                d.ld = order ? 24 : 40;
                product_make(&p, describe(format_named("mxfp6_e2m3"), 19, 96),
                             describe(format_named("fp8_group128"), 37, 96), d, FILL_ORDINARY, &r);
                product_add_c_and_bias(&p, inputs[j], &r);
                check_every_kernel(&p);
                product_free(&p);
            }
}

static void test_orders_and_leading_dimensions(void **state) {
    (void)state;
    rng r = {4};
    for (size_t i = 0; i < formats.count; i++)
        for (uint32_t orders = 0; orders < 4; orders++) {
            product p;
            bsmm_matrix a = describe(format_named(formats.names[i]), 11, 140);
            bsmm_matrix b = describe(format_named(formats.names[i]), 18, 140);
            a.order = orders & 1;
            b.order = orders >> 1;
            a.ld = a.order ? 16 : 148;
            b.ld = b.order ? 20 : 144;
            product_make(&p, a, b, describe(format_named("f32"), 11, 18), FILL_EXTREME, &r);
            check_every_kernel(&p);
            product_free(&p);
        }
}

static void check_scale_layouts(const char *a_name, const char *b_name, int64_t m, int64_t k,
                                rng *r) {
    for (uint32_t layout = 0; layout < BSMM_LAYOUT_COUNT; layout++) {
        product p;
        bsmm_matrix a = describe(format_named(a_name), m, k);
        bsmm_matrix b = describe(format_named(b_name), 135, k);
        a.scale_layout = layout;
        b.scale_layout = BSMM_LAYOUT_COUNT - 1 - layout;
        if (layout == BSMM_LAYOUT_TILE_CONTIGUOUS) a.scale_tile_rows = 16, a.scale_tile_cols = 3;
        if (b.scale_layout == BSMM_LAYOUT_TILE_CONTIGUOUS)
            b.scale_tile_rows = 5, b.scale_tile_cols = 4;
        product_make(&p, a, b, describe(format_named("f32"), m, 135), FILL_EXTREME, r);
        check_every_kernel(&p);
        product_free(&p);
    }
}

static void test_scale_layouts(void **state) {
    (void)state;
    static const char *const scaled[] = {"mxfp4", "nvfp4", "fp8_group128", "fp8_block128"};
    rng r = {5};
    for (size_t i = 0; i < BSMM_COUNT(scaled); i++)
        check_scale_layouts(scaled[i], scaled[i], 41, 650, &r);
}

/* Tests scale layouts of A with few rows, because kernels for few rows have separate code to read
 * scales. */
static void test_scale_layouts_of_few_rows(void **state) {
    (void)state;
    rng r = {51};
    check_scale_layouts("fp8_group128", "fp8_block128", 11, 656, &r);
}

/* Tests formats that FP8 tensor cores multiply only with BSMM_COMPUTE_FAST. */
static void test_fp8_with_any_floats(void **state) {
    static const bsmm_format a[] = {{BSMM_ELEM_E4M3, BSMM_SCALE_NONE, 0, 0},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 656},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 3, 256}};
    static const bsmm_format b[] = {{BSMM_ELEM_E4M3, BSMM_SCALE_F32, 16, 256},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 128, 128},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 48, 656}};
    (void)state;
    rng r = {52};
    for (size_t i = 0; i < BSMM_COUNT(a); i++)
        for (uint32_t fast = 0; fast < 2; fast++) {
            product p;
            product_make(&p, describe(a[i], 19, 656), describe(b[i], 135, 656),
                         describe(format_named("bf16"), 19, 135), FILL_ORDINARY, &r);
            p.desc.compute = fast;
            check_every_kernel(&p);
            product_free(&p);
        }
}

/* Tests scales that hold for more than 128 elements, for whole rows or for the whole matrix. Some
 * values of K are no multiple of 128. */
static void test_floats_of_long_blocks(void **state) {
    enum { ROWS = 70, COLS = 135, LONG = 656, WHOLE = 1 << 20 };
    static const bsmm_format a[] = {
        {BSMM_ELEM_BF16, BSMM_SCALE_NONE, 0, 0},        {BSMM_ELEM_F16, BSMM_SCALE_NONE, 0, 0},
        {BSMM_ELEM_F32, BSMM_SCALE_NONE, 0, 0},         {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, LONG},
        {BSMM_ELEM_E5M2, BSMM_SCALE_F32, WHOLE, WHOLE}, {BSMM_ELEM_E2M1, BSMM_SCALE_E8M0, 1, 32},
        {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16}};
    static const bsmm_format b[] = {{BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, LONG},
                                    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 256},
                                    {BSMM_ELEM_E5M2, BSMM_SCALE_F32, 128, 384},
                                    {BSMM_ELEM_E2M3, BSMM_SCALE_F32, WHOLE, WHOLE},
                                    {BSMM_ELEM_E2M1, BSMM_SCALE_E8M0, 1, 32}};
    (void)state;
    rng r = {53};
    for (size_t i = 0; i < BSMM_COUNT(a); i++)
        for (size_t j = 0; j < BSMM_COUNT(b); j++)
            for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++) {
                product p;
                bsmm_matrix b_matrix = describe(b[j], COLS, LONG);
                if (how == FILL_EXTREME) b_matrix.order = BSMM_ORDER_COL, b_matrix.ld = COLS + 9;
                product_make(&p, describe(a[i], ROWS, LONG), b_matrix,
                             describe(format_named(how ? "f32" : "bf16"), ROWS, COLS), how, &r);
                check_every_kernel(&p);
                product_free(&p);
            }
}

static void test_scale_pitch(void **state) {
    (void)state;
    rng r = {6};
    product p;
    bsmm_matrix a = describe(format_named("fp8_group128"), 10, 300);
    a.order = BSMM_ORDER_COL;
    a.scale_layout = BSMM_LAYOUT_COL_MAJOR;
    a.scale_ld = 12;
    bsmm_matrix b = describe(format_named("fp8_block128"), 200, 300);
    b.scale_ld = 8;
    product_make(&p, a, b, describe(format_named("bf16"), 10, 200), FILL_ORDINARY, &r);
    check_every_kernel(&p);
    product_free(&p);
}

static void test_global_scales(void **state) {
    (void)state;
    rng r = {7};
    float ga = 0x1.8p-9f, gb = 2688.0f / 5.5f;
    for (uint32_t kind = 0; kind < 2; kind++) {
        product p;
        product_make(&p, describe(format_named("nvfp4"), 8, 64),
                     describe(format_named("nvfp4"), 9, 64), describe(format_named("f32"), 8, 9),
                     FILL_ORDINARY, &r);
        p.a.m.global_scale = &ga;
        p.b.m.global_scale = &gb;
        p.b.m.global_kind = kind;
        check_every_kernel(&p);
        product_free(&p);
    }
    /* In this case, A and D have one scale for the whole tensor. */
    static const char *const outputs[] = {"e4m3", "f32", "f16", "bf16"};
    float gd = 0.25f;
    for (size_t i = 0; i < BSMM_COUNT(outputs); i++) {
        product p;
        product_make(&p, describe(format_named("e4m3"), 8, 64),
                     describe(format_named("e5m2"), 9, 64),
                     describe(format_named(outputs[i]), 8, 9), FILL_ORDINARY, &r);
        p.a.m.global_scale = &ga;
        p.d.m.global_scale = &gd;
        check_every_kernel(&p);
        product_free(&p);
    }
}

static void test_odd_blocks(void **state) {
    (void)state;
    static const uint32_t blocks[][2] = {{1, 4}, {1, 48}, {3, 20}, {16, 16}, {64, 256}, {5, 12}};
    rng r = {8};
    for (size_t i = 0; i < BSMM_COUNT(blocks); i++)
        for (uint32_t scale = BSMM_SCALE_E8M0; scale < BSMM_SCALE_COUNT; scale++) {
            bsmm_format f = {BSMM_ELEM_E2M3, scale, blocks[i][0], blocks[i][1]};
            product p;
            product_make(&p, describe(f, 13, 270), describe(format_named("mxfp8"), 10, 270),
                         describe(format_named("f32"), 13, 10), FILL_EXTREME, &r);
            check_every_kernel(&p);
            product_free(&p);
        }
}

/* Tests pairs of an element format and a scale format that no preset has. The products have few
 * and many rows. */
static void test_every_element_and_scale(void **state) {
    (void)state;
    static const uint32_t widths[BSMM_SCALE_COUNT] = {
        [BSMM_SCALE_E4M3] = 16, [BSMM_SCALE_F32] = 128};
    rng r = {81};
    for (uint32_t elem = next_elem(BSMM_ELEM_NONE); elem; elem = next_elem(elem))
        for (uint32_t scale = 1; scale < BSMM_SCALE_COUNT; scale++)
            for (int64_t m = 3; m < 30; m += 18) {
                bsmm_format f = {elem, scale, 1, widths[scale] ? widths[scale] : 32};
                product p;
                product_make(&p, describe(m < 4 ? format_named("mxfp4") : f, m, 256),
                             describe(f, 34, 256), describe(format_named("f32"), m, 34),
                             m < 4 ? FILL_EXTREME : FILL_SPECIAL, &r);
                check_every_kernel(&p);
                product_free(&p);
            }
}

/* Compares the bits of the whole product for several numbers of threads with `first`. Then the
 * function compares the bits of products of single rows of A. */
static void check_bits(product *p, float *first) {
    static const uint32_t threads[] = {1, 2, 7};
    for (size_t t = 0; t < BSMM_COUNT(threads); t++) {
        p->desc.threads = threads[t];
        assert_int_equal(bsmm_matmul(&p->desc), BSMM_OK);
        if (t == 0) memcpy(first, p->d.m.data, p->d.data_bytes);
        assert_memory_equal(first, p->d.m.data, p->d.data_bytes);
    }
    static const int64_t rows[] = {0, 1, 127, 129};
    int64_t n = p->d.m.cols;
    for (size_t q = 0; q < BSMM_COUNT(rows); q++) {
        const bsmm_matrix a = rows_of(&p->a.m, rows[q], 1);
        bsmm_matrix d = rows_of(&p->d.m, 0, 1);
        bsmm_matmul_desc one = p->desc;
        one.a = &a;
        one.d = &d;
        assert_int_equal(bsmm_matmul(&one), BSMM_OK);
        assert_memory_equal(first + rows[q] * n, d.data, (size_t)n * sizeof(float));
    }
}

/* Tests that results are bitwise identical for 1, 2 and 7 threads, and for a product of a single
 * row of A. */
static void test_bits_do_not_depend_on_threads_or_m(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"bf16", "mxfp4"},  {"mxfp4", "mxfp4"},
                                           {"nvfp4", "mxfp4"}, {"mxfp8", "mxfp8_e5m2"},
                                           {"f32", "nvfp4"},   {"fp8_group128", "fp8_block128"}};
    rng r = {9};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        product p;
        product_make(&p, describe(format_named(pairs[i][0]), 130, 300),
                     describe(format_named(pairs[i][1]), 150, 300),
                     describe(format_named("f32"), 130, 150), FILL_EXTREME, &r);
        bsmm_explanation e = {.struct_size = sizeof e};
        float *first = malloc(p.d.data_bytes);
        for (uint32_t q = 0; bsmm_explain(&p.desc, q, &e) == BSMM_OK; q++) {
            if (!e.accepts) continue;
            p.desc.kernel = e.kernel;
            check_bits(&p, first);
            p.desc.kernel = NULL;
        }
        free(first);
        product_free(&p);
    }
}

static void test_c_may_be_d(void **state) {
    (void)state;
    rng r = {10};
    product p;
    product_make(&p, describe(format_named("mxfp4"), 33, 64),
                 describe(format_named("mxfp4"), 20, 64), describe(format_named("f32"), 33, 20),
                 FILL_ORDINARY, &r);
    product_add_c_and_bias(&p, "f32", &r);
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    float *apart = malloc(p.d.data_bytes);
    memcpy(apart, p.d.m.data, p.d.data_bytes);
    memcpy(p.d.m.data, p.c.m.data, p.d.data_bytes);
    p.desc.c = &p.d.m;
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    assert_memory_equal(apart, p.d.m.data, p.d.data_bytes);
    free(apart);
    product_free(&p);
}

int main(void) {
    formats = all_formats();
    if (getenv("BSMM_TEST_FILTER")) cmocka_set_test_filter(getenv("BSMM_TEST_FILTER"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_pairs_of_formats),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_few_rows_with_sums_of_zero),
        cmocka_unit_test(test_few_rows_of_row_scales),
        cmocka_unit_test(test_few_long_rows),
        cmocka_unit_test(test_outputs_factors_and_bias),
        cmocka_unit_test(test_orders_and_leading_dimensions),
        cmocka_unit_test(test_scale_layouts),
        cmocka_unit_test(test_scale_layouts_of_few_rows),
        cmocka_unit_test(test_fp8_with_any_floats),
        cmocka_unit_test(test_floats_of_long_blocks),
        cmocka_unit_test(test_scale_pitch),
        cmocka_unit_test(test_global_scales),
        cmocka_unit_test(test_odd_blocks),
        cmocka_unit_test(test_every_element_and_scale),
        cmocka_unit_test(test_bits_do_not_depend_on_threads_or_m),
        cmocka_unit_test(test_c_may_be_d),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
