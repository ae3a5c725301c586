/* Measures how near the error of each kernel comes to the kernel's documented bound, for the
 * patterns of operands that docs/NUMERICS.md lists. No error may exceed the bound.
 * `test_bound_patterns print` prints the tables of docs/NUMERICS.md. */
#include "operand.h"
#include "walk.h"

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
    /* SMALL and SMALL_FP8: the first product along K is 1, and each other product is a little below
     * the last bit that a tensor core keeps of a term beside 1. For 16-bit elements this bit is
     * 2^-25, for FP8 it is 2^-13. The tensor core then truncates each product to 0. */
    SMALL,
    SMALL_FP8,
    PATTERNS
} pattern;

static const char *const pattern_names[PATTERNS] = {"one sign",    "alternating", "growing",
                                                    "cancelling",  "largest",     "ties",
                                                    "sparse ties", "small",       "small for FP8"};

static const char *const pairs[][2] = {
    {"mxfp4", "mxfp4"}, {"nvfp4", "nvfp4"}, {"mxfp8", "mxfp8"}, {"bf16", "mxfp4"},
    {"bf16", "bf16"},   {"f32", "f32"},     {"e4m3", "e4m3"},   {"fp8_group128", "fp8_group128"},
};

static const int64_t lengths[] = {128, 512, 4096};
enum { MOST_K_OF_GPUS = 512 }; /* Emulated GPUs would take some seconds for a longer K. */

typedef struct value {
    double element;
    /* `exponent` is the exponent of the scale of the element's block. In the patterns TIES,
     * SPARSE_TIES, SMALL and SMALL_FP8, the first block has a larger scale than all other blocks.
     */
    int exponent;
} value;

/* Returns an exponent e such that the format can hold both 2^e and 1.5 * 2^(e - 13). */
static int top_of(bsmm_format f) {
    if (f.scale == BSMM_SCALE_E8M0 || f.scale == BSMM_SCALE_E4M3) return 0;
    return f.elem == BSMM_ELEM_E4M3 ? 8 : 0;
}

/* Returns an element of a row in which the first value is 1, and each later value is `mantissa` *
 * 2^-`shift` of it. If the format has small blocks, their scales differ by this power of two, and
 * the other elements of the first block are 0. If `sparse` is true, 15 of 16 later values are 0. */
static value beside_one(bsmm_format f, int64_t k, double mantissa, int shift, bool sparse) {
    bool scaled = f.scale == BSMM_SCALE_E8M0 || f.scale == BSMM_SCALE_E4M3;
    int64_t block = scaled ? f.block_cols : 1;
    int high = f.scale == BSMM_SCALE_E4M3 ? 4 : 0;
    if (k == 0) return (value){ldexp(1, top_of(f)), high};
    if (k < block) return (value){0, high};
    double element = mantissa * (scaled ? 1 : ldexp(1, top_of(f) - shift));
    return (value){sparse && k % 16 ? 0 : element, high - (scaled ? shift : 0)};
}

/* Returns the largest value below 2 that an element format has, so that half of it is little below
 * 1. */
static double below_two(bsmm_format f) {
    return 2 - ldexp(1, -(int)bsmm_elem_row(f.elem)->mantissa_bits);
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
        return beside_one(f, k, 1, 12, how == SPARSE_TIES);
    case SMALL:
    case SMALL_FP8:
        return beside_one(f, k, is_a ? below_two(f) : 1, how == SMALL ? 13 : 7, false);
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

/* Keeps the largest share of the kernel's error bound, and the product that caused it. */
static void note(const char *kernel, const char *const formats[2], int64_t k, pattern how,
                 double share) {
    worst *w = worst_of(kernel);
    char what[sizeof w->what];
    snprintf(what, sizeof what, "%s x %s, K = %d, %s", formats[0], formats[1], (int)k,
             pattern_names[how]);
    if (!(share <= 1)) fail_msg("%s: %.3f of the bound: %s", kernel, share, what);
    if (share <= w->share) return;
    w->share = share;
    memcpy(w->what, what, sizeof what);
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
    for (test_walk w = test_walk_begin(&desc); test_walk_next(&w);) {
        if (k > MOST_K_OF_GPUS && !test_walk_on_cpu(&w)) continue;
        assert_int_equal(test_multiply(&desc), BSMM_OK);
        note(w.e.kernel, formats, k, how, largest_share(d, a_values, b_values, k, w.e.bound));
    }
    free(a_values);
    free(b_values);
    test_matrix_free(&a);
    test_matrix_free(&b);
}

/* Tests every pattern of operands (enum pattern). In the patterns TIES and SPARSE_TIES, the errors
 * of CPU kernels with fp32 sums come near the kernels' error bounds, which shows that these bounds
 * are not much too large. The bounds of GPU kernels allow for tensor cores that add less exactly
 * than the simulated ones, so no least share is asked of these kernels. */
static void test_patterns(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < BSMM_COUNT(lengths); j++)
            for (pattern how = 0; how < PATTERNS; how++)
                try_kernels(pairs[i], lengths[j], how);
    assert_true(*found[0].kernel); /* at least one kernel was tried */
    for (size_t i = 0; i < MOST_KERNELS && *found[i].kernel; i++)
        if (strncmp(found[i].kernel, "cpu_", 4) == 0 && found[i].share < 0.8)
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
