/* Tests that the error bound that bsmm_explain returns for each kernel is the one that
 * docs/NUMERICS.md states. */
#include "base/cpu.h"
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { M = 8, N = 128, K = 512, PAIRS = 7 };

static const char *const pairs[PAIRS][2] = {
    {"mxfp4", "mxfp4"}, {"nvfp4", "nvfp4"}, {"fp8_group128", "fp8_block128"},
    {"f32", "mxfp4"},   {"f32", "f32"},     {"fp8_group128", "mxfp4"},
    {"bf16", "mxfp4"}};

/* `row` holds the documented bounds of a kernel for K = 512, as multiples of 2^-24. There is one
 * bound for each entry of `pairs`. 0 means that the kernel does not accept this pair of formats. */
typedef struct row {
    const char *kernel;
    double bounds[PAIRS];
} row;

#define EACH(x)                                                                                    \
    { x, x, x, x, x, x, x }
#define FP8  (132 * 0x1p11)
#define FP32 (1.1 * (K + 4))
/* SHORT is the bound of the fp32 FMA kernels if B has elements of more than 8 bits. These kernels
 * then sum each chunk of 128 elements of K separately and add the K / 128 sums. SEGMENTS is the
 * bound if operands have fp32 scales. Each segment of 128 elements of K is then summed separately
 * and multiplied by its scales. */
#define SHORT    (1.1 * (128 + K / 128.0 + 4))
#define SEGMENTS (1.1 * (K / 128.0 + 132))

/* clang-format off */
static const row rows[] = {
    {"ref", EACH((K + 8) * 0x1p-29)},
    {"cpu_f32", EACH(128)},
    {"cpu_avx512_int8dot", {K / 32.0 + 1, K / 16.0 + 1}},
    {"cpu_avx2_int8dot", {K / 32.0 + 1, K / 16.0 + 1}},
    {"cpu_avx512_bf16dot", {FP32, FP32, SEGMENTS, FP32, FP32, SEGMENTS, FP32}},
    {"cpu_avx512_f32", {FP32, FP32, SEGMENTS, FP32, SHORT, SEGMENTS, FP32}},
    {"cpu_avx2_f32", {FP32, FP32, SEGMENTS, FP32, SHORT, SEGMENTS, FP32}},
    {"cuda_sm90a_bf16",
     {17 * 32 * 2 + 2, 17 * 32 * 2 + 2, 68 * 2 + K / 64.0 + 2, 17 * 96 * 2 + 2, 17 * 288 * 2 + 2,
      68 * 2 + K / 64.0 + 2, 17 * 32 * 2 + 2}},
    {"cuda_sm90a_fp8", {0, 0, FP8 + K / 128.0 + 2}},
    {"cuda_sm90a_fp8_small_m", {0, 0, FP8 + K / 128.0 + 40}},
    {"cuda_sm90a_fold", {FP8 + K / 128.0 + 2, 0, 0, 0, 0, FP8 + K / 128.0 + 2}},
    {"cuda_sm90_small_m",
     {2.2 * (K + 16) + 64, 2.2 * (K + 16) + 64, 317 + K / 128.0 + 64, 2.2 * 3 * (K + 16) + 64, 0,
      317 + K / 128.0 + 64, 2.2 * (K + 16) + 64}},
    {"cuda_sm80_bf16",
     {2.2 * (K + 16), 2.2 * (K + 16), K / 32.0 + 80, 2.3 * (K + 32), 13 * (K + 16), K / 32.0 + 80,
      2.2 * (K + 16)}},
    {"cuda_sm100f_scaled_small_m", {2.1 * (K + 64), 2.1 * (K + 64)}},
    {"cuda_sm100f_scaled", {2.1 * (K + 64), 2.1 * (K + 64)}},
    {"cuda_sm100f_fp8", {0, 0, FP8 + K / 128.0 + 4}},
    {"cuda_sm100f_wide",
     {17 * 32 * 2 + 2, 17 * 32 * 2 + 2, 0, 17 * 96 * 2 + 2, 17 * 288 * 2 + 2, 0, 17 * 32 * 2 + 2}},
    {"cuda_sm100f_wide_groups",
     {0, 0, 17 * 8 * 2 + 2 + K / 128.0 + 4, 0, 0, 17 * 8 * 2 + 2 + K / 128.0 + 4}},
    {"cuda_sm120f_scaled", {2.1 * (K + 64), 2.1 * (K + 64)}},
    {"hip_bf16",
     {2.3 * (K + 16), 2.3 * (K + 16), K / 32.0 + 80, 2.4 * (K + 32), 2.4 * (K + 32),
      K / 32.0 + 80, 2.3 * (K + 16)}},
    {"hip_cdna_small_m",
     {2.2 * (K + 128) + 8, 0, 2.2 * 160 + K / 128.0 + 10, 0, 0, 0, 2.2 * (K + 32) + 8}},
    {"hip_gfx950_scaled", {2.1 * (K + 128)}},
    {"hip_cdna_fp8", {0, 0, 2.1 * 144 + K / 128.0 + 4}},
};
/* clang-format on */

/* Returns the documented bound of a kernel. A CPU kernel for few rows has the bound of the kernel
 * that packs B. */
static double documented(const char *kernel, size_t pair) {
    const char *few = strstr(kernel, "_small_m");
    const size_t length =
        few && strncmp(kernel, "cpu", 3) == 0 ? (size_t)(few - kernel) : strlen(kernel);
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (strlen(rows[i].kernel) == length && strncmp(rows[i].kernel, kernel, length) == 0)
            return rows[i].bounds[pair] * 0x1p-24;
    fail_msg("%s: has no documented bound", kernel);
    return 0;
}

static void test_documented(void **state) {
    (void)state;
    int count = 0;
    for (size_t i = 0; i < PAIRS; i++) {
        const bsmm_matrix a = describe(format_named(pairs[i][0]), M, K),
                          b = describe(format_named(pairs[i][1]), N, K),
                          d = describe(format_named("f32"), M, N);
        bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &a, .b = &b, .d = &d};
        for (test_walk w = test_walk_begin(&desc); test_walk_next(&w); count++) {
            const double bound = documented(w.e.kernel, i);
            /* docs/NUMERICS.md states three digits of a bound, so the comparison allows for their
             * rounding. */
            if (!(fabs(w.e.bound - bound) <= 2e-3 * bound))
                fail_msg("%s, %s x %s: bound %g, documented is %g", w.e.kernel, pairs[i][0],
                         pairs[i][1], w.e.bound * 0x1p24, bound * 0x1p24);
        }
    }
    assert_true(count >= PAIRS / 2 && count >= test_walk_least(2 * PAIRS));
}

/* Tests the bound of cuda_sm90a_fold with compute FAST. Packing then rounds the elements of an
 * mxfp8 operand, and each of n rounded operands may double the magnitude of the products. */
static void test_rounded(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        double factor; /* `factor` is 2^n. */
    } cases[] = {{"mxfp8", "mxfp8", 4}, {"mxfp8", "mxfp4", 2}, {"mxfp4", "mxfp8", 2}};
    size_t found = 0;
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const bsmm_matrix a = describe(format_named(cases[i].a), M, K),
                          b = describe(format_named(cases[i].b), N, K),
                          d = describe(format_named("f32"), M, N);
        const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                       .compute = BSMM_COMPUTE_FAST,
                                       .a = &a,
                                       .b = &b,
                                       .d = &d,
                                       .device = "sim:sm_90a"};
        bsmm_explanation e = {.struct_size = sizeof e};
        for (uint32_t j = 0; bsmm_explain(&desc, j, &e) == BSMM_OK; j++) {
            if (strcmp(e.kernel, "cuda_sm90a_fold") != 0) continue;
            if (strstr(e.reason, "built without")) skip();
            const double bound = cases[i].factor * (1 + documented(e.kernel, 0)) - 1;
            if (!e.accepts || fabs(e.bound - bound) > 1e-6)
                fail_msg("%s x %s: bound %g, must be %g; %s", cases[i].a, cases[i].b, e.bound,
                         bound, e.reason);
            found++;
        }
    }
    assert_int_equal(found, BSMM_COUNT(cases));
}

/* Tests the bounds of kernels that sum each chunk of K separately. Here K has eleven chunks of 512
 * elements. */
static void test_chunks(void **state) {
    (void)state;
    enum { LONG_K = 5500 };
    static const struct {
        const char *kernel, *b;
        double bound;
    } rows_of_chunks[] = {
        {"cpu_avx512_bf16dot", "bf16", 1.1 * (512 + 11 + 4)},
        {"cpu_avx512_bf16dot", "mxfp4", 1.1 * (512 + 11 + 4)},
        {"cpu_avx512_f32", "bf16", 1.1 * (128 + 43 + 4)},
        {"cpu_avx2_f32", "f32", 1.1 * (128 + 43 + 4)},
        {"cpu_avx2_f32", "mxfp4", 1.1 * (512 + 11 + 4)},
    };
    size_t found = 0;
    for (size_t i = 0; i < BSMM_COUNT(rows_of_chunks); i++) {
        const bsmm_matrix a = describe(format_named("bf16"), M, LONG_K),
                          b = describe(format_named(rows_of_chunks[i].b), N, LONG_K),
                          d = describe(format_named("f32"), M, N);
        const bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &a, .b = &b, .d = &d};
        bsmm_explanation e = {.struct_size = sizeof e};
        for (uint32_t j = 0; bsmm_explain(&desc, j, &e) == BSMM_OK; j++) {
            if (!e.accepts || strcmp(e.kernel, rows_of_chunks[i].kernel) != 0) continue;
            found++;
            if (fabs(e.bound * 0x1p24 - rows_of_chunks[i].bound) > 1e-6 * rows_of_chunks[i].bound)
                fail_msg("%s x %s: bound %g, documented is %g", e.kernel, rows_of_chunks[i].b,
                         e.bound * 0x1p24, rows_of_chunks[i].bound);
        }
    }
    if (bsmm_cpu_features() & BSMM_CPU_AVX2) assert_true(found >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documented),
                                       cmocka_unit_test(test_rounded),
                                       cmocka_unit_test(test_chunks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
