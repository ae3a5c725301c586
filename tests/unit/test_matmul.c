/* Compares the results of every kernel, including GPU kernels if there is a GPU, with a product
 * that the test computes in double. The test covers all pairs of formats, many shapes, orders and
 * scale layouts, extreme values, and several numbers of threads (support/checked.h). */
#include "checked.h"
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static format_list formats;

static void run_pair(const char *a, const char *b, const char *d, int64_t m, int64_t n, int64_t k,
                     fill how, rng *r) {
    if (!test_takes_next()) return;
    checked_product p;
    checked_make(&p, describe(format_named(a), m, k), describe(format_named(b), n, k),
                 describe(format_named(d), m, n), how, r);
    checked_run(&p);
    checked_free(&p);
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

/* Tests values of K near the sizes of cache blocks, into which CPU kernels that pack operands
 * divide K. */
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

/* Tests few rows of A with a K that is a multiple of the number of elements that a kernel adds at
 * once. For such a K, the kernels that read B without packing it use their fast path. */
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

/* Tests dot products that are often 0, because elements have few bits and K is short. A large alpha
 * makes sums visible that are too small for fp32. */
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
                checked_product p;
                checked_make(&p, describe(format_named(pairs[i][0]), 9, 96),
                             describe(format_named(pairs[i][1]), 70, 96),
                             describe(format_named("f32"), 9, 70), how, &r);
                p.alpha = alphas[j];
                checked_run(&p);
                checked_free(&p);
            }
}

/* Tests matrices B with fp32 scales and few rows of A. A scale belongs to a row of B, to several
 * rows, to all of B, or to a part of a row. */
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
                if (!test_takes_next()) continue;
                checked_product p;
                const int64_t m = rows[(i + j + how) % BSMM_COUNT(rows)];
                checked_make(&p, describe(a[i], m, K), describe(b[j], N, K),
                             describe(format_named(d[j % 2]), m, N), how, &r);
                checked_run(&p);
                checked_free(&p);
            }
}

/* Tests rows of A that are too long for the shared memory of an SM. */
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
                checked_product p;
                bsmm_matrix d = describe(format_named(outputs[i]), 19, 37);
                d.order = order;
                d.ld = order ? 24 : 40;
                checked_make(&p, describe(format_named("mxfp6_e2m3"), 19, 96),
                             describe(format_named("fp8_group128"), 37, 96), d, FILL_ORDINARY, &r);
                checked_add_c_and_bias(&p, inputs[j], &r);
                checked_run(&p);
                checked_free(&p);
            }
}

static void test_orders_and_leading_dimensions(void **state) {
    (void)state;
    rng r = {4};
    for (size_t i = 0; i < formats.count; i++)
        for (uint32_t orders = 0; orders < 4; orders++) {
            checked_product p;
            bsmm_matrix a = describe(format_named(formats.names[i]), 11, 140);
            bsmm_matrix b = describe(format_named(formats.names[i]), 18, 140);
            a.order = orders & 1;
            b.order = orders >> 1;
            a.ld = a.order ? 16 : 148;
            b.ld = b.order ? 20 : 144;
            checked_make(&p, a, b, describe(format_named("f32"), 11, 18), FILL_EXTREME, &r);
            checked_run(&p);
            checked_free(&p);
        }
}

static void check_scale_layouts(const char *a_name, const char *b_name, int64_t m, int64_t k,
                                rng *r) {
    for (uint32_t layout = 0; layout < BSMM_LAYOUT_COUNT; layout++) {
        checked_product p;
        bsmm_matrix a = describe(format_named(a_name), m, k);
        bsmm_matrix b = describe(format_named(b_name), 135, k);
        a.scale_layout = layout;
        b.scale_layout = BSMM_LAYOUT_COUNT - 1 - layout;
        if (layout == BSMM_LAYOUT_TILE_CONTIGUOUS) a.scale_tile_rows = 16, a.scale_tile_cols = 3;
        if (b.scale_layout == BSMM_LAYOUT_TILE_CONTIGUOUS)
            b.scale_tile_rows = 5, b.scale_tile_cols = 4;
        checked_make(&p, a, b, describe(format_named("f32"), m, 135), FILL_EXTREME, r);
        checked_run(&p);
        checked_free(&p);
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

/* Tests pairs of formats that FP8 tensor cores multiply only with BSMM_COMPUTE_FAST. */
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
            checked_product p;
            checked_make(&p, describe(a[i], 19, 656), describe(b[i], 135, 656),
                         describe(format_named("bf16"), 19, 135), FILL_ORDINARY, &r);
            p.desc.compute = fast;
            checked_run(&p);
            checked_free(&p);
        }
}

/* Tests fp32 scales of more than 128 elements, of whole rows and of the whole matrix. In some
 * products, K is no multiple of 128. */
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
                if (!test_takes_next()) continue;
                checked_product p;
                bsmm_matrix b_matrix = describe(b[j], COLS, LONG);
                if (how == FILL_EXTREME) b_matrix.order = BSMM_ORDER_COL, b_matrix.ld = COLS + 9;
                checked_make(&p, describe(a[i], ROWS, LONG), b_matrix,
                             describe(format_named(how ? "f32" : "bf16"), ROWS, COLS), how, &r);
                checked_run(&p);
                checked_free(&p);
            }
}

static void test_scale_pitch(void **state) {
    (void)state;
    rng r = {6};
    checked_product p;
    bsmm_matrix a = describe(format_named("fp8_group128"), 10, 300);
    a.order = BSMM_ORDER_COL;
    a.scale_layout = BSMM_LAYOUT_COL_MAJOR;
    a.scale_ld = 12;
    bsmm_matrix b = describe(format_named("fp8_block128"), 200, 300);
    b.scale_ld = 8;
    checked_make(&p, a, b, describe(format_named("bf16"), 10, 200), FILL_ORDINARY, &r);
    checked_run(&p);
    checked_free(&p);
}

static void test_global_scales(void **state) {
    (void)state;
    rng r = {7};
    float ga = 0x1.8p-9f, gb = 2688.0f / 5.5f;
    for (uint32_t kind = 0; kind < 2; kind++) {
        checked_product p;
        checked_make(&p, describe(format_named("nvfp4"), 8, 64),
                     describe(format_named("nvfp4"), 9, 64), describe(format_named("f32"), 8, 9),
                     FILL_ORDINARY, &r);
        p.a.m.global_scale = &ga;
        p.b.m.global_scale = &gb;
        p.b.m.global_kind = kind;
        checked_run(&p);
        checked_free(&p);
    }
    /* Here A and D have one scale for the whole tensor. */
    static const char *const outputs[] = {"e4m3", "f32", "f16", "bf16"};
    float gd = 0.25f;
    for (size_t i = 0; i < BSMM_COUNT(outputs); i++) {
        checked_product p;
        checked_make(&p, describe(format_named("e4m3"), 8, 64),
                     describe(format_named("e5m2"), 9, 64),
                     describe(format_named(outputs[i]), 8, 9), FILL_ORDINARY, &r);
        p.a.m.global_scale = &ga;
        p.d.m.global_scale = &gd;
        checked_run(&p);
        checked_free(&p);
    }
}

static void test_odd_blocks(void **state) {
    (void)state;
    static const uint32_t blocks[][2] = {{1, 4}, {1, 48}, {3, 20}, {16, 16}, {64, 256}, {5, 12}};
    rng r = {8};
    for (size_t i = 0; i < BSMM_COUNT(blocks); i++)
        for (uint32_t scale = BSMM_SCALE_E8M0; scale < BSMM_SCALE_COUNT; scale++) {
            bsmm_format f = {BSMM_ELEM_E2M3, scale, blocks[i][0], blocks[i][1]};
            checked_product p;
            checked_make(&p, describe(f, 13, 270), describe(format_named("mxfp8"), 10, 270),
                         describe(format_named("f32"), 13, 10), FILL_EXTREME, &r);
            checked_run(&p);
            checked_free(&p);
        }
}

/* Tests every element format with every scale format, including pairs that no preset has, with few
 * and with many rows. */
static void test_every_element_and_scale(void **state) {
    (void)state;
    static const uint32_t widths[BSMM_SCALE_COUNT] = {
        [BSMM_SCALE_E4M3] = 16, [BSMM_SCALE_F32] = 128};
    rng r = {81};
    for (uint32_t elem = next_elem(BSMM_ELEM_NONE); elem; elem = next_elem(elem))
        for (uint32_t scale = 1; scale < BSMM_SCALE_COUNT; scale++)
            for (int64_t m = 3; m < 30; m += 18) {
                bsmm_format f = {elem, scale, 1, widths[scale] ? widths[scale] : 32};
                checked_product p;
                checked_make(&p, describe(m < 4 ? format_named("mxfp4") : f, m, 256),
                             describe(f, 34, 256), describe(format_named("f32"), m, 34),
                             m < 4 ? FILL_EXTREME : FILL_SPECIAL, &r);
                checked_run(&p);
                checked_free(&p);
            }
}

/* Computes the whole product with several numbers of threads, and products of single rows of A. The
 * results must be bitwise identical to `first`. */
static void check_bits(checked_product *p, float *first) {
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

/* Tests that results are bitwise identical for 1, 2 and 7 threads. Also tests that each of a few
 * rows of D has the same bits if it is computed by a product with this row of A alone. */
static void test_bits_do_not_depend_on_threads_or_m(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"bf16", "mxfp4"},  {"mxfp4", "mxfp4"},
                                           {"nvfp4", "mxfp4"}, {"mxfp8", "mxfp8_e5m2"},
                                           {"f32", "nvfp4"},   {"fp8_group128", "fp8_block128"}};
    rng r = {9};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        checked_product p;
        checked_make(&p, describe(format_named(pairs[i][0]), 130, 300),
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
        checked_free(&p);
    }
}

static void test_c_may_be_d(void **state) {
    (void)state;
    rng r = {10};
    checked_product p;
    checked_make(&p, describe(format_named("mxfp4"), 33, 64),
                 describe(format_named("mxfp4"), 20, 64), describe(format_named("f32"), 33, 20),
                 FILL_ORDINARY, &r);
    checked_add_c_and_bias(&p, "f32", &r);
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    float *apart = malloc(p.d.data_bytes);
    memcpy(apart, p.d.m.data, p.d.data_bytes);
    memcpy(p.d.m.data, p.c.m.data, p.d.data_bytes);
    p.desc.c = &p.d.m;
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    assert_memory_equal(apart, p.d.m.data, p.d.data_bytes);
    free(apart);
    checked_free(&p);
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
