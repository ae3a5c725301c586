/* Tests the kernel for few rows of A that reads weights in f32, bf16 and f16 as they are stored or
 * in form compact. Results must be bitwise identical to those of the kernel that packs B. */
#include "base/cpu.h"
#include "product.h"
#include "sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* N is no multiple of the number of rows of B that the kernel processes together, and K is no
 * multiple of the number of elements that it reads together. */
enum { N = 141, LONG_K = 722 };

static const int64_t row_counts[] = {1, 2, 3, 5, 6, 8, 9, 10, 12, 14, 16, 17};

static void check_stored(product *p) {
    free(result_of(p, "cpu_avx2_f32_small_m"));
    product_check(p, "cpu_avx2_f32");
}

/* Packs B in form compact, and compares the result with that of the kernel that packs B in its
 * run. */
static void check_compact(product *p) {
    bsmm_plan *plan = NULL;
    p->desc.kernel = "cpu_avx2_f32_small_m";
    p->desc.b_packed = BSMM_PACKED_COMPACT;
    assert_int_equal(bsmm_plan_create(&p->desc, &plan), BSMM_OK);
    product_run(p, plan);
    bsmm_plan_destroy(plan);
    product_check(p, "cpu_avx2_f32");
}

/* Tests weights in f32 and bf16 as they are stored and in form compact, and f16 weights in form
 * compact. K is 1, a multiple of the chunk (128 elements of K that are summed by themselves), or
 * ends inside a chunk. If A has fp32 scales, the kernel multiplies sums of 128 elements by them. */
static void test_float_weights_agree(void **state) {
    (void)state;
    static const char *const as[] = {"f32", "f16", "bf16", "mxfp8", "fp8_group128"};
    static const char *const bs[] = {"f32", "bf16", "f16"};
    static const int64_t ks[] = {1, 32, 256, LONG_K};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
    rng r = {17};
    for (size_t i = 0; i < BSMM_COUNT(as) * BSMM_COUNT(bs) * BSMM_COUNT(ks); i++)
        for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++) {
            product p;
            int64_t m = row_counts[(i + i / 12 * 4 + how) % BSMM_COUNT(row_counts)];
            product_make(&p, as[i / 12], bs[i / 4 % 3], m, N, ks[i % 4], how, &r);
            check_stored(&p);
            check_compact(&p);
            product_free(&p);
        }
}

/* Stores `value` as element `index` of B, whose elements are f32 or bf16. */
static void set_element(product *p, int64_t index, float value) {
    uint32_t code;
    memcpy(&code, &value, sizeof code);
    if (p->b.m.format.elem == BSMM_ELEM_BF16)
        ((uint16_t *)p->b.m.data)[index] = (uint16_t)(code >> 16);
    else
        ((float *)p->b.m.data)[index] = value;
}

/* Fills A and B with numbers of many bits from 1 to 2. If `small` is true, one element of A in
 * three is smaller by 2^-70. */
static void fill_near_one(product *p, bool small) {
    float *a = p->a.m.data;
    for (int64_t k = 0; k < p->a.m.rows * LONG_K; k++)
        a[k] = (1 + (float)(k * 7919 % 1000) / 1001) * (small && k % 3 ? 0x1p-70f : 1);
    for (int64_t k = 0; k < N * LONG_K; k++)
        set_element(p, k, 1 + (float)(k * 6133 % 1000) / 1001);
}

/* Tests a row of B with unusual elements among rows with elements near 1. Their magnitude is at an
 * end of the range that the kernel multiplies without packing, or they are 0, subnormal, Inf or
 * NaN. If A has small elements, some products are too small for fp32. alpha then brings the results
 * into fp32's range. The row has no other elements then. */
static void test_float_weights_unusual(void **state) {
    (void)state;
    static const float values[] = {0x1.fffffep15f, 0x1p16f,   0x1p-48f,     0x1.fffffep-49f,
                                   0x1.2344p-120f, 0x1p-126f, 0x1p-149f,    0,
                                   -0.0f,          0x1p120f,  -0x1.76p100f, INFINITY,
                                   -INFINITY,      NAN};
    enum { ROW = 37, FIRST = 600 };
    const float alpha = 0x1p100f;
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
    rng r = {18};
    for (size_t i = 0; i < 4 * BSMM_COUNT(values); i++) {
        product p;
        bool is_small = i / 2 % 2;
        product_make(&p, "f32", i % 2 ? "bf16" : "f32", 1 + (int64_t)i % 5, N, LONG_K,
                     FILL_ORDINARY, &r);
        fill_near_one(&p, is_small);
        if (is_small) p.desc.alpha = &alpha;
        for (int64_t k = is_small ? 0 : FIRST; k < LONG_K; k++)
            set_element(&p, ROW * LONG_K + k,
                        k < FIRST || (is_small && k % 3 == 0) ? 0 : values[i / 4]);
        check_stored(&p);
        check_compact(&p);
        product_free(&p);
    }
}

/* Tests weights in f16 with an element that is 0, subnormal, the largest value, Inf or NaN. */
static void test_f16_weights(void **state) {
    (void)state;
    static const char *const as[] = {"f16", "bf16", "f32", "fp8_group128"};
    static const int64_t ks[] = {1, 64, 256, LONG_K};
    static const uint16_t codes[] = {0, 0x8000, 1, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0xffff};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
    rng r = {13};
    for (size_t i = 0; i < BSMM_COUNT(as) * BSMM_COUNT(ks); i++)
        for (size_t j = 0; j <= BSMM_COUNT(codes); j++) {
            product p;
            int64_t k = ks[i % BSMM_COUNT(ks)], m = row_counts[(i + j) % 7];
            product_make(&p, as[i / BSMM_COUNT(ks)], "f16", m, N, k,
                         j < BSMM_COUNT(codes) ? FILL_ORDINARY : FILL_SPECIAL, &r);
            if (j < BSMM_COUNT(codes)) ((uint16_t *)p.b.m.data)[37 * k + k * 3 / 4] = codes[j];
            check_stored(&p);
            product_free(&p);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_weights_agree),
        cmocka_unit_test(test_float_weights_unusual),
        cmocka_unit_test(test_f16_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
