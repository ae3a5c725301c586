/* Tests how the sm_90a GEMM kernels store a D of 8 or 16 bits. TMA stores D if the length of its
 * rows and the distance between them are multiples of 16 bytes. Otherwise each thread stores one
 * element at a time. Both ways must store the same bytes. */
#include "cuda.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 100, K = 160, PITCH = 160, ODD_PITCH = 147 };

typedef struct pair {
    const char *kernel, *a, *b;
} pair;

static const pair pairs[] = {
    {"cuda_sm90a_bf16", "bf16", "bf16"},
    {"cuda_sm90a_bf16", "bf16", "fp8_block128"},
    {"cuda_sm90a_f16", "f16", "f16"},
    {"cuda_sm90a_fp8", "fp8_group128", "fp8_block128"},
    {"cuda_sm90a_fp8", "fp8_group128", "fp8_group128"},
    {"cuda_sm90a_fold", "mxfp4", "mxfp4"},
};

static int64_t size_of(const test_matrix *d) {
    return bsmm_elem_row(d->m.format.elem)->bits / 8;
}

/* Multiplies a and b. Returns D, whose rows begin `pitch` elements apart. The bytes between the
 * rows must not change. */
static test_matrix product_of(bsmm_matmul_desc desc, const char *format, int64_t cols,
                              int64_t pitch, rng *r) {
    bsmm_matrix m = describe(format_named(format), ROWS, cols);
    test_matrix d;
    m.ld = pitch;
    test_matrix_make(&d, m, FILL_ORDINARY, r);
    memset(d.m.data, 0xa5, d.data_bytes);
    desc.d = &d.m;
    if (test_multiply(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    const uint8_t *bytes = d.m.data;
    for (int64_t i = 0; i + 1 < ROWS; i++)
        for (int64_t j = cols * size_of(&d); j < pitch * size_of(&d); j++)
            assert_int_equal(bytes[i * pitch * size_of(&d) + j], 0xa5);
    return d;
}

static void check(const pair *p, const char *format, int64_t cols, fill how, float alpha, rng *r) {
    test_matrix a, b;
    test_matrix_make(&a, describe(format_named(p->a), ROWS, K), how, r);
    test_matrix_make(&b, describe(format_named(p->b), cols, K), how, r);
    const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                   .a = &a.m,
                                   .b = &b.m,
                                   .alpha = &alpha,
                                   .device = "cuda:0",
                                   .kernel = p->kernel};
    test_matrix by_map = product_of(desc, format, cols, PITCH, r);
    test_matrix by_element = product_of(desc, format, cols, ODD_PITCH, r);
    const uint8_t *got = by_map.m.data, *want = by_element.m.data;
    const int64_t size = size_of(&by_map);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < cols * size; j++) {
            const uint8_t byte = got[i * PITCH * size + j], other = want[i * ODD_PITCH * size + j];
            if (byte != other)
                fail_msg("%s, %s x %s, D %s, alpha %g: byte %d of row %d is 0x%02x, not 0x%02x",
                         p->kernel, p->a, p->b, format, (double)alpha, (int)j, (int)i, byte, other);
        }
    test_matrix_free(&a);
    test_matrix_free(&b);
    test_matrix_free(&by_map);
    test_matrix_free(&by_element);
}

static void test_codes(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    static const char *const formats[] = {"e4m3", "e5m2"};
    static const float alphas[] = {1, 0.03f, 0x1p-9f, 0x1p-30f, 3e4f};
    rng r = {3};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t f = 0; f < BSMM_COUNT(formats); f++) {
            for (size_t j = 0; j < BSMM_COUNT(alphas); j++)
                check(&pairs[i], formats[f], 144, FILL_ORDINARY, alphas[j], &r);
            check(&pairs[i], formats[f], 144, FILL_SPECIAL, 1, &r);
            check(&pairs[i], formats[f], 144, FILL_SPECIAL, 0.7f, &r);
        }
}

/* Tests rows of D whose length is not a multiple of 16 bytes, although the stride between rows is a
 * multiple of 16 bytes. */
static void test_edges(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    static const char *const formats[] = {"e4m3", "bf16", "f32"};
    rng r = {4};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t f = 0; f < BSMM_COUNT(formats); f++)
            for (int64_t cols = 133; cols < 136; cols += 2)
                check(&pairs[i], formats[f], cols, FILL_ORDINARY, 1, &r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_codes), cmocka_unit_test(test_edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
