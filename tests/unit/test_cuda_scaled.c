/* Tests the kernels for block-scaled products on Blackwell (cuda_sm100f_scaled,
 * cuda_sm100f_scaled_small_m, cuda_sm120f_scaled and cuda_sm100f_fp8) and the kernel for bf16 and
 * f16 (cuda_sm100f_wide). The sizes of the products are such that the kernels take different code
 * paths. Every result is compared with a sum in double. The test is skipped unless the device is a
 * real or simulated Blackwell GPU. */
#include "scaled_product.h"

static void test_cases(void **state) {
    (void)state;
    need_device();
    check_cases(cases, BSMM_COUNT(cases));
}

static void test_small_m_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    check_cases(small_m_cases, BSMM_COUNT(small_m_cases));
}

static void test_fp8_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_fp8");
    check_cases(fp8_cases, BSMM_COUNT(fp8_cases));
}

static void test_wide_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide");
    check_cases(wide_cases, BSMM_COUNT(wide_cases));
}

static void test_wide_groups_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide_groups");
    check_cases(wide_groups_cases, BSMM_COUNT(wide_groups_cases));
}

static void test_negative_scales(void **state) {
    static const scaled_case some[] = {
        {"nvfp4", "nvfp4", "f32", 140, 400, 160, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
        {"nvfp4", "nvfp4", "f32", 129, 570, 16, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
        /* In this product, every scale tile that a stage of the first tile loads is full. */
        {"nvfp4", "nvfp4", "f32", 128, 256, 256, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}};
    (void)state;
    need_device();
    check_negative_scales(some, BSMM_COUNT(some));
}

/* In the first product, several thread blocks split K, and only one of them reads the negative
 * scale. */
static void test_small_m_negative_scales(void **state) {
    static const scaled_case some[] = {
        {"nvfp4", "nvfp4", "f32", 6, 130, 640, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
        {"nvfp4", "nvfp4", "bf16", 3, 1000, 48, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}};
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    check_negative_scales(some, BSMM_COUNT(some));
}

/* Tests products that are too small for fp32. All accumulators then become 0, but the kernel must
 * notice that they may be wrong and compute the results again in double. A large alpha makes the
 * right results large enough for D. One row of A and one row of B are 0, so the results of these
 * rows are really 0. */
static void check_underflow(int64_t depth) {
    const scaled_case c = {
        "mxfp8", "mxfp8", "f32", 34, 40, depth, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0};
    static const float alpha = 0x1p127f;
    enum { SMALL = 127 - 100, ZERO_ROW = 33 };
    rng r = {37};
    operands o;
    make(&o, &c, &r);
    memset(o.a.m.scales, SMALL, o.a.scale_bytes);
    memset(o.b.m.scales, SMALL, o.b.scale_bytes);
    memset((uint8_t *)o.a.m.data + ZERO_ROW * c.k, 0, (size_t)c.k);
    memset((uint8_t *)o.b.m.data + ZERO_ROW * c.k, 0, (size_t)c.k);
    o.desc.alpha = &alpha;
    multiply(&o);
    check_results(&c, &o);
    release(&o);
}

static void test_underflow(void **state) {
    (void)state;
    need_device();
    check_underflow(96);
}

static void test_small_m_underflow(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    check_underflow(96);
    check_underflow(400);
}

enum { ROWS = 140, COLS = 205, DEPTH = 480 };

static void make_product(operands *o, const char *format, int64_t rows, rng *r) {
    const scaled_case c = {.a = format,
                           .b = format,
                           .d = "f32",
                           .m = rows,
                           .n = COLS,
                           .k = DEPTH,
                           .layout = BSMM_LAYOUT_ROW_MAJOR};
    make(o, &c, r);
}

static void test_column_order_is_refused(void **state) {
    (void)state;
    need_device();
    rng r = {18};
    operands o;
    make_product(&o, "mxfp8", ROWS, &r);
    bsmm_matrix *const sides[] = {&o.a.m, &o.b.m};
    assert_true(explain(&o).accepts);
    for (int i = 0; i < 2; i++) {
        const bsmm_matrix stored = *sides[i];
        sides[i]->order = BSMM_ORDER_COL;
        sides[i]->ld = stored.rows;
        assert_false(explain(&o).accepts);
        assert_string_equal(explain(&o).reason,
                            i ? "B is ORDER_COL; the kernel takes only ORDER_ROW"
                              : "A is ORDER_COL; the kernel takes only ORDER_ROW");
        *sides[i] = stored;
    }
    release(&o);
}

/* Tests that a second run of a product gives bitwise identical results. Tests also that a
 * batch-invariant product with only some of the rows of A gives bitwise identical results for these
 * rows. */
static void check_same_bits(const char *const *formats, size_t count) {
    enum { FIRST = 5, COUNT = 7 };
    rng r = {17};
    for (size_t i = 0; i < count; i++) {
        operands o;
        make_product(&o, formats[i], ROWS, &r);
        o.desc.flags = BSMM_MATMUL_BATCH_INVARIANT;
        multiply(&o);
        float *before = copy_of(o.d.m.data, o.d.data_bytes);
        multiply(&o);
        assert_memory_equal(o.d.m.data, before, o.d.data_bytes);
        bsmm_matrix rows = rows_of(&o.a.m, FIRST, COUNT), some = rows_of(&o.d.m, FIRST, COUNT);
        o.desc.a = &rows, o.desc.d = &some;
        multiply(&o);
        assert_memory_equal((float *)o.d.m.data + FIRST * COLS, before + FIRST * COLS,
                            COUNT * COLS * sizeof(float));
        free(before);
        release(&o);
    }
}

static void test_same_bits(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp4", "nvfp4"};
    (void)state;
    need_device();
    check_same_bits(formats, BSMM_COUNT(formats));
}

static void test_wide_same_bits(void **state) {
    static const char *const formats[] = {"bf16", "f16"};
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide");
    check_same_bits(formats, BSMM_COUNT(formats));
}

/* Tests products of bf16 that are too small for fp32, so that the accumulators become 0. The kernel
 * must compute these results again in double. */
static void test_wide_underflow(void **state) {
    static const scaled_case c = {
        "bf16", "bf16", "f32", 34, 40, 96, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0};
    static const float alpha = 0x1p127f;
    enum { ZERO_ROW = 33, TINY = 27 << 7 };
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide");
    rng r = {43};
    operands o;
    make(&o, &c, &r);
    test_matrix *const sides[] = {&o.a, &o.b};
    for (int i = 0; i < 2; i++) {
        uint16_t *codes = sides[i]->m.data;
        for (size_t k = 0; k < sides[i]->data_bytes / 2; k++)
            codes[k] = (uint16_t)((codes[k] & 0x807f) | TINY);
        memset(codes + ZERO_ROW * c.k, 0, (size_t)c.k * 2);
    }
    o.desc.alpha = &alpha;
    multiply(&o);
    check_results(&c, &o);
    release(&o);
}

/* Tests a batch-invariant product with few rows of A. Its rows must have the bits that they have in
 * a product with many rows, which another kernel computes. */
static void test_small_m_same_bits(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp4", "nvfp4"};
    static const int64_t counts[] = {1, 20, 64};
    enum { FIRST = 5 };
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    rng r = {41};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        operands o;
        make_product(&o, formats[i], ROWS, &r);
        o.desc.kernel = "cuda_sm100f_scaled";
        o.desc.flags = BSMM_MATMUL_BATCH_INVARIANT;
        multiply(&o);
        float *before = copy_of(o.d.m.data, o.d.data_bytes);
        o.desc.kernel = kernel;
        for (size_t k = 0; k < BSMM_COUNT(counts); k++) {
            bsmm_matrix rows = rows_of(&o.a.m, FIRST, counts[k]),
                        some = rows_of(&o.d.m, FIRST, counts[k]);
            o.desc.a = &rows, o.desc.d = &some;
            multiply(&o);
            assert_memory_equal((float *)o.d.m.data + FIRST * COLS, before + FIRST * COLS,
                                (size_t)counts[k] * COLS * sizeof(float));
        }
        free(before);
        release(&o);
    }
}

static void check_epilogues(const char *format, int64_t rows) {
    static const char *const results[] = {"f32", "bf16", "f16", "e5m2"};
    rng r = {23};
    operands o;
    make_product(&o, format, rows, &r);
    for (size_t i = 0; i < BSMM_COUNT(results); i++) {
        check_epilogue(&o, results[i], BSMM_ORDER_ROW, &r);
        check_epilogue(&o, results[i], BSMM_ORDER_COL, &r);
    }
    release(&o);
}

static void test_epilogue(void **state) {
    (void)state;
    need_device();
    check_epilogues("mxfp8", ROWS);
}

static void test_small_m_epilogue(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled_small_m");
    check_epilogues("mxfp8", 19);
}

static void test_wide_epilogue(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_wide");
    check_epilogues("bf16", 19);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_small_m_cases),
        cmocka_unit_test(test_fp8_cases),
        cmocka_unit_test(test_wide_cases),
        cmocka_unit_test(test_wide_groups_cases),
        cmocka_unit_test(test_wide_underflow),
        cmocka_unit_test(test_wide_same_bits),
        cmocka_unit_test(test_wide_epilogue),
        cmocka_unit_test(test_negative_scales),
        cmocka_unit_test(test_small_m_negative_scales),
        cmocka_unit_test(test_underflow),
        cmocka_unit_test(test_small_m_underflow),
        cmocka_unit_test(test_column_order_is_refused),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_small_m_same_bits),
        cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_small_m_epilogue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
