/* Tests that two things do not change the bits of a row of D: how many SMs share a tile of D, each
 * for a part of K, and the scales of other rows. */
#include "cuda.h"
#include "gpu/pack.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLUMNS = 200, K = 4096, WAVE_ROWS = 192, TALLEST = 256 };

/* Returns a number of rows of D for which the kernel splits tiles along K. A pair of SMs computes
 * one tile at a time. A tile has at most TALLEST rows, and all COLUMNS columns of D. With this
 * number of rows, there are 5/3 as many tiles as pairs of SMs. After a wave of tiles for all pairs,
 * only two thirds of the pairs would have a tile, so the kernel divides the K of tiles among all
 * pairs. */
static int64_t rows_to_cut(const bsmm_cuda_device *device) {
    return TALLEST * (device->multiprocessors / 2) * 5 / 3;
}

static bsmm_matmul_desc product(const char *kernel, const test_matrix *a, const test_matrix *b,
                                test_matrix *d) {
    return (bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                              .a = &a->m,
                              .b = &b->m,
                              .d = &d->m,
                              .device = "cuda:0",
                              .kernel = kernel};
}

/* Computes rows [first, first + count) of D by a separate product with the same kernel, and
 * compares them with these rows of the whole product. */
static void check_rows(const bsmm_matmul_desc *all, int64_t first, int64_t count,
                       const uint16_t *want) {
    const bsmm_matrix a = rows_of(all->a, first, count);
    bsmm_matrix d = rows_of(all->d, 0, count);
    bsmm_matmul_desc few = *all;
    few.a = &a;
    few.d = &d;
    assert_int_equal(test_multiply(&few), BSMM_OK);
    assert_memory_equal(d.data, want, (size_t)(count * COLUMNS) * sizeof *want);
}

/* Returns the format with this name. The name "rows" stands for e4m3 with one fp32 scale for each
 * row. */
static bsmm_format format_of(const char *name) {
    const bsmm_format rows = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, K};
    return strcmp(name, "rows") ? format_named(name) : rows;
}

static void check_kernel(const char *kernel, const char *a_name, const char *b_name, rng *r) {
    const bsmm_cuda_device *device = test_cuda_device();
    int64_t rows = rows_to_cut(device);
    test_matrix a, b, d;
    test_matrix_make(&a, describe(format_of(a_name), rows, K), FILL_ORDINARY, r);
    test_matrix_make(&b, describe(format_of(b_name), COLUMNS, K), FILL_ORDINARY, r);
    test_matrix_make(&d, describe(format_named("bf16"), rows, COLUMNS), FILL_ORDINARY, r);
    bsmm_matmul_desc desc = product(kernel, &a, &b, &d);
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    uint16_t *whole = malloc(d.data_bytes);
    memcpy(whole, d.m.data, d.data_bytes);
    /* The rows are computed again in products of at most `wave` rows. Such a product has one tile
     * for each pair of SMs, so all tiles are computed at once, and the kernel does not split any of
     * them along K. The results must have the same bits as in the whole product, whose last tiles
     * are split. */
    int64_t wave = WAVE_ROWS * (device->multiprocessors / 2);
    for (int64_t first = 0; first < rows; first += wave)
        check_rows(&desc, first, bsmm_min_i64(wave, rows - first), whole + first * COLUMNS);
    free(whole);
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&d);
}

static void test_cut_tiles(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"cuda_sm90a_fp8", "fp8_group128", "fp8_block128"},
        {"cuda_sm90a_fp8", "fp8_group128", "fp8_group128"},
        {"cuda_sm90a_fp8", "rows", "rows"},
        {"cuda_sm90a_fold", "mxfp4", "mxfp4"},
        {"cuda_sm90a_bf16", "bf16", "bf16"},
    };
    const bsmm_cuda_device *device = test_cuda_device();
    if (device->capability != 90) skip();
    rng r = {1};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++)
        check_kernel(cases[i][0], cases[i][1], cases[i][2], &r);
}

/* Sets e8m0 block scales that differ by at most 2 binades. Packing then stores one scale for each
 * row instead of one for each 128 elements. */
static void level_scales(test_matrix *m, uint32_t least, rng *r) {
    uint8_t *codes = m->m.scales;
    for (uint64_t i = 0; i < m->scale_bytes; i++)
        codes[i] = (uint8_t)(least + rng_below(r, 3));
}

static void test_uneven_rows(void **state) {
    (void)state;
    enum { ROWS = 200, SHORT_K = 1024, ODD_ROW = 77, BLOCKS = SHORT_K / 32 };
    if (test_cuda_device()->capability != 90) skip();
    static const char *const formats[] = {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3",
                                          "mxfp8_e5m2"};
    rng r = {2};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        bsmm_format format = format_named(formats[i]);
        test_matrix a, b, d;
        test_matrix_make(&a, describe(format, ROWS, SHORT_K), FILL_ORDINARY, &r);
        test_matrix_make(&b, describe(format, COLUMNS, SHORT_K), FILL_ORDINARY, &r);
        test_matrix_make(&d, describe(format_named("f32"), ROWS, COLUMNS), FILL_ORDINARY, &r);
        level_scales(&a, 126, &r);
        level_scales(&b, 126, &r);
        bsmm_matmul_desc desc = product("cuda_sm90a_fold", &a, &b, &d);
        /* With BSMM_COMPUTE_FAST, the library may use FP8 tensor cores for mxfp8 operands. */
        desc.compute = BSMM_COMPUTE_FAST;
        assert_int_equal(test_multiply(&desc), BSMM_OK);
        float *even = malloc(d.data_bytes);
        memcpy(even, d.m.data, d.data_bytes);
        uint8_t *odd = (uint8_t *)a.m.scales + ODD_ROW * BLOCKS;
        /* In row ODD_ROW of A, the block scales of one group of 128 elements become far larger than
         * the row's other block scales, so packing cannot use one scale for the whole row. */
        memset(odd + 20, 140, 4);
        assert_int_equal(test_multiply(&desc), BSMM_OK);
        const float *got = d.m.data;
        for (int64_t row = 0; row < ROWS; row++) {
            int differs = memcmp(got + row * COLUMNS, even + row * COLUMNS, COLUMNS * sizeof *got);
            assert_int_equal(differs != 0, row == ODD_ROW);
        }
        free(even);
        test_matrix_free(&a);
        test_matrix_free(&b);
        test_matrix_free(&d);
    }
}

/* Tests that a row of zeros in A gives results of 0, whatever its scales are. Such a row must not
 * change the bits of the other rows of D. */
static void test_empty_rows(void **state) {
    (void)state;
    enum { ROWS = 70, SHORT_K = 512, EMPTY = 3, PARTLY = 40, BLOCKS = SHORT_K / 32 };
    if (test_cuda_device()->capability != 90) skip();
    static const uint8_t codes[] = {127, 254, 0};
    rng r = {3};
    test_matrix a, b, d;
    test_matrix_make(&a, describe(format_named("mxfp4"), ROWS, SHORT_K), FILL_ORDINARY, &r);
    test_matrix_make(&b, describe(format_named("mxfp4"), COLUMNS, SHORT_K), FILL_ORDINARY, &r);
    test_matrix_make(&d, describe(format_named("f32"), ROWS, COLUMNS), FILL_ORDINARY, &r);
    level_scales(&a, 126, &r);
    level_scales(&b, 134, &r);
    memset((uint8_t *)a.m.data + EMPTY * (SHORT_K / 2), 0, SHORT_K / 2);
    memset((uint8_t *)a.m.data + PARTLY * (SHORT_K / 2), 0, BSMM_PACK_GROUP / 2);
    bsmm_matmul_desc desc = product("cuda_sm90a_fold", &a, &b, &d);
    float *first = malloc(d.data_bytes);
    for (size_t i = 0; i < 2 * BSMM_COUNT(codes); i++) {
        uint8_t *scales = a.m.scales;
        memset(scales + EMPTY * BLOCKS, codes[i / 2], BLOCKS);
        memset(scales + PARTLY * BLOCKS, codes[i / 2], 4);
        /* In every second pass of this loop, the scales of row 20 of A vary along K. The results of
         * all other rows must keep their bits. */
        memset(scales + 20 * BLOCKS, i % 2 ? 150 : 127, 4);
        assert_int_equal(test_multiply(&desc), BSMM_OK);
        const float *got = d.m.data;
        for (int64_t j = 0; j < COLUMNS; j++)
            assert_true(got[EMPTY * COLUMNS + j] == 0);
        if (i == 0) memcpy(first, got, d.data_bytes);
        for (int64_t row = 0; row < ROWS; row++)
            if (row != 20)
                assert_memory_equal(got + row * COLUMNS, first + row * COLUMNS,
                                    COLUMNS * sizeof *got);
    }
    free(first);
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&d);
}

static test_matrix make(const char *format, int64_t rows, int64_t cols, rng *r) {
    test_matrix t;
    test_matrix_make(&t, describe(format_named(format), rows, cols), FILL_ORDINARY, r);
    return t;
}

/* Tests rows of A that the kernel must compute again in double, because products of their scales
 * and the scales of B leave fp32's range. The kernel has already stored wrong results in these rows
 * of D when it computes them again. If C and D are the same memory, it must nevertheless add the
 * original C. */
static void test_rows_made_again(void **state) {
    (void)state;
    enum { ROWS = 70, SHORT_K = 256, SMALL = 5, BLOCKS = SHORT_K / 128 };
    if (test_cuda_device()->capability != 90) skip();
    static const float one = 1;
    rng r = {4};
    test_matrix a = make("fp8_group128", ROWS, SHORT_K, &r);
    test_matrix b = make("fp8_block128", COLUMNS, SHORT_K, &r);
    test_matrix c = make("f32", ROWS, COLUMNS, &r), d = make("f32", ROWS, COLUMNS, &r);
    float *scales[] = {a.m.scales, b.m.scales}, *beside = c.m.data, *in_place = d.m.data;
    for (uint64_t i = 0; i < a.scale_bytes / sizeof(float); i++)
        scales[0][i] = i / BLOCKS == SMALL ? 0x1p-60f : 1;
    for (uint64_t i = 0; i < b.scale_bytes / sizeof(float); i++)
        scales[1][i] = 0x1p-60f;
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        beside[i] = in_place[i] = i / COLUMNS == SMALL ? 0x1p-110f : 0x1p-50f;
    bsmm_matmul_desc desc = product("cuda_sm90a_fp8", &a, &b, &d);
    desc.c = &d.m;
    desc.beta = &one;
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    float *want = malloc(d.data_bytes);
    memcpy(want, in_place, d.data_bytes);
    desc.c = &c.m;
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    assert_memory_equal(in_place, want, d.data_bytes);
    assert_true(want[SMALL * COLUMNS] != 0x1p-110f);
    free(want);
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&c);
    test_matrix_free(&d);
}

/* Tests one row of A and a B with 128 x 128 scale blocks. In the first 128 columns of D, the
 * product of the row's scale and B's scale is too small for fp32 sums. In the other columns it is
 * not. The kernel must compute only the first 128 results of this row again in double. The bits of
 * all other results of the tile must not change. */
static void test_blocks_made_again(void **state) {
    (void)state;
    enum { ROWS = 70, SHORT_K = 256, SMALL = 5, LESS = 9, BLOCK = 128, REST = COLUMNS - BLOCK };
    if (test_cuda_device()->capability != 90) skip();
    rng r = {5};
    test_matrix a = make("fp8_group128", ROWS, SHORT_K, &r);
    test_matrix b = make("fp8_block128", COLUMNS, SHORT_K, &r);
    test_matrix d = make("f32", ROWS, COLUMNS, &r), rest = make("f32", ROWS, REST, &r);
    float *scales[] = {a.m.scales, b.m.scales};
    for (int i = 0; i < 2 * ROWS; i++)
        scales[0][i] = i / 2 == SMALL ? 0x1p-60f : i / 2 == LESS ? -3 : 3;
    for (int i = 0; i < 4; i++)
        scales[1][i] = i / 2 == 0 ? 0x1p-60f : 1;
    memcpy((uint8_t *)a.m.data + (LESS + 1) * SHORT_K, (uint8_t *)a.m.data + LESS * SHORT_K,
           SHORT_K);
    bsmm_matmul_desc desc = product("cuda_sm90a_fp8", &a, &b, &d);
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    bsmm_matrix second = rows_of(&b.m, BLOCK, REST);
    desc.b = &second;
    desc.d = &rest.m;
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    const float *all = d.m.data, *alone = rest.m.data;
    for (int row = 0; row < ROWS; row++)
        assert_memory_equal(all + row * COLUMNS + BLOCK, alone + row * REST, REST * sizeof *all);
    for (int col = 0; col < COLUMNS; col++)
        assert_true(all[LESS * COLUMNS + col] == -all[(LESS + 1) * COLUMNS + col]);
    assert_true(all[SMALL * COLUMNS] != 0);
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&d);
    test_matrix_free(&rest);
}

int main(void) {
    /* With BSMM_TEST_EXACT each buffer has its own allocation. Without it, all buffers share a
     * single allocation, which is too small for the buffers of this test. */
    setenv("BSMM_TEST_EXACT", "1", 1);
    /* The library would split K of all tiles (split-K) for products with few tiles, which changes
     * the bits of results. The test therefore sets the number of parts of K to 1. */
    setenv("BSMM_TEST_SPLITS", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_tiles), cmocka_unit_test(test_uneven_rows),
        cmocka_unit_test(test_empty_rows), cmocka_unit_test(test_rows_made_again),
        cmocka_unit_test(test_blocks_made_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
