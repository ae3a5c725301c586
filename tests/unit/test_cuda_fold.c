/* Tests the code paths of cuda_sm90a_fold, the kernel for MX operands on Hopper. If e4m3 can
 * represent all elements multiplied by their block scales, the FP8 tensor cores compute the
 * product. Otherwise the bf16 tensor cores or the generic kernel compute it. The tests find out
 * which code path ran by comparing bits: the result must be bitwise identical to that of a kernel
 * that has only this code path. */
#include "cuda.h"
#include "cuda/host/wgmma.h"
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 72, COLUMNS = 200 };

/* Holds the range of the random e8m0 codes of an operand's block scales. */
typedef struct scales {
    uint8_t low, high;
} scales;

typedef struct fold_case {
    const char *a, *b;
    uint32_t a_order, b_order;
    int64_t k;
    scales scales;
    const char *same; /* `same` names the kernel whose result must be bitwise identical. */
} fold_case;

static void draw_scales(test_matrix *m, scales from, rng *r) {
    uint8_t *codes = m->m.scales;
    for (uint64_t i = 0; i < m->scale_bytes; i++)
        codes[i] = rng_below(r, 2) ? from.low : from.high;
}

static test_matrix make(const char *format, uint32_t order, int64_t rows, int64_t k, scales from,
                        rng *r) {
    test_matrix t;
    bsmm_matrix shape = describe(format_named(format), rows, k);
    shape.order = order;
    if (order == BSMM_ORDER_COL) shape.ld = rows;
    test_matrix_make(&t, shape, FILL_ORDINARY, r);
    if (from.high) draw_scales(&t, from, r);
    return t;
}

static bsmm_matmul_desc fast(const test_matrix *a, const test_matrix *b, const test_matrix *d) {
    return (bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                              .a = &a->m,
                              .b = &b->m,
                              .d = &d->m,
                              .compute = BSMM_COMPUTE_FAST,
                              .device = "cuda:0"};
}

static float *product(bsmm_matmul_desc *desc, const char *kernel) {
    const uint64_t bytes = ROWS * COLUMNS * sizeof(float);
    float *got = malloc(bytes);
    desc->kernel = kernel;
    memset(desc->d->data, 0xa5, bytes);
    assert_int_equal(test_multiply(desc), BSMM_OK);
    memcpy(got, desc->d->data, bytes);
    return got;
}

/* Multiplies A and B by three kernels: cuda_sm90a_fold, cuda_sm90a_bf16 and the generic kernel. If
 * e4m3 cannot hold the packed operands, cuda_sm90a_fold must take another code path, whose results
 * are bitwise identical to those of another kernel. `same` is the name of this kernel. It is NULL
 * if e4m3 can hold the operands; the results of cuda_sm90a_fold must then differ from those of both
 * other kernels. */
static void check_way(const test_matrix *a, const test_matrix *b, const char *same, rng *r) {
    const uint64_t bytes = ROWS * COLUMNS * sizeof(float);
    test_matrix d = make("f32", BSMM_ORDER_ROW, ROWS, COLUMNS, (scales){0, 0}, r);
    bsmm_matmul_desc desc = fast(a, b, &d);
    float *fold = product(&desc, "cuda_sm90a_fold"), *bf16 = product(&desc, "cuda_sm90a_bf16");
    float *generic = product(&desc, "cuda_sm80_bf16");
    bool is_bf16 = memcmp(fold, bf16, bytes) == 0, is_generic = memcmp(fold, generic, bytes) == 0;
    if (!same) assert_true(!is_bf16 && !is_generic);
    if (same) assert_true(strcmp(same, "cuda_sm90a_bf16") == 0 ? is_bf16 : is_generic);
    free(fold);
    free(bf16);
    free(generic);
    test_matrix_free(&d);
}

static void check(const fold_case *c, rng *r) {
    test_matrix a = make(c->a, c->a_order, ROWS, c->k, c->scales, r);
    test_matrix b = make(c->b, c->b_order, COLUMNS, c->k, c->scales, r);
    check_way(&a, &b, c->same, r);
    test_matrix_free(&a);
    test_matrix_free(&b);
}

/* The test draws block scales from these ranges of e8m0 codes, so that a product takes a certain
 * code path. With `near`, e4m3 can represent 128 elements of a row multiplied by their block
 * scales. With `apart` it cannot, because the block scales differ too much, but bf16 can. With
 * `low` and `high`, values are too small or too large for bf16, so the generic kernel computes the
 * product. */
static const scales near = {120, 128}, apart = {110, 135}, low = {2, 127}, high = {110, 190};
static const char bf16_kernel[] = "cuda_sm90a_bf16", generic_kernel[] = "cuda_sm80_bf16";

static void test_ways(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    static const char *const formats[] = {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2"};
    rng r = {5};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        const char *f = formats[i];
        const fold_case cases[] = {
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 512, near, NULL},
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 512, apart, bf16_kernel},
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 512, low, generic_kernel},
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 512, high, generic_kernel},
            {f, formats[(i + 1) % 3], BSMM_ORDER_ROW, BSMM_ORDER_ROW, 1024, apart, bf16_kernel},
            /* These products test the fallback with other shapes and orders. K is not a multiple of
             * 128, K is not a multiple of 8, or an operand is column-major. */
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 288, apart, bf16_kernel},
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 300, apart, bf16_kernel},
            {f, f, BSMM_ORDER_COL, BSMM_ORDER_ROW, 256, apart, bf16_kernel},
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_COL, 288, apart, bf16_kernel},
            {f, f, BSMM_ORDER_COL, BSMM_ORDER_COL, 288, low, generic_kernel},
        };
        for (size_t j = 0; j < BSMM_COUNT(cases); j++)
            check(&cases[j], &r);
    }
}

/* Tests BSMM_COMPUTE_FAST with one mxfp8 operand, which can always be packed to 8 bits, and another
 * operand, which possibly cannot. */
static void test_ways_of_8_bits(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    static const char *const formats[] = {"mxfp8_e4m3", "mxfp8_e5m2"};
    rng r = {6};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        const char *f = formats[i];
        const fold_case cases[] = {
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 512, apart, NULL},
            {f, f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 512, low, generic_kernel},
            {f, "mxfp4", BSMM_ORDER_ROW, BSMM_ORDER_ROW, 288, apart, bf16_kernel},
            {"mxfp4", f, BSMM_ORDER_ROW, BSMM_ORDER_COL, 288, apart, bf16_kernel},
            {"mxfp4", f, BSMM_ORDER_ROW, BSMM_ORDER_ROW, 512, low, generic_kernel},
        };
        for (size_t j = 0; j < BSMM_COUNT(cases); j++)
            check(&cases[j], &r);
    }
}

/* Makes an mxfp8 operand whose block scales are 2^120 and whose elements are less than 2^-3. bf16
 * can represent its values, so packing to bf16 would not need scales. Packing looks only at the
 * block scales, however. Because the block scales are so large, packing stores a scale for each
 * group of 128 elements. */
static test_matrix make_small(const char *format, int64_t rows, rng *r) {
    test_matrix t = make(format, BSMM_ORDER_ROW, rows, 512, (scales){247, 247}, r);
    uint8_t *codes = t.m.data;
    for (uint64_t i = 0; i < t.data_bytes; i++)
        codes[i] &= 0x9f;
    return t;
}

/* Tests an mxfp8 operand for which packing to bf16 stores group scales, i.e. a scale for each 128
 * elements (make_small). The other operand's block scales differ so much that the FP8 tensor cores
 * cannot multiply it. The path with bf16 tensor cores ignores group scales, so its results would be
 * wrong. The generic kernel must therefore compute the product. */
static void test_small_elements_of_large_blocks(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    static const char *const formats[] = {"mxfp8_e4m3", "mxfp8_e5m2"};
    static const scales tiny_apart = {57, 87};
    rng r = {8};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        test_matrix a = make_small(formats[i], ROWS, &r), b = make_small(formats[i], COLUMNS, &r);
        test_matrix x = make("mxfp4", BSMM_ORDER_ROW, ROWS, 512, tiny_apart, &r);
        test_matrix y = make("mxfp4", BSMM_ORDER_ROW, COLUMNS, 512, tiny_apart, &r);
        check_way(&a, &y, generic_kernel, &r);
        check_way(&x, &b, generic_kernel, &r);
        test_matrix_free(&a);
        test_matrix_free(&b);
        test_matrix_free(&x);
        test_matrix_free(&y);
    }
}

/* Makes an operand whose elements are at least 1 and whose block scales differ by at most 2
 * binades. Packing it rounds nothing (docs/NUMERICS.md), so the error bound includes only errors of
 * additions. */
static test_matrix make_large(const char *format, int64_t rows, int64_t k, rng *r) {
    test_matrix t = make(format, BSMM_ORDER_ROW, rows, k, (scales){126, 128}, r);
    const uint32_t elem = t.m.format.elem;
    uint8_t *codes = t.m.data;
    for (uint64_t i = 0; i < t.data_bytes; i++)
        while (!(fabs(bsmm_elem_decode(elem, codes[i])) >= 1 &&
                 isfinite(bsmm_elem_decode(elem, codes[i]))))
            codes[i] = (uint8_t)rng_below(r, 256);
    return t;
}

enum { LONG = 640 };

/* Multiplies A and B by the kernel cuda_sm90a_fold, and checks that the sums lie within this
 * kernel's error bound. K is LONG. */
static void check_sums(const test_matrix *a, const test_matrix *b, rng *r) {
    test_matrix d = make("f32", BSMM_ORDER_ROW, ROWS, COLUMNS, (scales){0, 0}, r);
    bsmm_matmul_desc desc = fast(a, b, &d);
    float *got = product(&desc, "cuda_sm90a_fold");
    const double bound = bsmm_wgmma_bound(BSMM_WGMMA_POW2, BSMM_ELEM_E4M3, LONG);
    bsmm_operand x, y;
    assert_int_equal(bsmm_operand_take(&a->m, "a", &x), BSMM_OK);
    assert_int_equal(bsmm_operand_take(&b->m, "b", &y), BSMM_OK);
    double rows[ROWS][LONG], row[LONG];
    for (int64_t m = 0; m < ROWS; m++)
        bsmm_operand_decode_row(&x, m, 0, LONG, rows[m]);
    for (int64_t n = 0; n < COLUMNS; n++) {
        bsmm_operand_decode_row(&y, n, 0, LONG, row);
        for (int64_t m = 0; m < ROWS; m++) {
            double sum = 0, most = 0;
            for (int64_t k = 0; k < LONG; k++) {
                sum += rows[m][k] * row[k];
                most += fabs(rows[m][k] * row[k]);
            }
            assert_true(fabs((double)got[m * COLUMNS + n] - sum) <= bound * most);
        }
    }
    free(got);
    test_matrix_free(&d);
}

static void check_fast(const char *a_format, const char *b_format, rng *r) {
    test_matrix a = make_large(a_format, ROWS, LONG, r), b = make_large(b_format, COLUMNS, LONG, r);
    check_sums(&a, &b, r);
    test_matrix_free(&a);
    test_matrix_free(&b);
}

static void test_fast_where_nothing_is_lost(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    static const char *const formats[] = {"mxfp8_e4m3", "mxfp8_e5m2"};
    rng r = {7};
    for (size_t i = 0; i < 2 * BSMM_COUNT(formats); i++)
        check_fast(formats[i / 2], formats[i % 2], &r);
}

/* Gives the blocks from `first` on, in every `every`th row, block scales of 2^exponent times their
 * old ones. A row has LONG / 32 blocks. */
static void raise_blocks(test_matrix *t, int64_t every, int64_t first, int exponent) {
    const int64_t blocks = LONG / 32;
    uint8_t *codes = t->m.scales;
    for (int64_t i = 0; i < t->m.rows * blocks; i++)
        if (i / blocks % every == every - 1 && i % blocks >= first)
            codes[i] = (uint8_t)(codes[i] + exponent);
}

/* Makes an FP8 operand with one fp32 scale, which is no power of two, for each row. Some scales are
 * so large or small that the kernel must compute their rows again in double. */
static test_matrix make_row_scaled(int64_t rows, rng *r) {
    const bsmm_format format = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, LONG};
    test_matrix t;
    test_matrix_make(&t, describe(format, rows, LONG), FILL_ORDINARY, r);
    float *of_rows = t.m.scales;
    for (int64_t i = 0; i < rows; i++)
        of_rows[i] = (0.5f + (float)rng_below(r, 1000) * 0x1p-10f) * (i % 9 == 4    ? 0x1p70f
                                                                      : i % 11 == 5 ? 0x1p-107f
                                                                                    : 1);
    return t;
}

/* If all groups (128 elements) of a row can have the same packed scale, packing gives them one
 * scale. Otherwise the groups of the row get different scales. The GEMM kernel has separate code
 * for an operand in which every row has one scale, and for an operand in which some rows have
 * several scales. The test has both kinds of operands. If the kernel ran the wrong code for an
 * operand, sums would be wrong by a power of two. */
static void test_even_rows(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    static const char *const formats[] = {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2"};
    static const struct {
        int64_t every, first; /* Rows and blocks are raised as `raise_blocks` says. */
        int exponent;
    } cases[] = {{1, 0, 0}, {1, 4, 3}, {1, 4, 9}, {COLUMNS, 16, 20}, {1, 4, -20}, {ROWS, 0, 4}};
    rng r = {9};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (size_t j = 0; j < BSMM_COUNT(cases); j++) {
            test_matrix a = make_row_scaled(ROWS, &r);
            test_matrix x = make(formats[i], BSMM_ORDER_ROW, ROWS, LONG, (scales){125, 128}, &r);
            test_matrix b = make(formats[i], BSMM_ORDER_ROW, COLUMNS, LONG, (scales){125, 128}, &r);
            check_sums(&x, &b, &r);
            raise_blocks(&b, cases[j].every, cases[j].first, cases[j].exponent);
            check_sums(&a, &b, &r);
            check_sums(&x, &b, &r);
            raise_blocks(&x, cases[j].every, cases[j].first, cases[j].exponent);
            check_sums(&x, &b, &r);
            test_matrix_free(&a);
            test_matrix_free(&x);
            test_matrix_free(&b);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways), cmocka_unit_test(test_ways_of_8_bits),
        cmocka_unit_test(test_small_elements_of_large_blocks),
        cmocka_unit_test(test_fast_where_nothing_is_lost), cmocka_unit_test(test_even_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
