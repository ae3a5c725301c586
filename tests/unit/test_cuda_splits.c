/* Tests the sm_90a GEMM with split-K: different clusters of thread blocks sum different parts of K.
 * The errors must be within the bound, and the results must be the same in every run and with every
 * tile size. */
#include "core/describe.h"
#include "cuda.h"
#include "cuda/host/wgmma.h"
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* K has 13 blocks of 128 elements. The last block is incomplete. */
enum { ROWS = 70, COLUMNS = 136, K = 128 * 12 + 32, RESULTS = ROWS * COLUMNS };

/* ROW_SCALES names a format with e4m3 elements and one fp32 scale for each row. */
#define ROW_SCALES "rows"

typedef struct split_case {
    const char *kernel, *a, *b;
    bsmm_wgmma_kind kind;
    uint32_t elem; /* `elem` is the element type with which the tensor cores multiply. */
    /* If `level` is nonzero, all e8m0 scales lie within 3 binades, so packing to 8-bit floats is
     * exact. */
    int level;
} split_case;

static const split_case cases[] = {
    {"cuda_sm90a_bf16", "bf16", "bf16", BSMM_WGMMA_BF16, BSMM_ELEM_BF16, 0},
    {"cuda_sm90a_bf16", "f16", "mxfp4", BSMM_WGMMA_BF16, BSMM_ELEM_BF16, 0},
    {"cuda_sm90a_bf16", "bf16", ROW_SCALES, BSMM_WGMMA_BF16, BSMM_ELEM_BF16, 0},
    {"cuda_sm90a_bf16", "f16", ROW_SCALES, BSMM_WGMMA_BF16, BSMM_ELEM_BF16, 0},
    {"cuda_sm90a_bf16", ROW_SCALES, ROW_SCALES, BSMM_WGMMA_BF16, BSMM_ELEM_BF16, 0},
    {"cuda_sm90a_bf16", "bf16", "fp8_block128", BSMM_WGMMA_BLOCK, BSMM_ELEM_BF16, 0},
    {"cuda_sm90a_bf16", "bf16", "fp8_group128", BSMM_WGMMA_ROW, BSMM_ELEM_BF16, 0},
    {"cuda_sm90a_fp8", "fp8_group128", "fp8_block128", BSMM_WGMMA_BLOCK, BSMM_ELEM_E4M3, 0},
    {"cuda_sm90a_fp8", "fp8_group128", "fp8_group128", BSMM_WGMMA_ROW, BSMM_ELEM_E4M3, 0},
    {"cuda_sm90a_fp8", ROW_SCALES, ROW_SCALES, BSMM_WGMMA_BLOCK, BSMM_ELEM_E4M3, 0},
    {"cuda_sm90a_fold", "mxfp4", "mxfp4", BSMM_WGMMA_POW2, BSMM_ELEM_E4M3, 1},
};

static bsmm_format format_of(const char *name) {
    const bsmm_format rows = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, K};
    return strcmp(name, ROW_SCALES) ? format_named(name) : rows;
}

static test_matrix operand(const split_case *c, const char *format, int64_t rows, rng *r) {
    test_matrix t;
    test_matrix_make(&t, describe(format_of(format), rows, K), FILL_ORDINARY, r);
    uint8_t *codes = t.m.scales;
    for (uint64_t i = 0; c->level && i < t.scale_bytes; i++)
        codes[i] = (uint8_t)(126 + rng_below(r, 3));
    return t;
}

/* Multiplies with one tile size and with K split into `splits` parts. Copies the results to
 * `to`. */
static void multiply(const split_case *c, const test_matrix *a, const test_matrix *b,
                     const char *tile, int splits, float *to) {
    char number[12];
    rng r = {3};
    test_matrix d;
    test_matrix_make(&d, describe(format_named("f32"), ROWS, COLUMNS), FILL_ORDINARY, &r);
    const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                   .a = &a->m,
                                   .b = &b->m,
                                   .d = &d.m,
                                   .device = "cuda:0",
                                   .kernel = c->kernel};
    snprintf(number, sizeof number, "%d", splits);
    setenv("BSMM_TEST_SPLITS", number, 1);
    setenv("BSMM_TEST_TILE", tile, 1);
    memset(d.m.data, 0xa5, d.data_bytes);
    if (test_multiply(&desc)) fail_msg("%s, %s: %s", c->kernel, tile, bsmm_error_message());
    memcpy(to, d.m.data, RESULTS * sizeof *to);
    test_matrix_free(&d);
}

/* A function of this type is called for each tile size that can compute the product. */
typedef void tile_check(const split_case *c, const test_matrix *a, const test_matrix *b,
                        const char *tile, float *want);
static void each_tile(const split_case *c, const test_matrix *a, const test_matrix *b, float *want,
                      tile_check *check) {
    const bsmm_wgmma_tile *t;
    for (size_t i = 0; (t = bsmm_wgmma_tile_at(i)); i++)
        if (bsmm_wgmma_tile_takes(t, c->kind, c->elem, c->elem))
            check(c, a, b, bsmm_wgmma_function(t)->name, want);
}

enum { MOST_SPLITS = 3 };

/* Multiplies with the tile size `tile` and with K split into 1 to MOST_SPLITS parts, and compares
 * the results with those of other tile sizes. `want` has one array of results for each number of
 * parts. The arrays are NaN until the first tile size has filled them; the results of all other
 * tile sizes must be bitwise identical. At the end, a repeated product must give the same bits
 * again. */
static void check_splits(const split_case *c, const test_matrix *a, const test_matrix *b,
                         const char *tile, float *want) {
    for (int splits = 1; splits <= MOST_SPLITS; splits++) {
        float got[RESULTS], *same = want + (splits - 1) * RESULTS;
        multiply(c, a, b, tile, splits, got);
        if (isnan(same[0])) memcpy(same, got, sizeof got);
        if (memcmp(same, got, sizeof got)) fail_msg("%s, %d parts: other bits", tile, splits);
    }
    float again[RESULTS];
    multiply(c, a, b, tile, MOST_SPLITS, again);
    assert_memory_equal(again, want + (MOST_SPLITS - 1) * RESULTS, sizeof again);
}

/* Checks that every result is within the error bound, with K split into 1 to MOST_SPLITS parts.
 * Also checks that K was really split, i.e. that one and two parts give different bits. */
static void check_errors(const split_case *c, const test_matrix *a, const test_matrix *b,
                         const float *got) {
    const uint32_t parts = strcmp(c->a, "f16") == 0 ? 2 : 1;
    /* If B has row scales, the kernel multiplies the scale of A's row by the scale of B's row, and
     * then the sum by this product. These two roundings add up to 2 * 2^-24 to the error of a
     * result. */
    const double scaling = strcmp(c->b, ROW_SCALES) ? 0 : 0x1p-23;
    const double bound = bsmm_wgmma_bound(c->kind, c->elem, (int64_t)K * parts) + scaling;
    double *left = test_matrix_values(a), *right = test_matrix_values(b);
    bool differ = false;
    for (int i = 0; i < RESULTS; i++) {
        const double *x = left + i / COLUMNS * K, *y = right + i % COLUMNS * K;
        double sum = 0, magnitude = 0;
        for (int k = 0; k < K; k++)
            sum += x[k] * y[k], magnitude += fabs(x[k] * y[k]);
        for (int splits = 1; splits <= MOST_SPLITS; splits++) {
            const double result = (double)got[(splits - 1) * RESULTS + i];
            if (!(fabs(result - sum) <= bound * magnitude + 0x1p-24 * fabs(sum)))
                fail_msg("%s x %s, %d parts, result %d: %g, must be %g", c->a, c->b, splits, i,
                         result, sum);
        }
        differ = differ || got[i] != got[RESULTS + i];
    }
    /* This makes sure that the test has really split K: a split changes the order of additions and
     * therefore some bits. Cases with `level` (nearly equal scales) are an exception: all sums of
     * mxfp4 are then exact, so the bits are equal in any order. */
    if (!differ && !c->level) fail_msg("%s x %s: K was not split", c->a, c->b);
    free(left);
    free(right);
}

static void test_splits(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {1};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const split_case *c = &cases[i];
        test_matrix a = operand(c, c->a, ROWS, &r), b = operand(c, c->b, COLUMNS, &r);
        float *want = malloc(MOST_SPLITS * RESULTS * sizeof *want);
        memset(want, 0xff, MOST_SPLITS * RESULTS * sizeof *want);
        each_tile(c, &a, &b, want, check_splits);
        check_errors(c, &a, &b, want);
        if (c->level) { /* One row gets a scale that varies along K. */
            memset((uint8_t *)a.m.scales + 8, 150, 4);
            memset(want, 0xff, MOST_SPLITS * RESULTS * sizeof *want);
            each_tile(c, &a, &b, want, check_splits);
        }
        free(want);
        test_matrix_free(&a);
        test_matrix_free(&b);
    }
}

enum { SMALL = 5, SMALL_GROUP = 1 };

static void check_row(const split_case *c, const test_matrix *a, const test_matrix *b,
                      const char *tile, float *want) {
    float got[RESULTS];
    multiply(c, a, b, tile, MOST_SPLITS, got);
    if (isnan(want[0])) memcpy(want, got, sizeof got);
    assert_memory_equal(got + SMALL * COLUMNS, want + SMALL * COLUMNS, COLUMNS * sizeof *got);
    multiply(c, a, b, tile, 1, got);
    assert_memory_equal(got + SMALL * COLUMNS, want + SMALL * COLUMNS, COLUMNS * sizeof *got);
}

/* Tests a row of A with a scale that is so small that the kernel must compute the row's results
 * again. The scale belongs to the first part of K, or to all of K if A has one scale for each row.
 * Different clusters sum the parts of K, and only the cluster of the last part stores results. The
 * cluster of the first part must therefore tell that cluster about the scale. */
static void test_row_made_again(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {2};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const split_case *c = &cases[i];
        if (strcmp(c->kernel, "cuda_sm90a_fp8")) continue;
        test_matrix a = operand(c, c->a, ROWS, &r), b = operand(c, c->b, COLUMNS, &r);
        const bool by_rows = strcmp(c->a, ROW_SCALES) == 0;
        const int64_t small = by_rows ? SMALL : SMALL * bsmm_ceil_div(K, 128) + SMALL_GROUP;
        ((float *)a.m.scales)[small] = 0x1p-120f;
        float want[RESULTS] = {NAN};
        each_tile(c, &a, &b, want, check_row);
        test_matrix_free(&a);
        test_matrix_free(&b);
    }
}

/* Multiplies with the tile size that the library chooses. */
static void multiply_with(const char *kernel, const test_matrix *a, const test_matrix *b,
                          float *to) {
    const split_case c = {.kernel = kernel};
    multiply(&c, a, b, "", 1, to);
}

/* Tests row scales whose products may be outside the range of fp32. The results must then be
 * bitwise identical to those of the generic kernel. */
static void test_extreme_row_scales(void **state) {
    static const float extremes[] = {0x1p-140f, 0x1p-53f, 0x1p32f, 3e38f, INFINITY, NAN};
    static const split_case rows = {.a = ROW_SCALES, .b = ROW_SCALES};
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {4};
    for (size_t i = 0; i < 2 * BSMM_COUNT(extremes); i++) {
        test_matrix a = operand(&rows, rows.a, ROWS, &r), b = operand(&rows, rows.b, COLUMNS, &r);
        float got[RESULTS], want[RESULTS], *scales = i % 2 ? a.m.scales : b.m.scales;
        scales[SMALL] = extremes[i / 2];
        multiply_with("cuda_sm90a_bf16", &a, &b, got);
        multiply_with("cuda_sm80_bf16", &a, &b, want);
        assert_memory_equal(got, want, sizeof got);
        test_matrix_free(&a);
        test_matrix_free(&b);
    }
}

/* Tests that a row of B with a scale of 0 gives results of 0. Such a row must not change the bits
 * of other results. */
static void test_zero_row_scale(void **state) {
    static const split_case rows = {.a = "bf16", .b = ROW_SCALES};
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {5};
    test_matrix a = operand(&rows, rows.a, ROWS, &r), b = operand(&rows, rows.b, COLUMNS, &r);
    float before[RESULTS], after[RESULTS];
    multiply_with("cuda_sm90a_bf16", &a, &b, before);
    ((float *)b.m.scales)[SMALL] = 0;
    multiply_with("cuda_sm90a_bf16", &a, &b, after);
    for (int i = 0; i < RESULTS; i++)
        assert_true(after[i] == (i % COLUMNS == SMALL ? 0 : before[i]));
    test_matrix_free(&a);
    test_matrix_free(&b);
}

int main(void) {
    setenv("EMULATED_CUDA_MULTIPROCESSORS", "24", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits), cmocka_unit_test(test_row_made_again),
        cmocka_unit_test(test_extreme_row_scales), cmocka_unit_test(test_zero_row_scale)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
