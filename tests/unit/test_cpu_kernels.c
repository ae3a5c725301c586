/* The CPU kernels beside each other: what a processor with fewer features chooses, and which
 * kernels have the same bits. That each is right is test_matmul's. */
#include "base/cpu.h"
#include "operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct product {
    test_matrix a, b;
    bsmm_matrix d;
    bsmm_matmul_desc desc;
} product;

static void product_make_of(product *p, bsmm_format a, bsmm_format b, int64_t m, int64_t n,
                            int64_t k, fill how, rng *r) {
    *p = (product){.d = describe(format_named("f32"), m, n)};
    test_matrix_make(&p->a, describe(a, m, k), how, r);
    test_matrix_make(&p->b, describe(b, n, k), how, r);
    p->d.data = malloc((size_t)(m * n) * sizeof(float));
    p->desc =
        (bsmm_matmul_desc){.struct_size = sizeof p->desc, .a = &p->a.m, .b = &p->b.m, .d = &p->d};
}

static void product_make(product *p, const char *a, const char *b, int64_t m, int64_t n, int64_t k,
                         fill how, rng *r) {
    product_make_of(p, format_named(a), format_named(b), m, n, k, how, r);
}

static void product_free(product *p) {
    test_matrix_free(&p->a);
    test_matrix_free(&p->b);
    free(p->d.data);
}

/* D by a kernel; NULL: by the one that is chosen. */
static float *result_of(product *p, const char *kernel) {
    size_t bytes = (size_t)(p->d.rows * p->d.cols) * sizeof(float);
    float *copy = malloc(bytes);
    p->desc.kernel = kernel;
    memset(p->d.data, 0xa5, bytes);
    if (bsmm_matmul(&p->desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    p->desc.kernel = NULL;
    memcpy(copy, p->d.data, bytes);
    return copy;
}

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

/* With the features masked a plan takes the expected kernel and gives its bits. */
static void test_choice_by_features(void **state) {
    (void)state;
    uint32_t here = bsmm_cpu_features();
    rng r = {1};
    for (size_t i = 0; i < BSMM_COUNT(choices); i++) {
        if (choices[i].features & ~here) continue;
        product p;
        product_make(&p, choices[i].a, choices[i].b, 40, 50, 96, FILL_ORDINARY, &r);
        float *expected = result_of(&p, choices[i].kernel);
        bsmm_cpu_mask_features(choices[i].features);
        const char *name = chosen(&p.desc);
        float *got = result_of(&p, NULL);
        bsmm_cpu_mask_features(~0u);
        assert_string_equal(name, choices[i].kernel);
        assert_memory_equal(got, expected, 40 * 50 * sizeof(float));
        free(got);
        free(expected);
        product_free(&p);
    }
}

/* A kernel whose instructions are absent refuses, whoever asks. */
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

/* The int8 engines sum the same units exactly and add them in the same order. */
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

/* ---- few rows on AVX2 ---- */

static void check_decoding(product *p) {
    float *packed = result_of(p, "cpu_avx2_f32"), *stored = result_of(p, "cpu_avx2_f32_decode");
    assert_memory_equal(stored, packed, (size_t)(p->d.rows * p->d.cols) * sizeof(float));
    free(packed);
    free(stored);
}

/* Columns of whole strips of panels and fewer, K of whole batches and a part of one. */
enum { DECODED_N = 141, DECODED_K = 722 };

static const int64_t decoded_rows[] = {1, 2, 3, 8, 9, 16};

static void test_decoding_agrees(void **state) {
    (void)state;
    static const char *const as[] = {"bf16", "f32", "mxfp8", "fp8_group128"};
    static const char *const bs[] = {"mxfp8",        "mxfp8_e5m2",  "mxfp6_e2m3", "mxfp6_e3m2",
                                     "mxfp4",        "nvfp4",       "e4m3",       "e5m2",
                                     "fp8_group128", "fp8_block128"};
    if (AVX2 & ~bsmm_cpu_features()) skip();
    rng r = {7};
    for (size_t i = 0; i < BSMM_COUNT(as) * BSMM_COUNT(bs); i++)
        for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++)
            for (size_t m = i % 2; m < BSMM_COUNT(decoded_rows); m += 2) {
                product p;
                product_make(&p, as[i % 4], bs[i / 4], decoded_rows[m], DECODED_N, DECODED_K, how,
                             &r);
                check_decoding(&p);
                product_free(&p);
            }
}

/* One code of NaN, and scales as deep as sums carry them and deeper, each in a panel of its own:
 * what is decoded and what is packed after all lie side by side. */
static void test_decoding_unusual(void **state) {
    (void)state;
    static const char *const bs[] = {"mxfp8", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp4"};
    static const uint8_t depths[][7] = {{20, 37, 38, 39, 52, 53, 54}, {60, 61, 62, 66, 70, 74, 90}};
    if (AVX2 & ~bsmm_cpu_features()) skip();
    rng r = {8};
    for (size_t i = 0; i < BSMM_COUNT(bs) * 4; i++) {
        product p;
        product_make(&p, i & 1 ? "e4m3" : "fp8_group128", bs[i / 4], 1 + (int64_t)i / 2 % 3,
                     DECODED_N, DECODED_K, FILL_ORDINARY, &r);
        uint8_t *scales = p.b.m.scales, *data = p.b.m.data;
        size_t units = p.b.scale_bytes / DECODED_N;
        for (size_t d = 0; d < 7; d++)
            scales[(16 * d + 3) * units + units - 2 - d] -= depths[i / 2 % 2][d];
        if (i < 8) data[120 * DECODED_K + 77] = i / 2 % 2 ? 0x7f : 0xff;
        check_decoding(&p);
        product_free(&p);
    }
}

/* One NaN among scales whose code is that of the next one, and among elements that are ones; and a
 * second level of Inf, under which terms of both signs are NaN. */
static void test_decoding_nan(void **state) {
    (void)state;
    static const struct {
        const char *b;
        uint8_t nan;
        bool is_scale;
    } rows[] = {{"mxfp8", 0xff, true},       {"mxfp4", 0xff, true},       {"nvfp4", 0x7f, true},
                {"nvfp4", 0xff, true},       {"mxfp8", 0x7f, false},      {"mxfp8", 0xff, false},
                {"mxfp8_e5m2", 0x7f, false}, {"mxfp8_e5m2", 0xff, false}, {"nvfp4", 0x38, true}};
    if (AVX2 & ~bsmm_cpu_features()) skip();
    rng r = {10};
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        product p;
        product_make(&p, "bf16", rows[i].b, 2, DECODED_N, DECODED_K, FILL_ORDINARY, &r);
        uint8_t *codes = rows[i].is_scale ? p.b.m.scales : p.b.m.data;
        size_t bytes = rows[i].is_scale ? p.b.scale_bytes : p.b.data_bytes;
        float level = rows[i].nan == 0x38 ? INFINITY : 1;
        if (rows[i].b[0] == 'n') p.b.m.global_scale = &level;
        memset(codes, rows[i].is_scale && rows[i].b[0] == 'm' ? 0xfe : 0x38, bytes);
        codes[5 * (bytes / DECODED_N) + 3] = rows[i].nan;
        check_decoding(&p);
        assert_true(isnan(((float *)p.d.data)[5]));
        product_free(&p);
    }
}

/* Scales that lie four in a row, and three: a fourth then lies elsewhere. */
static void test_decoding_layouts(void **state) {
    (void)state;
    static const char *const bs[] = {"mxfp8", "mxfp4", "nvfp4"};
    if (AVX2 & ~bsmm_cpu_features()) skip();
    rng r = {9};
    for (size_t i = 0; i < BSMM_COUNT(bs) * 2; i++) {
        int64_t k = i % 2 ? 128 : DECODED_K;
        product p = {.d = describe(format_named("f32"), 2, DECODED_N)};
        bsmm_matrix b = describe(format_named(bs[i / 2]), DECODED_N, k);
        b.scale_layout = i % 2 ? BSMM_LAYOUT_TILE_CONTIGUOUS : BSMM_LAYOUT_NV_128X4;
        if (i % 2) b.scale_tile_rows = b.scale_tile_cols = 3;
        test_matrix_make(&p.a, describe(format_named("bf16"), 2, k), FILL_ORDINARY, &r);
        test_matrix_make(&p.b, b, FILL_ORDINARY, &r);
        p.d.data = malloc((size_t)(2 * DECODED_N) * sizeof(float));
        p.desc =
            (bsmm_matmul_desc){.struct_size = sizeof p.desc, .a = &p.a.m, .b = &p.b.m, .d = &p.d};
        check_decoding(&p);
        product_free(&p);
    }
}

/* What kernels do where 512-bit operations have two ports has the bits of what they do elsewhere.
 */
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

/* Packed engines, and the decode kernels' tiles. */
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

/* Cache blocks are chosen by the cache's size; no bit is. More than one chunk of K of most engines;
 * rows beyond a block's and by one thread, then so few that threads cannot share them evenly, which
 * take blocks of D instead. Few sizes where AVX2 is all that there is: often that is emulated. */
static void test_caches_do_not_matter(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp4", "nvfp4", "mxfp8", "fp8_group128", "f32"};
    static const uint64_t caches[] = {1 << 14, 1ull << 40, 1 << 18, 1 << 20};
    static const struct {
        int64_t rows;
        uint32_t threads;
    } shapes[] = {{201, 1}, {39, 3}};
    if (AVX2 & ~bsmm_cpu_features()) skip(); /* cpu_f32 has blocks of one size */
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

/* The largest magnitude, with either sign. */
static void set_to_largest(test_matrix *t, bool negative) {
    double largest = bsmm_elem_row(t->m.format.elem)->max;
    set_elements(t, bsmm_elem_encode(t->m.format.elem, negative ? -largest : largest, true));
}

/* Elements as large as they get: where sums of 16 bits would saturate. */
static void test_largest_sums(void **state) {
    (void)state;
    static const bsmm_format formats[] = {{BSMM_ELEM_E2M1, 0, 0, 0},
                                          {BSMM_ELEM_E2M3, 0, 0, 0},
                                          {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16},
                                          {BSMM_ELEM_E2M3, BSMM_SCALE_E4M3, 1, 16}};
    rng r = {4};
    for (size_t i = 0; i < 16; i++)
        for (int signs = 0; signs < 4; signs++) {
            product p;
            product_make_of(&p, formats[i / 4], formats[i % 4], 9, 17, 64, FILL_ORDINARY, &r);
            set_to_largest(&p.a, signs & 1);
            set_to_largest(&p.b, signs & 2);
            bsmm_explanation e = {.struct_size = sizeof e};
            float *expected = result_of(&p, "ref");
            for (uint32_t q = 0; bsmm_explain(&p.desc, q, &e) == BSMM_OK; q++) {
                if (!e.accepts || !strstr(e.kernel, "int8")) continue;
                float *got = result_of(&p, e.kernel);
                assert_memory_equal(got, expected, 9 * 17 * sizeof(float));
                free(got);
            }
            free(expected);
            product_free(&p);
        }
}

/* Scales of 0, of either sign, among others: blocks that quantizers find empty, or below e4m3. */
static void test_zero_scales(void **state) {
    (void)state;
    static const uint8_t codes[] = {0x00, 0x38, 0x80, 0x40}; /* 0, 1, -0, 2 */
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
        cmocka_unit_test(test_refusal_without_features),
        cmocka_unit_test(test_int8_engines_agree),
        cmocka_unit_test(test_decoding_agrees),
        cmocka_unit_test(test_decoding_unusual),
        cmocka_unit_test(test_decoding_nan),
        cmocka_unit_test(test_decoding_layouts),
        cmocka_unit_test(test_ports_do_not_matter),
        cmocka_unit_test(test_caches_do_not_matter),
        cmocka_unit_test(test_largest_sums),
        cmocka_unit_test(test_zero_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
