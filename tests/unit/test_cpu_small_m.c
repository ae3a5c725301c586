/* Tests the CPU kernels for few rows of A, which read B as it is stored. Results must be bitwise
 * identical to those of kernels that pack B. */
#include "base/cpu.h"
#include "cpu_hooks.h"
#include "product.h"
#include "sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_same(product *p, const char *engine, const char *decode) {
    float *packed = result_of(p, engine), *stored = result_of(p, decode);
    assert_memory_equal(stored, packed, (size_t)(p->d.rows * p->d.cols) * sizeof(float));
    free(packed);
    free(stored);
}

static void check_bf16_dots(product *p) {
    bsmm_cpu_add_features(BSMM_CPU_TWO_PORTS);
    check_same(p, "cpu_avx512_bf16dot", "cpu_avx512_bf16dot_small_m");
    bsmm_cpu_add_features(0);
    bsmm_cpu_mask_features(~(uint32_t)BSMM_CPU_TWO_PORTS);
    check_same(p, "cpu_avx512_bf16dot", "cpu_avx512_bf16dot_small_m");
    bsmm_cpu_mask_features(~0u);
}

static bool has_bf16_dots(void) {
    uint32_t needed = BSMM_CPU_AVX512_BF16 | BSMM_CPU_AVX512_VBMI;
    return (bsmm_cpu_features() & needed) == needed;
}

static void check_decoding(product *p) {
    check_same(p, "cpu_avx2_f32", "cpu_avx2_f32_small_m");
    if (has_bf16_dots() && p->a.m.format.elem != BSMM_ELEM_F32) check_bf16_dots(p);
}

static void check_int8_decoding(product *p) {
    uint32_t needed = BSMM_CPU_AVX512_VNNI | BSMM_CPU_AVX512_VBMI;
    check_same(p, "cpu_avx2_int8dot", "cpu_avx2_int8dot_small_m");
    if ((bsmm_cpu_features() & needed) == needed && p->a.m.rows <= 16)
        check_same(p, "cpu_avx512_int8dot", "cpu_avx512_int8dot_small_m");
}

/* N is no multiple of the number of rows of B that a kernel processes together, and K is no
 * multiple of the number of elements that it decodes together. */
enum { DECODED_N = 141, DECODED_K = 722 };

static const int64_t decoded_rows[] = {1, 2, 3, 5, 8, 9, 16};

static void test_decoding_agrees(void **state) {
    (void)state;
    static const char *const as[] = {"bf16", "f32", "mxfp8", "fp8_group128"};
    static const char *const bs[] = {"mxfp8",        "mxfp8_e5m2",  "mxfp6_e2m3", "mxfp6_e3m2",
                                     "mxfp4",        "nvfp4",       "e4m3",       "e5m2",
                                     "fp8_group128", "fp8_block128"};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
    rng r = {7};
    for (size_t i = 0; i < BSMM_COUNT(as) * BSMM_COUNT(bs); i++)
        for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++)
            for (size_t m = i % 2; m < BSMM_COUNT(decoded_rows); m += 2) {
                if (!test_takes_next()) continue;
                product p;
                product_make(&p, as[i % 4], bs[i / 4], decoded_rows[m], DECODED_N, DECODED_K, how,
                             &r);
                check_decoding(&p);
                product_free(&p);
            }
}

/* Tests matrices B with a few unusual panels. A panel is the rows of B that a kernel processes
 * together. The kernel decodes most panels in registers, but packs a panel that has a NaN or
 * extreme scales. */
static void test_decoding_unusual(void **state) {
    (void)state;
    static const char *const bs[] = {"mxfp8", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp4"};
    static const uint8_t depths[][7] = {{20, 37, 38, 39, 52, 53, 54}, {60, 61, 62, 66, 70, 74, 90}};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
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

/* Tests results that are NaN for three reasons: a scale is NaN, an element is NaN, or a
 * second-level scale of Inf makes infinite terms of both signs. */
static void test_decoding_nan(void **state) {
    (void)state;
    static const struct {
        const char *b;
        uint8_t nan;
        bool is_scale;
    } rows[] = {{"mxfp8", 0xff, true},       {"mxfp4", 0xff, true},       {"nvfp4", 0x7f, true},
                {"nvfp4", 0xff, true},       {"mxfp8", 0x7f, false},      {"mxfp8", 0xff, false},
                {"mxfp8_e5m2", 0x7f, false}, {"mxfp8_e5m2", 0xff, false}, {"nvfp4", 0x38, true}};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
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

/* Tests rows whose number of block scales is a multiple of four, and rows with three block scales.
 * In the second case, the fourth scale of a vector load belongs to the next row. */
static void test_decoding_layouts(void **state) {
    (void)state;
    static const char *const bs[] = {"mxfp8", "mxfp4", "nvfp4"};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
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

static const char *const integers[] = {"e2m1", "e2m3", "mxfp4", "mxfp6_e2m3", "nvfp4"};

/* Tests the small-M kernels for int8 dot products with 1 to 21 rows of A, because they have
 * separate loops for 1, 2, 3 and 4 rows. With 6-bit weights there are at most 16 rows, because the
 * kernels accept no more. The values of K give rows of B that are shorter or longer than a cache
 * line. With a K of 32 to 96, a row has fewer steps (32 elements of K) than the kernels usually
 * multiply together. */
static void test_int8_decoding_agrees(void **state) {
    (void)state;
    static const struct {
        int64_t m, k;
    } sizes[] = {{1, DECODED_K}, {2, DECODED_K}, {3, 40},         {4, DECODED_K},
                 {5, 4},         {8, DECODED_K}, {15, DECODED_K}, {21, DECODED_K},
                 {1, 32},        {8, 64},        {16, 96},        {2, 160}};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
    rng r = {10};
    for (size_t i = 0; i < BSMM_COUNT(integers) * BSMM_COUNT(integers); i++)
        for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++)
            for (size_t s = (i + how) % 4; s < BSMM_COUNT(sizes); s += 4) {
                if (!test_takes_next()) continue;
                product p;
                bool is_six = strstr(integers[i % 5], "e2m3") != NULL;
                int64_t m = is_six && sizes[s].m > 16 ? 16 : sizes[s].m;
                product_make(&p, integers[i / 5], integers[i % 5], m, DECODED_N, sizes[s].k, how,
                             &r);
                check_int8_decoding(&p);
                product_free(&p);
            }
}

/* Tests matrices B with a few unusual panels (16 rows of B). The kernel decodes most panels in
 * registers and sums their products by integer loops. These loops support e8m0 scales from 2^-50 to
 * 2^50, and no NaN. A panel with any other scale is packed first instead. The test mixes both kinds
 * of panels in one B. */
static void test_int8_decoding_unusual(void **state) {
    (void)state;
    static const uint8_t codes[2][4] = {{0xff, 76, 178, 0}, {0x7f, 0xff, 0x80, 0x01}};
    static const uint8_t others[2][4] = {{120, 77, 162, 120}, {0x38, 0x38, 0x38, 0x08}};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
    rng r = {11};
    for (size_t i = 0; i < BSMM_COUNT(integers) * 6; i++) {
        bool e4m3 = i / 6 % 2;
        product p;
        product_make(&p, integers[i / 6], e4m3 ? "nvfp4" : "mxfp4", 1 + (int64_t)i % 6, DECODED_N,
                     DECODED_K, FILL_ORDINARY, &r);
        uint8_t *scales = p.b.m.scales, *data = p.b.m.data;
        size_t block = e4m3 ? 16 : 32, units = p.b.scale_bytes / DECODED_N;
        for (size_t c = 0; c < 8; c++) {
            size_t row = 16 * c + 5, unit = units - 2 - c;
            /* The scales in a row differ so much that the sum over all blocks of the row is not
             * exact in fp32. */
            for (size_t u = 0; u < units; u++)
                scales[row * units + u] = (uint8_t)(others[e4m3][c % 4] + u * 7 % 16);
            scales[row * units + unit] = codes[e4m3][c % 4];
            if (c < 4) memset(data + (row * DECODED_K + unit * block) / 2, 0, block / 2);
        }
        check_int8_decoding(&p);
        product_free(&p);
    }
}

static void test_int8_decoding_layouts(void **state) {
    (void)state;
    static const char *const bs[] = {"mxfp4", "nvfp4", "mxfp6_e2m3"};
    static const int64_t rows[] = {1, 6};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
    rng r = {12};
    for (size_t i = 0; i < BSMM_COUNT(bs) * BSMM_COUNT(rows); i++) {
        product p = {.d = describe(format_named("f32"), rows[i % 2], DECODED_N)};
        bsmm_matrix b = describe(format_named(bs[i / 2]), DECODED_N, DECODED_K);
        b.scale_layout = BSMM_LAYOUT_NV_128X4;
        test_matrix_make(&p.a, describe(format_named("nvfp4"), rows[i % 2], DECODED_K),
                         FILL_ORDINARY, &r);
        test_matrix_make(&p.b, b, FILL_ORDINARY, &r);
        p.d.data = malloc((size_t)(rows[i % 2] * DECODED_N) * sizeof(float));
        p.desc =
            (bsmm_matmul_desc){.struct_size = sizeof p.desc, .a = &p.a.m, .b = &p.b.m, .d = &p.d};
        check_int8_decoding(&p);
        product_free(&p);
    }
}

/* Tests weights in bf16. The kernel sums each chunk of 512 elements of K separately, and a chunk
 * consists of steps of 32 elements. K ends inside a step, inside a chunk, or at the end of a chunk.
 */
static void test_bf16_weights_agree(void **state) {
    (void)state;
    static const char *const as[] = {"bf16", "mxfp8", "nvfp4"};
    static const int64_t ks[] = {1, 32, 1024, DECODED_K};
    if (!has_bf16_dots()) skip();
    rng r = {11};
    for (size_t i = 0; i < BSMM_COUNT(as) * BSMM_COUNT(ks); i++)
        for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++)
            for (size_t j = (i + how) % 3; j < BSMM_COUNT(decoded_rows); j += 3) {
                product p;
                product_make(&p, as[i / BSMM_COUNT(ks)], "bf16", decoded_rows[j], DECODED_N,
                             ks[i % BSMM_COUNT(ks)], how, &r);
                check_bf16_dots(&p);
                product_free(&p);
            }
}

/* Tests one unusual element of B among elements near 1. Its magnitude is at an end of the range
 * that the kernel multiplies without packing, or it is 0, subnormal, Inf or NaN. */
static void test_bf16_weights_unusual(void **state) {
    (void)state;
    enum { EXPONENT = 1 << 7, ONE = 127 * EXPONENT, SIGN = 0x8000, ROW = 37, COLUMN = 700 };
    static const uint16_t codes[] = {ONE + 10 * EXPONENT - 1,
                                     ONE + 10 * EXPONENT,
                                     ONE - 43 * EXPONENT,
                                     ONE - 43 * EXPONENT - 1,
                                     ONE - 52 * EXPONENT,
                                     ONE - 54 * EXPONENT,
                                     ONE - 60 * EXPONENT,
                                     ONE + 127 * EXPONENT,
                                     0,
                                     SIGN,
                                     1,
                                     SIGN | 0x7f,
                                     0x7f80,
                                     SIGN | 0x7f80,
                                     0x7fc0,
                                     0xffff};
    if (!has_bf16_dots()) skip();
    rng r = {12};
    for (size_t i = 0; i < BSMM_COUNT(codes); i++) {
        product p;
        product_make(&p, "bf16", "bf16", i % 2 ? 1 : 5, DECODED_N, DECODED_K, FILL_ORDINARY, &r);
        uint16_t *b = p.b.m.data;
        for (int64_t k = 0; k < DECODED_N * DECODED_K; k++)
            b[k] = (uint16_t)(ONE | (b[k] & (SIGN | (EXPONENT - 1))));
        b[ROW * DECODED_K + COLUMN] = codes[i];
        check_bf16_dots(&p);
        product_free(&p);
    }
}

/* Tests each number of rows that fits into one tile of A, with both kinds of loops (dot products
 * and FMAs) and with weights that are stored or compact. N is 83, so some panels of B (16 rows
 * each) are multiplied side by side, and others are not. */
static void test_every_tile(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *kernel;
    } pairs[] = {
        {"mxfp4", "mxfp4", "cpu_avx512_int8dot"},
        {"nvfp4", "nvfp4", "cpu_avx512_int8dot"},
        {"mxfp6_e2m3", "mxfp6_e2m3", "cpu_avx512_int8dot"},
        {"bf16", "mxfp4", "cpu_avx512_bf16dot"},
        {"bf16", "nvfp4", "cpu_avx512_bf16dot"},
        {"bf16", "mxfp6_e3m2", "cpu_avx512_bf16dot"},
        {"mxfp8", "mxfp8", "cpu_avx512_bf16dot"},
        {"fp8_group128", "fp8_block128", "cpu_avx512_bf16dot"},
        {"fp8_group128", "mxfp4", "cpu_avx512_bf16dot"},
        {"bf16", "bf16", "cpu_avx512_bf16dot"},
    };
    uint32_t int8 = BSMM_CPU_AVX512_VNNI | BSMM_CPU_AVX512_VBMI;
    if ((bsmm_cpu_features() & int8) != int8 || !has_bf16_dots()) skip();
    rng r = {16};
    for (size_t i = 0; i < BSMM_COUNT(pairs) * 16; i++) {
        product p;
        const char *kernel = pairs[i / 16].kernel;
        product_make(&p, pairs[i / 16].a, pairs[i / 16].b, 1 + (int64_t)i % 16, 83, 416,
                     FILL_ORDINARY, &r);
        for (uint32_t by_fma = 0; by_fma < 2; by_fma++)
            for (uint32_t form = 0; form <= BSMM_PACKED_COMPACT; form += BSMM_PACKED_COMPACT) {
                bsmm_cpu_add_features(by_fma ? BSMM_CPU_TWO_PORTS : 0);
                bsmm_cpu_mask_features(by_fma ? ~0u : ~(uint32_t)BSMM_CPU_TWO_PORTS);
                p.desc.b_packed = form;
                bsmm_plan *plan = NULL;
                assert_int_equal(bsmm_plan_create(&p.desc, &plan), BSMM_OK);
                assert_non_null(strstr(bsmm_plan_kernel(plan), "small_m"));
                product_run(&p, plan);
                bsmm_plan_destroy(plan);
                product_check(&p, kernel);
            }
        product_free(&p);
    }
    bsmm_cpu_add_features(0);
    bsmm_cpu_mask_features(~0u);
}

/* Tests numbers of rows of A that need several tiles, and the largest number for which the library
 * chooses each kernel. With compact weights, this largest number is higher for the AVX-512 kernels.
 */
static void test_many_tiles(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *kernel;
        uint32_t form;
        int64_t most;
        /* The library computes products of up to `most` rows of A by a kernel for few rows, which
         * does not pack B. The number of rows `gap` is an exception: with it, the library chooses
         * the kernel that packs B, although `gap` is below `most`. 0 means no exception. */
        int64_t gap;
    } rows[] = {
        {"mxfp4", "mxfp4", "cpu_avx512_int8dot", BSMM_PACKED_NONE, 64, 0},
        {"mxfp4", "mxfp4", "cpu_avx512_int8dot", BSMM_PACKED_COMPACT, 144, 0},
        {"nvfp4", "nvfp4", "cpu_avx512_int8dot", BSMM_PACKED_COMPACT, 144, 0},
        {"mxfp6_e2m3", "mxfp6_e2m3", "cpu_avx512_int8dot", BSMM_PACKED_NONE, 32, 17},
        {"mxfp6_e2m3", "mxfp4", "cpu_avx512_int8dot", BSMM_PACKED_NONE, 64, 0},
        {"bf16", "mxfp4", "cpu_avx512_bf16dot", BSMM_PACKED_NONE, 48, 0},
        {"bf16", "nvfp4", "cpu_avx512_bf16dot", BSMM_PACKED_COMPACT, 96, 0},
        {"mxfp8", "mxfp8", "cpu_avx512_bf16dot", BSMM_PACKED_COMPACT, 144, 0},
        {"fp8_group128", "fp8_block128", "cpu_avx512_bf16dot", BSMM_PACKED_NONE, 48, 0},
        {"bf16", "bf16", "cpu_avx512_bf16dot", BSMM_PACKED_COMPACT, 144, 0},
        {"f16", "mxfp6_e3m2", "cpu_avx2_f32", BSMM_PACKED_NONE, 48, 0},
    };
    static const int64_t fewer[] = {17, 21, 33};
    uint32_t int8 = BSMM_CPU_AVX512_VNNI | BSMM_CPU_AVX512_VBMI;
    if ((bsmm_cpu_features() & int8) != int8 || !has_bf16_dots()) skip();
    rng r = {15};
    bsmm_cpu_mask_features(~(uint32_t)BSMM_CPU_TWO_PORTS);
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        for (int64_t more = 0; more < 3; more++) {
            char few[64];
            int64_t m = more == 2 ? fewer[i % 3] : rows[i].most + more;
            product p;
            if (m > rows[i].most + 1) m = rows[i].most;
            snprintf(few, sizeof few, "%s_small_m", rows[i].kernel);
            product_make(&p, rows[i].a, rows[i].b, m, 67, 416, FILL_ORDINARY, &r);
            p.desc.b_packed = rows[i].form;
            bsmm_plan *plan = NULL;
            assert_int_equal(bsmm_plan_create(&p.desc, &plan), BSMM_OK);
            assert_int_equal(strcmp(bsmm_plan_kernel(plan), few) == 0,
                             m <= rows[i].most && m != rows[i].gap);
            product_run(&p, plan);
            bsmm_plan_destroy(plan);
            product_check(&p, rows[i].kernel);
            product_free(&p);
        }
    bsmm_cpu_mask_features(~0u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoding_agrees),
        cmocka_unit_test(test_decoding_unusual),
        cmocka_unit_test(test_decoding_nan),
        cmocka_unit_test(test_decoding_layouts),
        cmocka_unit_test(test_int8_decoding_agrees),
        cmocka_unit_test(test_int8_decoding_unusual),
        cmocka_unit_test(test_int8_decoding_layouts),
        cmocka_unit_test(test_bf16_weights_agree),
        cmocka_unit_test(test_bf16_weights_unusual),
        cmocka_unit_test(test_every_tile),
        cmocka_unit_test(test_many_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
