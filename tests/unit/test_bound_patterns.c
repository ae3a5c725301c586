/* Measures how near the error of each CPU kernel comes to the kernel's documented bound, for the
 * patterns of operands that docs/NUMERICS.md lists. No error may exceed the bound.
 * `test_bound_patterns print` prints the table of docs/NUMERICS.md. */
#include "operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 3, N = 20, MOST_KERNELS = 16 };

typedef enum pattern {
    ONE_SIGN,    /* ONE_SIGN: all elements are random positive values. */
    ALTERNATING, /* ALTERNATING: the elements of A have alternating signs along K. */
    GROWING,     /* GROWING: the elements are positive, and their block scales grow along K. */
    /* CANCELLING: the products of the second half of K add up to the negative of the sum of the
     * products of the first half. */
    CANCELLING,
    /* LARGEST: all elements have the format's largest value, and the block scales are large. */
    LARGEST,
    /* TIES: each sum starts with 1, and then adds products of half an ulp of the sum. Rounding to
     * even loses each of these products. */
    TIES,
    /* SPARSE_TIES: like TIES, but only one of every 16 products is half an ulp of the sum. The
     * other 15 products are 0. */
    SPARSE_TIES,
    PATTERNS
} pattern;

static const char *const pattern_names[PATTERNS] = {
    "one sign", "alternating", "growing", "cancelling", "largest", "ties", "sparse ties"};

static const char *const pairs[][2] = {
    {"mxfp4", "mxfp4"}, {"nvfp4", "nvfp4"}, {"mxfp8", "mxfp8"}, {"bf16", "mxfp4"},
    {"bf16", "bf16"},   {"f32", "f32"},     {"e4m3", "e4m3"},   {"fp8_group128", "fp8_group128"},
};

static const int64_t lengths[] = {128, 512, 4096};

typedef struct value {
    double element;
    /* `exponent` is the exponent of the scale of the element's block. In the patterns TIES and
     * SPARSE_TIES, the scale of the first block is 2^12 times that of all other blocks. */
    int exponent;
} value;

/* Returns an exponent e such that the format can hold both 2^e and 2^(e - 12). */
static int top_of(bsmm_format f) {
    if (f.scale == BSMM_SCALE_E8M0 || f.scale == BSMM_SCALE_E4M3) return 0;
    return f.elem == BSMM_ELEM_E4M3 ? 8 : 0;
}

static value tie(bsmm_format f, int64_t k, bool sparse) {
    bool scaled = f.scale == BSMM_SCALE_E8M0 || f.scale == BSMM_SCALE_E4M3;
    int64_t block = scaled ? f.block_cols : 1;
    int high = f.scale == BSMM_SCALE_E4M3 ? 4 : 0;
    if (k == 0) return (value){ldexp(1, top_of(f)), high};
    if (k < block) return (value){0, high};
    double element = scaled ? 1 : ldexp(1, top_of(f) - 12);
    return (value){sparse && k % 16 ? 0 : element, high - (scaled ? 12 : 0)};
}

static value value_at(pattern how, bsmm_format f, bool is_a, int64_t k, int64_t length, double max,
                      rng *r) {
    double random = (double)(1 + rng_below(r, 255)) / 256;
    double positive = (max > 8 ? 8 : max) * random;
    switch (how) {
    case ALTERNATING:
        return (value){is_a && k % 2 ? -positive : positive, 0};
    case GROWING:
        return (value){positive, (int)(k / 32 * 32 * 16 / length) - 8};
    case CANCELLING:
        return (value){is_a && k >= length / 2 ? -positive : positive, 0};
    case LARGEST:
        return (value){max > 1e4 ? 1e4 : max, 8};
    case TIES:
    case SPARSE_TIES:
        return tie(f, k, how == SPARSE_TIES);
    case ONE_SIGN:
    case PATTERNS:
        break;
    }
    return (value){positive, 0};
}

static void set_scale(test_matrix *t, int64_t index, int exponent) {
    float f32 = ldexpf(1, exponent);
    switch (t->m.format.scale) {
    case BSMM_SCALE_E8M0:
        ((uint8_t *)t->m.scales)[index] = (uint8_t)(127 + exponent);
        break;
    case BSMM_SCALE_E4M3:
        ((uint8_t *)t->m.scales)[index] =
            (uint8_t)bsmm_elem_encode(BSMM_ELEM_E4M3, (double)f32, true);
        break;
    case BSMM_SCALE_F32:
        memcpy((float *)t->m.scales + index, &f32, sizeof f32);
        break;
    default:
        break;
    }
}

/* Fills one row of A or B with a pattern. In the pattern CANCELLING, the second half of a row has
 * the same magnitudes as the first half. In A the signs of the second half are reversed, and in B
 * they are the same, so that the products of the two halves cancel. */
static void fill_row(test_matrix *t, bool is_a, int64_t row, pattern how) {
    const bsmm_elem_info *info = bsmm_elem_row(t->m.format.elem);
    int64_t length = t->m.cols, block = t->m.format.scale ? t->m.format.block_cols : length;
    bsmm_operand o;
    rng r = {0};
    assert_int_equal(bsmm_operand_take(&t->m, "t", &o), BSMM_OK);
    for (int64_t k = 0; k < length; k++) {
        if (k == 0 || (how == CANCELLING && k == length / 2)) r.state = (uint64_t)row + 1;
        value v = value_at(how, t->m.format, is_a, k, length, info->max, &r);
        bsmm_elem_store(t->m.format.elem, t->m.data, bsmm_operand_index(&o, row, k),
                        bsmm_elem_encode(t->m.format.elem, v.element, true));
        if (t->m.format.scale && k % block == 0)
            set_scale(t, row * bsmm_ceil_div(length, block) + k / block, v.exponent);
    }
}

static void make(test_matrix *t, const char *format, bool is_a, int64_t k, pattern how) {
    rng r = {1};
    test_matrix_make(t, describe(format_named(format), is_a ? M : N, k), FILL_ORDINARY, &r);
    for (int64_t row = 0; row < t->m.rows; row++)
        fill_row(t, is_a, row, how);
}

typedef struct worst {
    char kernel[64], what[128];
    double share;
} worst;

static worst found[MOST_KERNELS];

static worst *worst_of(const char *kernel) {
    size_t i = 0;
    while (*found[i].kernel && strcmp(found[i].kernel, kernel) != 0)
        i++;
    assert_true(i < MOST_KERNELS);
    snprintf(found[i].kernel, sizeof found[i].kernel, "%s", kernel);
    return &found[i];
}

/* Returns the largest error of the results in d, divided by the kernel's error bound. The rounding
 * of a result to fp32 is not counted as an error. */
static double largest_share(const float *d, const double *a, const double *b, int64_t k,
                            double bound) {
    double largest = 0;
    for (int64_t i = 0; i < M * N; i++) {
        double exact = 0, magnitude = 0;
        for (int64_t j = 0; j < k; j++) {
            double product = a[i / N * k + j] * b[i % N * k + j];
            exact += product;
            magnitude += fabs(product);
        }
        double half_ulp = exact == 0 ? 0 : ldexp(1, ilogb(exact) - 24);
        double error = fabs((double)d[i] - exact) - half_ulp;
        largest = fmax(largest, error / (bound * magnitude));
    }
    return largest;
}

static void try_kernels(const char *const formats[2], int64_t k, pattern how) {
    test_matrix a, b;
    float d[M * N];
    make(&a, formats[0], true, k, how);
    make(&b, formats[1], false, k, how);
    double *a_values = test_matrix_values(&a), *b_values = test_matrix_values(&b);
    bsmm_matrix result = describe(format_named("f32"), M, N);
    result.data = d;
    bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &a.m, .b = &b.m, .d = &result};
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; !bsmm_explain(&desc, i, &e); i++) {
        if (!e.accepts || strcmp(e.device, "cpu") != 0) continue;
        desc.kernel = e.kernel;
        assert_int_equal(bsmm_matmul(&desc), BSMM_OK);
        desc.kernel = NULL;
        double share = largest_share(d, a_values, b_values, k, e.bound);
        worst *w = worst_of(e.kernel);
        if (!(share <= 1))
            fail_msg("%s: %.3f of the bound: %s x %s, K = %d, %s", e.kernel, share, formats[0],
                     formats[1], (int)k, pattern_names[how]);
        if (share <= w->share) continue;
        w->share = share;
        snprintf(w->what, sizeof w->what, "%s x %s, K = %d, %s", formats[0], formats[1], (int)k,
                 pattern_names[how]);
    }
    free(a_values);
    free(b_values);
    test_matrix_free(&a);
    test_matrix_free(&b);
}

/* Tests every pattern of operands (enum pattern). In the patterns TIES and SPARSE_TIES, the errors
 * of kernels with fp32 sums come near the kernels' error bounds, which shows that these bounds are
 * not much too large. */
static void test_patterns(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < BSMM_COUNT(lengths); j++)
            for (pattern how = 0; how < PATTERNS; how++)
                try_kernels(pairs[i], lengths[j], how);
    for (size_t i = 0; i < MOST_KERNELS && *found[i].kernel; i++)
        if (strcmp(found[i].kernel, "ref") != 0 && found[i].share < 0.8)
            fail_msg("%s comes only to %.3f of its bound", found[i].kernel, found[i].share);
}

static void print_table(void) {
    printf("| kernel | share of the bound | with |\n|---|---|---|\n");
    for (size_t i = 0; i < MOST_KERNELS && *found[i].kernel; i++)
        printf("| `%s` | %.3f | %s |\n", found[i].kernel, found[i].share, found[i].what);
}

int main(int count, char **words) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_patterns)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (count > 1 && strcmp(words[1], "print") == 0) print_table();
    return failed;
}
