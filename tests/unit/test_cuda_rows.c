/* Tests GPU kernels for few rows of A. A row of D must have the same bits for any number of rows of
 * A. The kernels nevertheless choose their instructions and their number of thread blocks by the
 * number of rows. The test is skipped without a GPU. */
#include "cuda.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 77, MOST = 64 };

/* Holds the name of a kernel, and the formats of A and B with which it is tested. */
typedef struct takes {
    const char *kernel;
    const char *a[4], *b[8];
    uint32_t compute;
} takes;

/* Returns the format of this name. "fp8_row" means e4m3 elements with one fp32 scale for each row
 * of k elements. */
static bsmm_format named(const char *name, int64_t k) {
    if (strcmp(name, "fp8_row") != 0) return format_named(name);
    return (bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, (uint32_t)k};
}

#define WEIGHTS                                                                                    \
    {                                                                                              \
        "mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8", "fp8_block128", "fp8_row",          \
            "fp8_group128"                                                                         \
    }
static const takes decode_all = {
    .kernel = "cuda_sm90_small_m", .a = {"bf16", "f16", "mxfp8", "fp8_group128"}, .b = WEIGHTS};
/* These are the formats of A whose values bf16 represents exactly. f16 is not among them, because
 * the kernel splits each f16 value into two bf16 numbers. */
static const takes decode_whole = {
    .kernel = "cuda_sm90_small_m", .a = {"bf16", "mxfp8", "fp8_group128"}, .b = WEIGHTS};
static const takes decode_4bit = {
    .kernel = "cuda_sm90_small_m", .a = {"mxfp4", "nvfp4"}, .b = {"mxfp4", "nvfp4"}};
static const takes decode_bf16 = {.kernel = "cuda_sm90_small_m", .a = {"bf16"}, .b = WEIGHTS};
static const takes fp8_small_m = {.kernel = "cuda_sm90a_fp8_small_m",
                                  .a = {"fp8_group128", "fp8_row"},
                                  .b = {"fp8_block128", "fp8_row", "fp8_group128"}};
static const takes fp8_small_m_fast = {.kernel = "cuda_sm90a_fp8_small_m",
                                       .a = {"e4m3"},
                                       .b = {"fp8_block128", "fp8_row"},
                                       .compute = BSMM_COMPUTE_FAST};

static const int64_t rows[] = {1, 2, 3, 8, 9, 16, 17, 24, 31, 32, 33, 48, 63};

typedef struct fixture {
    test_matrix a, b, d;
    float whole[MOST * N]; /* `whole` holds D of the product with all rows of A. */
} fixture;

static bsmm_status multiply(fixture *f, const char *kernel, uint32_t compute, int64_t m) {
    const bsmm_matrix a = m == f->a.m.rows ? f->a.m : rows_of(&f->a.m, 0, m);
    bsmm_matrix d = rows_of(&f->d.m, 0, m);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a,
                             .b = &f->b.m,
                             .d = &d,
                             .compute = compute,
                             .device = "cuda:0",
                             .kernel = kernel};
    memset(d.data, 0xa5, f->d.data_bytes);
    return test_multiply(&desc);
}

/* Returns the largest number of rows of A that the kernel accepts. It is MOST / 2 for
 * cuda_sm90a_fp8_small_m. For cuda_sm90_small_m it is MOST, but MOST / 2 with an A of 4 bits and
 * with operands that need more registers (f16 elements and some fp32 scales). */
static int64_t most_rows(const takes *of, const fixture *f) {
    const bsmm_format *a = &f->a.m.format, *b = &f->b.m.format;
    const bool floats = a->scale == BSMM_SCALE_F32, along = floats && a->block_cols < f->a.m.cols;
    if (strcmp(of->kernel, "cuda_sm90_small_m") != 0) return MOST / 2;
    const bool halved = a->elem == BSMM_ELEM_F16 || a->elem == BSMM_ELEM_E2M1 ||
                        (floats && b->scale == BSMM_SCALE_F32) ||
                        (along && bsmm_elem_row(b->elem)->bits < 8);
    return halved ? MOST / 2 : MOST;
}

static void check_pair(const takes *of, const char *a, const char *b, int64_t k, fill how, rng *r) {
    fixture f;
    test_matrix_make(&f.a, describe(named(a, k), MOST, k), how, r);
    test_matrix_make(&f.b, describe(named(b, k), N, k), how, r);
    test_matrix_make(&f.d, describe(format_named("f32"), MOST, N), FILL_ORDINARY, r);
    const int64_t most = most_rows(of, &f);
    if (multiply(&f, of->kernel, of->compute, most))
        fail_msg("%s x %s: %s", a, b, bsmm_error_message());
    memcpy(f.whole, f.d.m.data, f.d.data_bytes);
    for (size_t i = 0; i < BSMM_COUNT(rows) && rows[i] < most; i++) {
        assert_int_equal(multiply(&f, of->kernel, of->compute, rows[i]), BSMM_OK);
        if (memcmp(f.whole, f.d.m.data, (size_t)rows[i] * N * sizeof(float)) != 0)
            fail_msg("%s x %s, K %lld: %lld rows differ from %lld", a, b, (long long)k,
                     (long long)rows[i], (long long)most);
    }
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
    test_matrix_free(&f.d);
}

static void check_all(const takes *of, int64_t k, fill how, uint64_t seed) {
    if (test_cuda_device()->capability != 90) skip();
    rng r = {seed};
    for (size_t i = 0; i < BSMM_COUNT(of->a) && of->a[i]; i++)
        for (size_t j = 0; j < BSMM_COUNT(of->b) && of->b[j]; j++)
            check_pair(of, of->a[i], of->b[j], k, how, &r);
}

/* Tests a K that is no multiple of 128, which is the number of elements of K in a step of the
 * kernel's loop. */
static void test_ordinary(void **state) {
    (void)state;
    check_all(&decode_all, 1312, FILL_ORDINARY, 61);
}

/* Tests a K that is split among the thread blocks of a cluster. It is an odd multiple of 128
 * elements. */
static void test_long(void **state) {
    (void)state;
    check_all(&decode_bf16, 4224, FILL_ORDINARY, 62);
}

static void test_extreme(void **state) {
    (void)state;
    check_all(&decode_whole, 672, FILL_EXTREME, 63);
}

static void test_special(void **state) {
    (void)state;
    check_all(&decode_whole, 672, FILL_SPECIAL, 64);
}

/* Tests an A with elements of 4 bits, for which the kernels have a fast path. */
static void test_4bit(void **state) {
    (void)state;
    check_all(&decode_4bit, 672, FILL_EXTREME, 71);
    check_all(&decode_4bit, 672, FILL_SPECIAL, 72);
}

/* Returns a matrix with the values of `from` and its scales in another layout, with the distance
 * scale_ld between rows of scales (0: the default). *scales becomes the memory of the scales, which
 * the caller frees. */
static bsmm_matrix with_layout(const bsmm_matrix *from, uint32_t layout, int64_t scale_ld,
                               uint8_t **scales) {
    bsmm_matrix to = *from;
    to.scale_layout = layout;
    to.scale_ld = scale_ld;
    to.scale_bytes = 0;
    assert_int_equal(bsmm_scale_bytes(&to, &to.scale_bytes), BSMM_OK);
    to.scales = *scales = malloc((size_t)to.scale_bytes);
    assert_int_equal(bsmm_relayout_scales(from, &to), BSMM_OK);
    return to;
}

/* Multiplies `m` rows of a 4-bit A by B three times, each time by the kernel for few rows of A. In
 * the first product, the scales are row-major, for which the kernel has a fast path. In the second
 * one, the scales of A and B have the layout nv_128x4. In the third one, the rows of B's scales
 * have an odd stride. The three results must be bitwise identical. */
static void check_4bit_layouts(const char *format, int64_t m, fill how, rng *r) {
    const char *kernel = decode_4bit.kernel;
    const int64_t k = 352;
    fixture f;
    uint8_t *scales[3];
    test_matrix_make(&f.a, describe(format_named(format), m, k), how, r);
    test_matrix_make(&f.b, describe(format_named(format), N, k), how, r);
    test_matrix_make(&f.d, describe(format_named("f32"), m, N), FILL_ORDINARY, r);
    assert_int_equal(multiply(&f, kernel, BSMM_COMPUTE_EXACT, m), BSMM_OK);
    memcpy(f.whole, f.d.m.data, f.d.data_bytes);
    const bsmm_matrix a = f.a.m, b = f.b.m;
    f.a.m = with_layout(&a, BSMM_LAYOUT_NV_128X4, 0, &scales[0]);
    f.b.m = with_layout(&b, BSMM_LAYOUT_NV_128X4, 0, &scales[1]);
    const bsmm_matrix odd = with_layout(&b, BSMM_LAYOUT_ROW_MAJOR, k / 16 + 3, &scales[2]);
    for (int i = 0; i < 2; i++, f.a.m = a, f.b.m = odd) {
        assert_int_equal(multiply(&f, kernel, BSMM_COMPUTE_EXACT, m), BSMM_OK);
        if (memcmp(f.whole, f.d.m.data, f.d.data_bytes) != 0)
            fail_msg("%s, %lld rows: results differ between layouts of scales", format,
                     (long long)m);
    }
    f.a.m = a, f.b.m = b;
    for (size_t i = 0; i < BSMM_COUNT(scales); i++)
        free(scales[i]);
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
    test_matrix_free(&f.d);
}

/* K is so short that many sums are exactly 0. The rows of B's scales are not aligned. */
static void test_4bit_layouts(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    static const fill fills[] = {FILL_ORDINARY, FILL_EXTREME, FILL_SPECIAL};
    rng r = {73};
    for (size_t i = 0; i < BSMM_COUNT(fills); i++)
        for (int64_t m = 1; m <= 5; m += 2) {
            check_4bit_layouts("mxfp4", m, fills[i], &r);
            check_4bit_layouts("nvfp4", m, fills[i], &r);
        }
}

/* Tests the FP8 kernel with three values of K, because it multiplies 128 elements of K in a step. K
 * = 1296 is no multiple of 128. K = 16 is a single step, so only one of the four warpgroups has
 * work. With the largest K, each thread block has more steps than its ring buffer has stages. Two
 * more products have extreme values, or NaN and Inf. */
static void check_fp8(const takes *of) {
    check_all(of, 1296, FILL_ORDINARY, 65);
    check_all(of, 16, FILL_ORDINARY, 66);
    check_all(of, 8 * 17 * 128 + 16, FILL_ORDINARY, 67);
    check_all(of, 672, FILL_EXTREME, 68);
    check_all(of, 672, FILL_SPECIAL, 69);
}

static void test_fp8(void **state) {
    (void)state;
    check_fp8(&fp8_small_m);
}

static void test_fp8_fast(void **state) {
    (void)state;
    check_fp8(&fp8_small_m_fast);
}

/* Tests a kernel that uses FP8 tensor cores, whose accumulators have fewer bits than fp32. If such
 * a kernel accepts a pair of formats only with BSMM_COMPUTE_FAST, it must refuse BSMM_COMPUTE_EXACT
 * and leave D unchanged. */
static void test_fp8_fast_alone(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {70};
    fixture f;
    test_matrix_make(&f.a, describe(format_named("e4m3"), 5, 256), FILL_ORDINARY, &r);
    test_matrix_make(&f.b, describe(format_named("fp8_block128"), N, 256), FILL_ORDINARY, &r);
    test_matrix_make(&f.d, describe(format_named("f32"), 5, N), FILL_ORDINARY, &r);
    const char *kernel = fp8_small_m_fast.kernel;
    assert_int_equal(multiply(&f, kernel, BSMM_COMPUTE_FAST, 5), BSMM_OK);
    assert_int_equal(multiply(&f, kernel, BSMM_COMPUTE_EXACT, 5), BSMM_E_UNSUPPORTED);
    assert_non_null(strstr(bsmm_error_message(), "without compute FAST"));
    for (uint64_t i = 0; i < f.d.data_bytes; i++)
        assert_int_equal(((const uint8_t *)f.d.m.data)[i], 0xa5);
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
    test_matrix_free(&f.d);
}

/* Sets the scales of a matrix with K = 272. The last scale of a row with scales of 128 elements
 * covers the last 16 elements and becomes `last`. All other scales become `most`. */
static void set_floats(const test_matrix *t, float most, float last) {
    const uint64_t each = (uint64_t)bsmm_ceil_div(t->m.cols, t->m.format.block_cols);
    for (uint64_t i = 0; i < t->scale_bytes / sizeof(float); i++)
        ((float *)t->m.scales)[i] = each > 1 && i % each == each - 1 ? last : most;
}

/* Multiplies one row of A by N rows of B. Two products of 448 * 448 cancel, and the third product
 * is 2^-18, the least product of e4m3. The FP8 tensor cores truncate terms 13 bits below the
 * largest one, so they lose the third product and give 0. Returns a result, which is the same for
 * all rows of B. */
static float multiply_cancelling(const char *a_format, const char *b_format, float most,
                                 float last) {
    enum { K = 272, LARGEST = 0x7e, LEAST = 0x01, MINUS = 0x80 };
    rng r = {74};
    fixture f;
    test_matrix_make(&f.a, describe(named(a_format, K), 1, K), FILL_ORDINARY, &r);
    test_matrix_make(&f.b, describe(named(b_format, K), N, K), FILL_ORDINARY, &r);
    test_matrix_make(&f.d, describe(format_named("f32"), 1, N), FILL_ORDINARY, &r);
    uint8_t *const a = f.a.m.data, *const b = f.b.m.data;
    memset(a, 0, f.a.data_bytes);
    memset(b, 0, f.b.data_bytes);
    set_floats(&f.a, most, last);
    set_floats(&f.b, most, last);
    a[0] = a[1] = LARGEST;
    a[2] = LEAST;
    for (int i = 0; i < N; i++) {
        b[i * K] = LARGEST;
        b[i * K + 1] = LARGEST | MINUS;
        b[i * K + 2] = LEAST;
    }
    assert_int_equal(multiply(&f, fp8_small_m.kernel, BSMM_COMPUTE_EXACT, 1), BSMM_OK);
    const float *const d = f.d.m.data, first = d[0];
    for (int i = 1; i < N; i++)
        assert_true(d[i] == first);
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
    test_matrix_free(&f.d);
    return first;
}

/* Tests results of 0. With scales near 1, no term can be too small for fp32. The kernel then keeps
 * the tensor cores' 0, since computing every 0 again would take longer than the rest of the GEMM.
 * If a scale is tiny, even that of the last few elements along K, the kernel computes the result
 * again. */
static void test_fp8_zeros(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    assert_true(multiply_cancelling("fp8_row", "fp8_row", 1, 0) == 0);
    assert_true(multiply_cancelling("fp8_row", "fp8_row", 0x1p-50f, 0) == 0x1p-118f);
    assert_true(multiply_cancelling("fp8_row", "fp8_row", -0x1p-50f, 0) == 0x1p-118f);
    assert_true(multiply_cancelling("fp8_group128", "fp8_block128", 1, 1) == 0);
    assert_true(multiply_cancelling("fp8_group128", "fp8_block128", 1, 0) == 0);
    assert_true(multiply_cancelling("fp8_group128", "fp8_block128", 1, 0x1p-50f) == 0x1p-18f);
    assert_true(multiply_cancelling("fp8_group128", "fp8_group128", 1, 0x1p-50f) == 0x1p-18f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_extreme),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_4bit),
        cmocka_unit_test(test_4bit_layouts),
        cmocka_unit_test(test_fp8),
        cmocka_unit_test(test_fp8_fast),
        cmocka_unit_test(test_fp8_fast_alone),
        cmocka_unit_test(test_fp8_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
