/* Tests cuda_sm90a_mixed, the kernel for 9 to several hundred rows of A, which decodes weights
 * while it multiplies. The products are small. They have several tiles, the last of which is
 * incomplete, and an incomplete last step of K (128 elements). checked_run compares the results of
 * every kernel with a product in double. The test is skipped without a GPU. */
#include "checked.h"
#include "cuda.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char name[] = "cuda_sm90a_mixed";

static const char *const weights[] = {"mxfp4",      "nvfp4", "mxfp6_e2m3",
                                      "mxfp6_e3m2", "mxfp8", "fp8_row"};

/* Returns the format of this name. "fp8_row" means e4m3 elements with one fp32 scale for each row
 * of k elements. */
static bsmm_format named(const char *format, int64_t k) {
    if (strcmp(format, "fp8_row") != 0) return format_named(format);
    return (bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, (uint32_t)k};
}

/* Returns the number of parts into which the kernel under test splits K, or 0 if it refuses the
 * product on the GPU. */
static uint32_t parts_of(const bsmm_matmul_desc *desc) {
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    bsmm_matmul_desc on_gpu = *desc;
    on_gpu.device = "cuda:0";
    for (uint32_t i = 0; bsmm_explain(&on_gpu, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, name) == 0) return e.accepts ? e.k_parts : 0;
    return 0;
}

/* Returns true if the kernel under test accepts the product on the GPU. */
static bool accepts(const bsmm_matmul_desc *desc) {
    return parts_of(desc) > 0;
}

static void make(checked_product *p, const char *a, const char *b, const char *d, int64_t m,
                 int64_t n, int64_t k, fill how, rng *r) {
    checked_make(p, describe(named(a, k), m, k), describe(named(b, k), n, k),
                 describe(format_named(d), m, n), how, r);
}

/* Runs the product. The kernel under test must accept it. */
static void run(checked_product *p) {
    if (!accepts(&p->desc)) fail_msg("%s refuses a product", name);
    checked_run(p);
    checked_free(p);
}

static void need_hopper(void) {
    if (test_cuda_device()->capability != 90) skip();
}

/* From now on, the library takes tiles of `columns` columns, and divides K among `splits` thread
 * blocks, and in each of them among `groups` groups of warps. It divides the rows of B among
 * `launches` launches. A 0 allows any number. */
static void divide_launches(uint32_t columns, uint32_t groups, uint32_t splits, uint32_t launches) {
    char text[64];
    snprintf(text, sizeof text, "%u,%u,%u,%u", columns, groups, splits, launches);
    setenv("BSMM_TEST_MIXED", text, 1);
}

static void divide(uint32_t columns, uint32_t groups, uint32_t splits) {
    divide_launches(columns, groups, splits, 0);
}

/* Lists the numbers of columns of the kernels' tiles. Tiles are of the transposed result, so a
 * column belongs to one row of A. */
static const uint32_t all_columns[] = {32, 64, 96, 128, 256};

/* Tests each kernel, except those for fp32 scales along K, which test_divisions runs. The kernel
 * computes the transposed D, so each row of A gives one column of a tile. The fewest rows that the
 * kernel takes are 17 rows of bf16 and 9 rows of f16. */
static void test_formats(void **state) {
    (void)state;
    need_hopper();
    rng r = {81};
    for (size_t c = 0; c < BSMM_COUNT(all_columns); c++)
        for (size_t i = 0; i < BSMM_COUNT(weights); i++) {
            const uint32_t columns = all_columns[c];
            const int64_t rows = columns == 32 ? 17 : columns > 128 ? 259 : 70;
            checked_product p;
            divide(columns, 0, 0);
            make(&p, "bf16", weights[i], "bf16", rows, 270, 544, FILL_ORDINARY, &r);
            run(&p);
            make(&p, "f16", weights[i], "f16", rows / 2 + 1, 77, 928, FILL_ORDINARY, &r);
            run(&p);
        }
    divide(0, 0, 0);
}

/* Tests a long K: each thread block multiplies more steps (128 elements of K) than its ring buffers
 * have stages. */
static void test_long(void **state) {
    (void)state;
    need_hopper();
    rng r = {82};
    for (size_t c = 0; c < BSMM_COUNT(all_columns); c++)
        for (size_t i = 0; i < BSMM_COUNT(weights); i++) {
            const uint32_t columns = all_columns[c];
            checked_product p;
            divide(columns, 1, 1);
            make(&p, (i + c) % 2 ? "f16" : "bf16", weights[i], "f32", 36, 40, 1440, FILL_ORDINARY,
                 &r);
            run(&p);
        }
    divide(0, 0, 0);
}

/* Tests divisions of K among one to eight thread blocks and one or two groups of warps. The thread
 * blocks of a cluster share the work of storing a tile. 3 or 5 thread blocks cannot share its rows
 * of B equally, so they store different numbers of results. */
static void test_divisions(void **state) {
    static const char *const pairs[][2] = {
        {"bf16", "fp8_block128"}, {"f16", "nvfp4"},  {"bf16", "mxfp6_e2m3"},  {"f16", "mxfp8"},
        {"fp8_row", "mxfp4"},     {"bf16", "mxfp8"}, {"f16", "fp8_block128"},
    };
    static const uint32_t splits[] = {1, 2, 3, 4, 5, 8};
    (void)state;
    need_hopper();
    rng r = {91};
    size_t count = 0;
    for (size_t c = 0; c < BSMM_COUNT(all_columns); c++)
        for (uint32_t groups = 1; groups <= (all_columns[c] > 128 ? 1 : 2); groups++)
            for (size_t i = 0; i < BSMM_COUNT(splits); i++, count++) {
                const uint32_t columns = all_columns[c];
                const char *const *pair = pairs[count % BSMM_COUNT(pairs)];
                const bool exists = columns != 128 || strcmp(pair[1], "fp8_block128") != 0;
                const bool special = (count / BSMM_COUNT(splits) + i) % 3 == 2;
                checked_product p;
                divide(columns, groups, splits[i]);
                make(&p, pair[0], exists ? pair[1] : "mxfp8", special ? "f32" : "bf16",
                     (int64_t)columns + 3, 78, 2080, special ? FILL_SPECIAL : FILL_ORDINARY, &r);
                assert_int_equal(parts_of(&p.desc), groups * splits[i]);
                run(&p);
            }
    divide(0, 0, 0);
}

/* Tests products by two launches. The thread blocks of the first one just fill the SMs. The second
 * one computes the remaining columns of D, the last of which are in an incomplete tile. */
static void test_two_launches(void **state) {
    static const char *const pairs[][2] = {{"bf16", "mxfp4"},    {"f16", "mxfp6_e2m3"},
                                           {"fp8_row", "mxfp4"}, {"bf16", "fp8_row"},
                                           {"f16", "nvfp4"},     {"bf16", "fp8_block128"}};
    (void)state;
    need_hopper();
    rng r = {92};
    const int64_t n = (test_cuda_device()->multiprocessors / 2 + 1) * 128 + 77;
    for (size_t c = 0; c < BSMM_COUNT(all_columns); c++)
        for (size_t i = c % 2; i < BSMM_COUNT(pairs); i += 2) {
            const uint32_t columns = all_columns[c];
            const bool exists = columns != 128 || strcmp(pairs[i][1], "fp8_block128") != 0;
            const bool special = (i + c) % 3 == 2;
            checked_product p;
            divide_launches(columns, 0, 0, 2);
            make(&p, pairs[i][0], exists ? pairs[i][1] : "mxfp8", special ? "f32" : "bf16",
                 (int64_t)columns + 3, n, 288, special ? FILL_SPECIAL : FILL_ORDINARY, &r);
            if ((i + c) % 4 == 3) checked_add_c_and_bias(&p, "bf16", &r);
            run(&p);
        }
    divide(0, 0, 0);
}

/* Tests extreme and special values with each kernel: with bf16 the one, and with f16 the other. */
static void test_extreme(void **state) {
    static const fill fills[] = {FILL_EXTREME, FILL_SPECIAL};
    (void)state;
    need_hopper();
    rng r = {83};
    for (size_t c = 0; c < BSMM_COUNT(all_columns); c++)
        for (size_t i = 0; i < BSMM_COUNT(weights); i++) {
            const uint32_t columns = all_columns[c];
            const size_t first = (i + c) % 2;
            checked_product p;
            divide(columns, 0, 0);
            make(&p, "bf16", weights[i], "f32", 36, 36, 288, fills[first], &r);
            run(&p);
            make(&p, "f16", weights[i], "f32", 36, 36, 288, fills[1 - first], &r);
            run(&p);
        }
    divide(0, 0, 0);
}

static void test_narrow_a(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp4", "nvfp4"};
    (void)state;
    need_hopper();
    rng r = {84};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++) {
            checked_product p;
            make(&p, formats[i], "mxfp4", "f32", 66, 40, 256, how, &r);
            run(&p);
        }
}

/* Tests an A in e4m3 with one fp32 scale for each row. The epilogue multiplies results by these
 * scales. */
static void test_scaled_rows_of_a(void **state) {
    static const char *const results[] = {"bf16", "f16", "f32"};
    (void)state;
    need_hopper();
    rng r = {88};
    for (size_t d = 0; d < BSMM_COUNT(results); d++) {
        checked_product p;
        make(&p, "fp8_row", "mxfp4", results[d], 67, 77, 544, FILL_ORDINARY, &r);
        run(&p);
        make(&p, "fp8_row", "mxfp4", results[d], 65, 41, 192, FILL_ORDINARY, &r);
        checked_add_c_and_bias(&p, "bf16", &r);
        run(&p);
        make(&p, "fp8_row", "mxfp4", results[d], 66, 40, 256, FILL_EXTREME, &r);
        run(&p);
        make(&p, "fp8_row", "mxfp4", results[d], 66, 40, 256, FILL_SPECIAL, &r);
        run(&p);
    }
}

/* Tests the general epilogue (alpha, beta, C and bias), also with a D in 8 bits. */
static void test_epilogues(void **state) {
    static const char *const formats[] = {"f32", "f16", "bf16", "e4m3"};
    (void)state;
    need_hopper();
    rng r = {85};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        checked_product p;
        make(&p, "bf16", "nvfp4", formats[i], 65, 41, 192, FILL_ORDINARY, &r);
        checked_add_c_and_bias(&p, "bf16", &r);
        run(&p);
        make(&p, "bf16", "fp8_row", formats[i], 65, 41, 192, FILL_ORDINARY, &r);
        run(&p);
        make(&p, "f16", "fp8_block128", formats[i], 65, 41, 320, FILL_ORDINARY, &r);
        run(&p);
    }
}

/* Tests rows of A and of B in which all elements are zeros. The results must be +0. */
static void test_zeros(void **state) {
    enum { M = 68, N = 44, ZERO_ROW = 5, ZERO_COLUMN = 3 };
    (void)state;
    need_hopper();
    rng r = {86};
    for (size_t i = 0; i < 3 * BSMM_COUNT(weights); i++) {
        static const char *const formats_of_a[] = {"bf16", "f16", "fp8_row"};
        const char *const a_format = formats_of_a[i % 3], *const b_format = weights[i / 3];
        const bool scaled = i % 3 == 2;
        if (scaled && strcmp(b_format, "mxfp4") != 0) continue;
        checked_product p;
        make(&p, a_format, b_format, "f32", M, N, 256, FILL_ORDINARY, &r);
        uint8_t *const a = p.a.m.data, *const b = p.b.m.data;
        const size_t a_row = p.a.data_bytes / M, b_row = p.b.data_bytes / N;
        memset(a + ZERO_ROW * a_row, 0, a_row);
        memset(b + ZERO_COLUMN * b_row, 0, b_row);
        p.desc.device = "cuda:0", p.desc.kernel = name;
        memset(p.d.m.data, 0xa5, p.d.data_bytes);
        assert_int_equal(test_multiply(&p.desc), BSMM_OK);
        const uint32_t *const bits = p.d.m.data;
        for (int64_t row = 0; row < M; row++)
            for (int64_t col = 0; col < N; col++)
                if (row == ZERO_ROW || col == ZERO_COLUMN) assert_int_equal(bits[row * N + col], 0);
        p.desc.device = p.desc.kernel = NULL;
        run(&p);
    }
}

/* Sets block `block` of row `row` of B to zeros. In every format, all bits of a zero can be 0. */
static void clear_block(test_matrix *b, int64_t row, int64_t block) {
    const int64_t block_bytes = (int64_t)b->data_bytes / b->m.rows / (b->m.cols / 32);
    memset((uint8_t *)b->m.data + (row * (b->m.cols / 32) + block) * block_bytes, 0,
           (size_t)block_bytes);
}

/* Gives each row of B e8m0 scales by one of eight patterns, which are selected by the row's number.
 * Several patterns test a limit of the kernel for an f16 A. In each row, f16 can hold weights only
 * if their scales lie in a range of 22 to 30 powers of two, which the kernel chooses by the scales
 * of the row's first blocks. */
static void set_scales(test_matrix *b, rng *r) {
    const int64_t blocks = b->m.cols / 32;
    for (int64_t row = 0; row < b->m.rows; row++) {
        uint8_t *const codes = (uint8_t *)b->m.scales + row * blocks;
        const int64_t odd = rng_below(r, (uint32_t)blocks);
        const uint32_t pattern = (uint32_t)row % 8;
        for (int64_t i = 0; i < blocks; i++) {
            codes[i] = (uint8_t)(110 + rng_below(r, 12));
            /* All scales of the row are near the lower end of e8m0's range, or all are near its
             * upper end. */
            if (pattern == 0)
                codes[i] = (uint8_t)(row % 16 ? rng_below(r, 3) : 254 - rng_below(r, 3));
            /* Some blocks contain only zeros and have the smallest or the largest scale. In pattern
             * 1 these are the blocks of the first half of K, and in pattern 2 they are chosen at
             * random. */
            if ((pattern == 1 && i < blocks / 2) || (pattern == 2 && rng_below(r, 2))) {
                clear_block(b, row, i);
                codes[i] = (uint8_t)(row % 16 < 8 ? 0 : 254);
            }
            /* All blocks but one are zeros. The scale of the nonzero block is far from 1. */
            if (pattern == 3 && i != odd) clear_block(b, row, i);
            if (pattern == 3) codes[i] = (uint8_t)(row % 16 < 8 ? 40 : 200);
            /* The scales of a row lie anywhere between 2^-67 and 2^62. */
            if (pattern == 4) codes[i] = (uint8_t)(60 + rng_below(r, 130));
        }
        /* One nonzero block has a much smaller or larger scale than the other blocks of its row. */
        if (pattern == 5) codes[odd] = (uint8_t)(row % 16 < 8 ? 60 : 160);
        /* A block has only zeros, and its scale is NaN. The results of the row must be NaN too. */
        if (pattern == 6) codes[odd] = 255;
        if (pattern == 6) clear_block(b, row, odd);
    }
}

/* Tests e8m0 scales with values that f16 cannot hold, and scales of blocks of zeros. */
static void test_scales(void **state) {
    static const char *const formats[] = {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8"};
    (void)state;
    need_hopper();
    rng r = {88};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (int64_t k = 96, n = 0; k <= 1440; k += 672, n++) {
            checked_product p;
            divide(all_columns[(i + (size_t)n) % BSMM_COUNT(all_columns)], 0, 0);
            make(&p, "f16", formats[i], k % 64 ? "f16" : "f32", 65, 50, k, FILL_ORDINARY, &r);
            set_scales(&p.b, &r);
            run(&p);
        }
    divide(0, 0, 0);
}

/* Tests a column-major f16 A, for all formats of weights. */
static void test_columns_of_f16(void **state) {
    (void)state;
    need_hopper();
    rng r = {89};
    for (size_t i = 0; i < BSMM_COUNT(weights); i++) {
        checked_product p;
        bsmm_matrix a = describe(format_named("f16"), 66, 288);
        a.order = BSMM_ORDER_COL;
        a.ld = 66;
        checked_make(&p, a, describe(named(weights[i], 288), 40, 288),
                     describe(format_named("f16"), 66, 40), FILL_EXTREME, &r);
        run(&p);
    }
}

static void expect_refused(const char *a, const char *b, int64_t k) {
    rng r = {87};
    checked_product p;
    make(&p, a, b, "f32", 66, 40, k, FILL_ORDINARY, &r);
    if (accepts(&p.desc)) fail_msg("%s accepts %s x %s with K = %d", name, a, b, (int)k);
    checked_free(&p);
}

/* Tests products that cuda_sm90a_mixed refuses. An A of e4m3 without scales is for the FP8 kernels.
 * With an f16 A, cuda_sm90a_mixed reads whole blocks of mxfp8 weights, so K must be a multiple of
 * 32. If the rows of A have scales and nvfp4 weights have a second-level scale, no result would
 * take the fast path of cuda_sm90a_mixed. */
static void test_refusals(void **state) {
    (void)state;
    need_hopper();
    expect_refused("e4m3", "mxfp4", 256);
    expect_refused("f16", "mxfp8", 144);
    expect_refused("fp8_row", "nvfp4", 256);
    rng r = {90};
    checked_product p;
    make(&p, "bf16", "mxfp8", "f32", 66, 40, 144, FILL_ORDINARY, &r);
    run(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_divisions),
        cmocka_unit_test(test_two_launches),
        cmocka_unit_test(test_extreme),
        cmocka_unit_test(test_narrow_a),
        cmocka_unit_test(test_scaled_rows_of_a),
        cmocka_unit_test(test_epilogues),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_columns_of_f16),
        cmocka_unit_test(test_refusals),
    };
    divide(0, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
