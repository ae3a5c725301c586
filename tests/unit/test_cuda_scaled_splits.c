/* Tests split-K of the kernel cuda_sm100f_scaled on Blackwell. D has so few tiles that several
 * groups of thread blocks divide the K of each tile among them. The test is skipped unless the
 * device is a real or simulated B200. */
#include "scaled_product.h"

/* Holds a product and the number of groups (of one or two thread blocks) that divide its K on a
 * simulated B200 (sm_100) with 6 SMs. */
typedef struct split_case {
    scaled_case product;
    uint32_t parts;
} split_case;

/* On 6 SMs, 2 to 6 thread blocks or 2 to 3 pairs of them divide K. In some products K is odd, the
 * last k block is short, the parts have different lengths, or parts have no columns of D to store,
 * since D is narrower than the tile. In the last product, D has two tiles. Three thread blocks for
 * each tile would fit on 6 SMs, but two clusters of three may not run at once, because a cluster
 * lies in one GPC (host/clusters.h). */
static const split_case split_cases[] = {
    {{"mxfp8", "mxfp8", "bf16", 128, 192, 2048, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 2},
    {{"mxfp8", "mxfp8_e5m2", "f32", 70, 40, 2209, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0}, 6},
    {{"mxfp8", "mxfp8", "f16", 100, 131, 1999, FILL_ORDINARY, BSMM_LAYOUT_COL_MAJOR, 1}, 2},
    {{"mxfp8", "mxfp8", "e4m3", 140, 128, 1664, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 3},
    {{"mxfp4", "mxfp4", "bf16", 256, 248, 3104, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 3},
    {{"mxfp4", "mxfp4", "f32", 66, 64, 3649, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0}, 4},
    {{"nvfp4", "nvfp4", "f16", 128, 136, 4000, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 2},
    {{"nvfp4", "nvfp4", "f32", 150, 70, 3377, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0}, 3},
    {{"mxfp8", "mxfp4", "f32", 130, 250, 2272, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 3},
    {{"mxfp6_e2m3", "mxfp6_e3m2", "e5m2", 90, 96, 2080, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 6},
    {{"mxfp8", "mxfp8", "f32", 3, 40, 2080, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0}, 6},
    {{"mxfp4", "mxfp4", "bf16", 130, 4, 4096, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 0}, 2},
    {{"mxfp8", "mxfp8", "bf16", 128, 384, 4096, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 2},
};

/* Returns the number of SMs of the device under test. */
static uint32_t count_sms(void) {
    bsmm_local_device d = BSMM_INIT(bsmm_local_device);
    for (uint32_t i = 0; bsmm_local_device_at(i, &d) == BSMM_OK; i++)
        if (strcmp(d.name, device) == 0) return d.cores;
    return 0;
}

/* Checks that the kernel divides the K of this product among several groups of thread blocks. On a
 * device with 6 SMs, there must be `parts` groups. */
static void check_parts(const operands *o, uint32_t parts) {
    const bsmm_explanation e = explain(o);
    if (!e.accepts) fail_msg("%s refuses: %s", kernel, e.reason);
    if (count_sms() == 6)
        assert_int_equal(e.k_parts, parts);
    else
        assert_true(e.k_parts > 1);
}

/* Multiplies twice. Both results must have the same bits, and the first is compared with sums in
 * double. */
static void test_split_cases(void **state) {
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled");
    rng r = {51};
    for (size_t i = 0; i < BSMM_COUNT(split_cases); i++) {
        operands o;
        make(&o, &split_cases[i].product, &r);
        check_parts(&o, split_cases[i].parts);
        multiply(&o);
        check_results(&split_cases[i].product, &o);
        void *before = copy_of(o.d.m.data, o.d.data_bytes);
        multiply(&o);
        assert_memory_equal(o.d.m.data, before, o.d.data_bytes);
        free(before);
        release(&o);
    }
}

/* Tests a negative scale with split-K. Only the thread block of one part of K reads the scale, but
 * all thread blocks that store results of the scale's row or column must learn that it is
 * negative. */
static void test_split_negative_scales(void **state) {
    static const split_case some[] = {
        {{"nvfp4", "nvfp4", "f32", 2, 3, 3600, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 4},
        {{"nvfp4", "nvfp4", "bf16", 129, 1, 3616, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0}, 2}};
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled");
    rng r = {53};
    for (size_t i = 0; i < BSMM_COUNT(some); i++) {
        operands o;
        make(&o, &some[i].product, &r);
        check_parts(&o, some[i].parts);
        release(&o);
        check_negative_scales(&some[i].product, 1);
    }
}

/* Tests the epilogue of products with split-K. The test computes each product twice. The first run
 * has no alpha, beta, C and bias, and gives `sum`. The D of the second run must be alpha * sum +
 * beta * C + bias, rounded once. D has several element types and both orders. */
static void test_split_epilogue(void **state) {
    static const char *const results[] = {"f32", "bf16", "f16", "e5m2"};
    static const int64_t rows[] = {40, 130};
    static const uint32_t parts[] = {6, 3};
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled");
    rng r = {57};
    for (size_t i = 0; i < BSMM_COUNT(rows) * BSMM_COUNT(results); i++) {
        const scaled_case c = {"mxfp8", "mxfp8", "f32",         rows[i % BSMM_COUNT(rows)],
                               77,      2049,    FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR,
                               0};
        operands o;
        make(&o, &c, &r);
        check_parts(&o, parts[i % BSMM_COUNT(rows)]);
        check_epilogue(&o, results[i / BSMM_COUNT(rows)], i / 2 % 2, &r);
        release(&o);
    }
}

/* Tests products with the flag BSMM_MATMUL_BATCH_INVARIANT, for which the kernel must not split K,
 * although it splits K of the same product without the flag. A second product takes only COUNT of
 * the M rows of A. Its rows of D must be bitwise identical to the same rows of the first product.
 */
static void test_split_invariance(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp4", "nvfp4"};
    static const uint32_t parts[] = {2, 2, 2};
    enum { FIRST = 5, COUNT = 70, M = 140, N = 64 };
    (void)state;
    use_sm100_kernel("cuda_sm100f_scaled");
    rng r = {59};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        const scaled_case c = {
            formats[i], formats[i], "f32", M, N, 4096, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0};
        operands o;
        make(&o, &c, &r);
        check_parts(&o, parts[i]);
        o.desc.flags = BSMM_MATMUL_BATCH_INVARIANT;
        assert_int_equal(explain(&o).k_parts, 1);
        multiply(&o);
        float *before = copy_of(o.d.m.data, o.d.data_bytes);
        bsmm_matrix rows = rows_of(&o.a.m, FIRST, COUNT), some = rows_of(&o.d.m, FIRST, COUNT);
        o.desc.a = &rows, o.desc.d = &some;
        multiply(&o);
        assert_memory_equal((float *)o.d.m.data + FIRST * N, before + FIRST * N,
                            COUNT * N * sizeof(float));
        free(before);
        release(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_cases),
        cmocka_unit_test(test_split_negative_scales),
        cmocka_unit_test(test_split_epilogue),
        cmocka_unit_test(test_split_invariance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
