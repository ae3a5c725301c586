/* Compares the CPU kernels with each other. The test checks which kernel the library chooses on
 * processors with fewer features, and that certain kernels give bitwise identical results. */
#include "cpu_hooks.h"
#include "product.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    NOTHING = 0,
    AVX2 = BSMM_CPU_AVX2,
    AVX512 = AVX2 | BSMM_CPU_AVX512,
    VNNI = AVX512 | BSMM_CPU_AVX512_VNNI,
    BF16 = VNNI | BSMM_CPU_AVX512_BF16
};

static const struct {
    uint32_t features;
    const char *a, *b, *kernel;
} choices[] = {
    {NOTHING, "mxfp4", "mxfp4", "cpu_f32"},
    {NOTHING, "f32", "mxfp8", "cpu_f32"},
    {AVX2, "mxfp4", "mxfp4", "cpu_avx2_int8dot"},
    {AVX2, "nvfp4", "mxfp6_e2m3", "cpu_avx2_int8dot"},
    {AVX2, "mxfp8", "mxfp4", "cpu_avx2_f32"},
    {AVX2, "f32", "nvfp4", "cpu_avx2_f32"},
    {AVX512, "mxfp4", "mxfp4", "cpu_avx2_int8dot"},
    {AVX512, "bf16", "mxfp4", "cpu_avx512_f32"},
    {VNNI, "mxfp4", "mxfp4", "cpu_avx512_int8dot"},
    {BF16, "mxfp4", "mxfp4", "cpu_avx512_int8dot"},
    {VNNI, "fp8_group128", "fp8_block128", "cpu_avx512_f32"},
    {BF16, "mxfp8", "mxfp4", "cpu_avx512_bf16dot"},
    {BF16, "f16", "mxfp4", "cpu_avx512_f32"},
};

static const char *chosen(const bsmm_matmul_desc *desc) {
    bsmm_plan *plan;
    if (bsmm_plan_create(desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    const char *name = bsmm_plan_kernel(plan);
    bsmm_plan_destroy(plan);
    return name;
}

/* Tests which kernel a plan uses if some processor features are hidden from the library. The
 * results of the plan must be those of this kernel. */
static void test_choice_by_features(void **state) {
    (void)state;
    uint32_t here = bsmm_cpu_features();
    rng r = {1};
    for (size_t i = 0; i < BSMM_COUNT(choices); i++) {
        if (choices[i].features & ~here) continue;
        product p;
        product_make(&p, choices[i].a, choices[i].b, 60, 50, 96, FILL_ORDINARY, &r);
        float *expected = result_of(&p, choices[i].kernel);
        bsmm_cpu_mask_features(choices[i].features);
        const char *name = chosen(&p.desc);
        float *got = result_of(&p, NULL);
        bsmm_cpu_mask_features(~0u);
        assert_string_equal(name, choices[i].kernel);
        assert_memory_equal(got, expected, 60 * 50 * sizeof(float));
        free(got);
        free(expected);
        product_free(&p);
    }
}

/* Tests that products with few rows of A use a kernel that decodes B while it multiplies, and
 * another kernel if B is packed in advance. */
static void test_choice_by_rows(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *decode, *engine;
        int64_t most;
    } kinds[] = {{"mxfp4", "mxfp4", "cpu_avx2_int8dot_small_m", "cpu_avx2_int8dot", 32},
                 {"mxfp4", "mxfp6_e2m3", "cpu_avx2_int8dot_small_m", "cpu_avx2_int8dot", 16},
                 {"bf16", "mxfp4", "cpu_avx2_f32_small_m", "cpu_avx2_f32", 48}};
    if (AVX2 & ~bsmm_cpu_features()) skip();
    rng r = {13};
    bsmm_cpu_mask_features(AVX2);
    for (size_t i = 0; i < BSMM_COUNT(kinds); i++)
        for (int64_t rows = kinds[i].most; rows <= kinds[i].most + 1; rows++) {
            product p;
            product_make(&p, kinds[i].a, kinds[i].b, rows, 50, 96, FILL_ORDINARY, &r);
            assert_string_equal(chosen(&p.desc),
                                rows == kinds[i].most ? kinds[i].decode : kinds[i].engine);
            p.desc.b_packed = 1;
            assert_string_equal(chosen(&p.desc), kinds[i].engine);
            product_free(&p);
        }
    bsmm_cpu_mask_features(~0u);
}

/* Tests that a kernel refuses to run on a processor without the instructions that it needs, even if
 * the caller names the kernel. */
static void test_refusal_without_features(void **state) {
    (void)state;
    rng r = {2};
    product p;
    product_make(&p, "mxfp4", "mxfp4", 3, 4, 32, FILL_ORDINARY, &r);
    bsmm_cpu_mask_features(NOTHING);
    assert_int_equal(bsmm_cpu_features(), 0);
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&p.desc, i, &e) == BSMM_OK; i++)
        if (strstr(e.kernel, "avx")) {
            assert_int_equal(e.accepts, 0);
            assert_non_null(strstr(e.reason, "the processor has no AVX"));
        }
    p.desc.kernel = "cpu_avx2_int8dot";
    bsmm_plan *plan = NULL;
    assert_int_equal(bsmm_plan_create(&p.desc, &plan), BSMM_E_UNSUPPORTED);
    bsmm_cpu_mask_features(~0u);
    product_free(&p);
}

/* Tests that all int8 kernels give bitwise identical results. They add the same exact integer sums
 * in the same order. */
static void test_int8_engines_agree(void **state) {
    (void)state;
    static const char *const formats[] = {"e2m1", "e2m3", "mxfp4", "mxfp6_e2m3", "nvfp4"};
    if (VNNI & ~bsmm_cpu_features()) skip();
    rng r = {3};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (size_t j = 0; j < BSMM_COUNT(formats); j++)
            for (fill how = FILL_ORDINARY; how <= FILL_EXTREME; how++) {
                product p;
                product_make(&p, formats[i], formats[j], 37, 65, 2085, how, &r);
                float *wide = result_of(&p, "cpu_avx512_int8dot");
                float *narrow = result_of(&p, "cpu_avx2_int8dot");
                assert_memory_equal(wide, narrow, 37 * 65 * sizeof(float));
                free(wide);
                free(narrow);
                product_free(&p);
            }
}

/* Kernels use other code if the processor has two ports for 512-bit instructions. Checks that the
 * results are bitwise identical whether or not the library believes that there are two ports. */
static void check_ports(const char *a, const char *b, int64_t rows, fill how, rng *r) {
    enum { N = 65, K = 645 };
    product p;
    product_make(&p, a, b, rows, N, K, how, r);
    bsmm_cpu_add_features(BSMM_CPU_TWO_PORTS);
    float *two = result_of(&p, NULL);
    bsmm_cpu_add_features(0);
    bsmm_cpu_mask_features(~(uint32_t)BSMM_CPU_TWO_PORTS);
    float *many = result_of(&p, NULL);
    bsmm_cpu_mask_features(~0u);
    assert_memory_equal(two, many, (size_t)(rows * N) * sizeof(float));
    free(two);
    free(many);
    product_free(&p);
}

/* Tests that results do not depend on the processor's number of ports for 512-bit instructions. The
 * test covers kernels that pack B and kernels that read B as it is stored. */
static void test_ports_do_not_matter(void **state) {
    (void)state;
    static const char *const formats[] = {"e2m1",  "e2m3",  "mxfp4",        "mxfp6_e2m3",
                                          "nvfp4", "mxfp8", "mxfp6_e3m2",   "mxfp8_e5m2",
                                          "bf16",  "e4m3",  "fp8_group128", "fp8_block128"};
    static const int64_t rows[] = {37, 16, 7, 3, 2, 1};
    if (BF16 & ~bsmm_cpu_features()) skip();
    rng r = {5};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (size_t j = 0; j < BSMM_COUNT(formats); j++)
            for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++)
                for (size_t m = 0; m < BSMM_COUNT(rows); m++)
                    check_ports(formats[i], formats[j], rows[m], how, &r);
}

static void check_caches(product *p, const uint64_t *caches, size_t count) {
    size_t bytes = (size_t)(p->d.rows * p->d.cols) * sizeof(float);
    bsmm_cpu_pretend_l2_bytes(0);
    float *expected = result_of(p, NULL);
    for (size_t i = 0; i < count; i++) {
        bsmm_cpu_pretend_l2_bytes(caches[i]);
        assert_int_equal(bsmm_cpu_l2_bytes(), caches[i]);
        float *got = result_of(p, NULL);
        assert_memory_equal(got, expected, bytes);
        free(got);
    }
    bsmm_cpu_pretend_l2_bytes(0);
    free(expected);
}

/* Tests that the size of the L2 cache does not change results, although it determines the sizes of
 * cache blocks. The products have various numbers of rows of A, which decide how threads divide D.
 * Without AVX-512, the test often runs in a slow emulator, so it tries only two cache sizes. */
static void test_caches_do_not_matter(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp4", "nvfp4", "mxfp8", "fp8_group128", "f32"};
    static const uint64_t caches[] = {1 << 14, 1ull << 40, 1 << 18, 1 << 20};
    static const struct {
        int64_t rows;
        uint32_t threads;
    } shapes[] = {{201, 1}, {39, 3}};
    /* Without AVX2, cpu_f32 has only one size of cache blocks, so there is nothing to compare. */
    if (AVX2 & ~bsmm_cpu_features()) skip();
    size_t count = AVX512 & ~bsmm_cpu_features() ? 2 : BSMM_COUNT(caches);
    rng r = {6};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (size_t j = 0; j < BSMM_COUNT(shapes); j++) {
            product p;
            product_make(&p, formats[i], formats[i], shapes[j].rows, 390, 660, FILL_ORDINARY, &r);
            p.desc.threads = shapes[j].threads;
            check_caches(&p, caches, count);
            product_free(&p);
        }
}

static void set_elements(test_matrix *t, uint32_t code) {
    for (int64_t i = 0; i < t->m.rows * t->m.cols; i++)
        bsmm_elem_store(t->m.format.elem, t->m.data, (uint64_t)i, code);
}

/* Sets all elements to the largest magnitude of their format, with the given sign. */
static void set_to_largest(test_matrix *t, bool negative) {
    double largest = bsmm_elem_row(t->m.format.elem)->max;
    set_elements(t, bsmm_elem_encode(t->m.format.elem, negative ? -largest : largest, true));
}

/* Tests elements of the largest magnitude. A kernel with 16-bit accumulators would saturate. */
static void test_largest_sums(void **state) {
    (void)state;
    static const bsmm_format formats[] = {{BSMM_ELEM_E2M1, 0, 0, 0},
                                          {BSMM_ELEM_E2M3, 0, 0, 0},
                                          {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16},
                                          {BSMM_ELEM_E2M3, BSMM_SCALE_E4M3, 1, 16}};
    rng r = {4};
    for (size_t i = 0; i < 16 * 5; i++)
        for (int signs = 0; signs < 4; signs++) {
            /* The kernel for few rows has separate loops for 1, 2, 3 and 4 rows of A. */
            int64_t rows = i / 16 ? (int64_t)i / 16 : 9;
            product p;
            product_make_of(&p, formats[i / 4 % 4], formats[i % 4], rows, 17, 64, FILL_ORDINARY,
                            &r);
            set_to_largest(&p.a, signs & 1);
            set_to_largest(&p.b, signs & 2);
            bsmm_explanation e = {.struct_size = sizeof e};
            float *expected = result_of(&p, "ref");
            for (uint32_t q = 0; bsmm_explain(&p.desc, q, &e) == BSMM_OK; q++) {
                if (!e.accepts || !strstr(e.kernel, "int8")) continue;
                float *got = result_of(&p, e.kernel);
                assert_memory_equal(got, expected, (size_t)rows * 17 * sizeof(float));
                free(got);
            }
            free(expected);
            product_free(&p);
        }
}

/* Tests block scales of +0 and -0. Quantizers write a scale of 0 if all elements of a block are
 * zero or too small for an e4m3 scale. */
static void test_zero_scales(void **state) {
    (void)state;
    /* These are the e4m3 codes of the scales 0, 1, -0 and 2. */
    static const uint8_t codes[] = {0x00, 0x38, 0x80, 0x40};
    rng r = {5};
    product p;
    product_make(&p, "nvfp4", "nvfp4", 19, 37, 144, FILL_ORDINARY, &r);
    set_to_largest(&p.a, true);
    set_to_largest(&p.b, false);
    for (size_t i = 0; i < 19 * 9; i++)
        ((uint8_t *)p.a.m.scales)[i] = codes[i % 3];
    for (size_t i = 0; i < 37 * 9; i++)
        ((uint8_t *)p.b.m.scales)[i] = codes[i % 4];
    bsmm_explanation e = {.struct_size = sizeof e};
    float *expected = result_of(&p, "ref");
    for (uint32_t q = 0; bsmm_explain(&p.desc, q, &e) == BSMM_OK; q++) {
        if (!e.accepts) continue;
        float *got = result_of(&p, e.kernel);
        for (size_t i = 0; i < 19 * 37; i++)
            assert_true(got[i] == expected[i]);
        free(got);
    }
    free(expected);
    product_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice_by_features),
        cmocka_unit_test(test_choice_by_rows),
        cmocka_unit_test(test_refusal_without_features),
        cmocka_unit_test(test_int8_engines_agree),
        cmocka_unit_test(test_ports_do_not_matter),
        cmocka_unit_test(test_caches_do_not_matter),
        cmocka_unit_test(test_largest_sums),
        cmocka_unit_test(test_zero_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
