/* Tests every tile size of the sm_90a GEMM engine, with a product for which the engine chooses it.
 * A row of D must be bitwise identical with all tile sizes. */
#include "core/describe.h"
#include "cuda.h"
#include "cuda/host/wgmma.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* SHORT_K and LONG_K are values of K with more blocks of 128 elements than the ring buffer of any
 * tile has stages. Their last block is incomplete. BAND is the number of rows of D that are
 * compared with a separate product. */
enum { BAND = 64, SHORT_K = 128 * 13 + 32, LONG_K = 128 * 40 + 32 };

typedef struct tile_case {
    const char *tile, *kernel, *a, *b;
    uint32_t kind;
    uint32_t level; /* If `level` is nonzero, all e8m0 scales lie within 3 binades. */
    int64_t k;
} tile_case;

static const tile_case cases[] = {
    {"gemm_bf16", "cuda_sm90a_bf16", "bf16", "bf16", BSMM_WGMMA_BF16, 0, SHORT_K},
    {"gemm_bf16_128x128", "cuda_sm90a_bf16", "bf16", "bf16", BSMM_WGMMA_BF16, 0, SHORT_K},
    {"gemm_bf16_64x128", "cuda_sm90a_bf16", "bf16", "bf16", BSMM_WGMMA_BF16, 0, LONG_K},
    {"gemm_bf16_64x64", "cuda_sm90a_bf16", "bf16", "bf16", BSMM_WGMMA_BF16, 0, SHORT_K},
    {"gemm_bf16_192x128", "cuda_sm90a_bf16", "bf16", "bf16", BSMM_WGMMA_BF16, 0, SHORT_K},
    {"gemm_f16_192x128", "cuda_sm90a_f16", "f16", "f16", BSMM_WGMMA_BF16, 0, SHORT_K},
    {"gemm_f16_block_128x128", "cuda_sm90a_f16", "f16", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_bf16_block_128x128", "cuda_sm90a_bf16", "bf16", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_f16", "cuda_sm90a_f16", "f16", "mxfp4", BSMM_WGMMA_BF16, 0, SHORT_K},
    {"gemm_f16_128x128", "cuda_sm90a_f16", "f16", "f16", BSMM_WGMMA_BF16, 0, SHORT_K},
    {"gemm_f16_64x128", "cuda_sm90a_f16", "f16", "nvfp4", BSMM_WGMMA_BF16, 0, LONG_K},
    {"gemm_f16_64x64", "cuda_sm90a_f16", "f16", "f16", BSMM_WGMMA_BF16, 0, SHORT_K},
    {"gemm_f16_block", "cuda_sm90a_f16", "f16", "fp8_block128", BSMM_WGMMA_BLOCK, 0, SHORT_K},
    {"gemm_block_192x128", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_block_128x256", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     LONG_K},
    {"gemm_block_192x128_alone", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK,
     0, 256},
    {"gemm_block_128x128", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_block_128x96", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_block_128x128_alone", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK,
     0, LONG_K},
    {"gemm_block_128x192", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_block_64x128", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     LONG_K},
    {"gemm_block_64x96", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_block_64x64", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_row_64x128", "cuda_sm90a_fp8", "fp8_group128", "fp8_group128", BSMM_WGMMA_ROW, 0,
     LONG_K},
    {"gemm_bf16_block", "cuda_sm90a_bf16", "bf16", "fp8_block128", BSMM_WGMMA_BLOCK, 0, SHORT_K},
    {"gemm_bf16_block_64x128", "cuda_sm90a_bf16", "f16", "fp8_block128", BSMM_WGMMA_BLOCK, 0,
     SHORT_K},
    {"gemm_bf16_row", "cuda_sm90a_bf16", "fp8_group128", "nvfp4", BSMM_WGMMA_ROW, 0, SHORT_K},
    {"gemm_bf16_row_64x128", "cuda_sm90a_bf16", "bf16", "fp8_group128", BSMM_WGMMA_ROW, 0, SHORT_K},
    {"gemm_pow2_e4m3_e4m3", "cuda_sm90a_fold", "mxfp4", "mxfp6_e2m3", BSMM_WGMMA_POW2, 1, SHORT_K},
    {"gemm_pow2_64x64", "cuda_sm90a_fold", "mxfp6_e3m2", "mxfp4", BSMM_WGMMA_POW2, 1, SHORT_K},
};

static const char *tile_of(const tile_case *c, int64_t rows, int64_t cols,
                           const bsmm_cuda_device *device) {
    bsmm_product p = {.device = device};
    p.a.m.cols = c->k;
    p.d.m.rows = rows;
    p.d.m.cols = cols;
    const bool wide = strncmp(c->tile, "gemm_bf16", 9) == 0;
    const bool half = strncmp(c->tile, "gemm_f16", 8) == 0;
    uint32_t elem = wide ? BSMM_ELEM_BF16 : half ? BSMM_ELEM_F16 : BSMM_ELEM_E4M3;
    return bsmm_wgmma_function(bsmm_wgmma_choose(&p, (bsmm_wgmma_kind)c->kind, elem, elem))->name;
}

typedef struct shape {
    int64_t rows, cols;
} shape;

/* Returns M and N of the smallest product for which the library chooses the tile size of this case.
 * M is larger than BAND, the number of rows that check_band compares. M and N are no multiples of
 * the tile's rows and columns. */
static shape shape_of(const tile_case *c, const bsmm_cuda_device *device) {
    enum { MOST = 64 };
    shape best = {0, 0};
    for (int64_t m = 2; m <= MOST; m++)
        for (int64_t n = 1; n <= MOST; n++) {
            const shape s = {BAND * m - 3, 64 * n - 8};
            bool smaller = !best.rows || s.rows * s.cols < best.rows * best.cols;
            if (smaller && strcmp(tile_of(c, s.rows, s.cols, device), c->tile) == 0) best = s;
        }
    return best;
}

static test_matrix operand(const tile_case *c, const char *format, int64_t rows, rng *r) {
    test_matrix t;
    test_matrix_make(&t, describe(format_named(format), rows, c->k), FILL_ORDINARY, r);
    uint8_t *codes = t.m.scales;
    for (uint64_t i = 0; c->level && i < t.scale_bytes; i++)
        codes[i] = (uint8_t)(126 + rng_below(r, 3));
    return t;
}

/* Multiplies only rows `first` to first + BAND - 1 of A by B, and compares D with the same rows of
 * the whole product, which are at `want`. For so few rows of A, the host may choose a smaller tile
 * than for the whole product. The results must nevertheless be bitwise identical. */
static void check_band(const bsmm_matmul_desc *all, int64_t first, const uint16_t *want) {
    const int64_t count = bsmm_min_i64(BAND, all->d->rows - first);
    const bsmm_matrix a = rows_of(all->a, first, count);
    bsmm_matrix d = rows_of(all->d, 0, count);
    bsmm_matmul_desc few = *all;
    few.a = &a;
    few.d = &d;
    assert_int_equal(test_multiply(&few), BSMM_OK);
    assert_memory_equal(d.data, want, (size_t)(count * d.cols) * sizeof *want);
}

static void check_product(const tile_case *c, const test_matrix *a, const test_matrix *b,
                          test_matrix *d) {
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a->m,
                             .b = &b->m,
                             .d = &d->m,
                             .device = "cuda:0",
                             .kernel = c->kernel};
    const int64_t rows = d->m.rows, cols = d->m.cols;
    memset(d->m.data, 0xa5, d->data_bytes);
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    uint16_t *whole = malloc(d->data_bytes);
    memcpy(whole, d->m.data, d->data_bytes);
    const int64_t bands[] = {0, rows / 2 / BAND * BAND, (rows - 1) / BAND * BAND};
    for (size_t i = 0; i < BSMM_COUNT(bands); i++)
        check_band(&desc, bands[i], whole + bands[i] * cols);
    free(whole);
}

static void check_case(const tile_case *c, const bsmm_cuda_device *device, rng *r) {
    const shape s = shape_of(c, device);
    if (!s.rows) fail_msg("%s: no shape takes it", c->tile);
    test_matrix a = operand(c, c->a, s.rows, r), b = operand(c, c->b, s.cols, r), d;
    test_matrix_make(&d, describe(format_named("bf16"), s.rows, s.cols), FILL_ORDINARY, r);
    check_product(c, &a, &b, &d);
    if (c->level) { /* One row gets a scale that varies along K. */
        memset((uint8_t *)a.m.scales + 8, 150, 4);
        check_product(c, &a, &b, &d);
    }
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&d);
}

static void test_tiles(void **state) {
    (void)state;
    const bsmm_cuda_device *device = test_cuda_device();
    if (device->capability != 90) skip();
    rng r = {1};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++)
        check_case(&cases[i], device, &r);
}

static uint16_t round_to_bf16(uint32_t bits) {
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Computes the product `desc` into an fp32 D, whose rows are followed by gaps of `gap` elements.
 * The results, rounded to bf16, must equal `want`. The bytes in the gaps must not change. */
static void check_floats(bsmm_matmul_desc desc, const uint16_t *want, int64_t gap, rng *r) {
    const int64_t rows = desc.d->rows, cols = desc.d->cols;
    bsmm_matrix longer = describe(format_named("f32"), rows, cols);
    longer.ld = cols + gap;
    test_matrix d;
    test_matrix_make(&d, longer, FILL_ORDINARY, r);
    memset(d.m.data, 0xa5, d.data_bytes);
    desc.d = &d.m;
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    const uint32_t *got = d.m.data;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++)
            assert_int_equal(round_to_bf16(got[i * d.m.ld + j]), want[i * cols + j]);
        for (int64_t j = cols; j < d.m.ld && i + 1 < rows; j++)
            assert_int_equal(got[i * d.m.ld + j], 0xa5a5a5a5u);
    }
    test_matrix_free(&d);
}

/* Checks a kernel with fp32 matrices D of several widths. The rows of D begin at even or odd
 * elements. */
static void check_kernel_floats(const char *kernel, const char *a_format, const char *b_format,
                                int64_t cols, rng *r) {
    enum { ROWS = 130, K = 256 };
    test_matrix a, b, d;
    test_matrix_make(&a, describe(format_named(a_format), ROWS, K), FILL_ORDINARY, r);
    test_matrix_make(&b, describe(format_named(b_format), cols, K), FILL_ORDINARY, r);
    test_matrix_make(&d, describe(format_named("bf16"), ROWS, cols), FILL_ORDINARY, r);
    const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                   .a = &a.m,
                                   .b = &b.m,
                                   .d = &d.m,
                                   .device = "cuda:0",
                                   .kernel = kernel};
    assert_int_equal(test_multiply(&desc), BSMM_OK);
    for (int64_t gap = 0; gap < 3; gap++)
        check_floats(desc, d.m.data, gap, r);
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&d);
}

static void test_floats(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {2};
    for (int64_t cols = 133; cols < 137; cols++) {
        check_kernel_floats("cuda_sm90a_bf16", "bf16", "bf16", cols, &r);
        check_kernel_floats("cuda_sm90a_fp8", "fp8_group128", "fp8_block128", cols, &r);
    }
}

int main(void) {
    /* With BSMM_TEST_EXACT each buffer has its own allocation. This test's buffers are too large
     * for the single allocation that they would otherwise share. */
    setenv("BSMM_TEST_EXACT", "1", 1);
    /* The library would split K of all tiles (split-K) for products with few tiles, which changes
     * the bits of results. The test therefore sets the number of parts of K to 1. */
    setenv("BSMM_TEST_SPLITS", "1", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiles), cmocka_unit_test(test_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
