/* Tests conversions between formats. A conversion must keep every value exactly, including the
 * signs of zeros. If the new format cannot represent a block, the conversion must fail and name the
 * block. */
#include "operand.h"
#include "stored.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Fails unless all values of the two matrices are equal, including their signs. NaN equals NaN. */
static void assert_same_values(const test_matrix *a, const test_matrix *b) {
    for (int64_t r = 0; r < a->m.rows; r++)
        for (int64_t c = 0; c < a->m.cols; c++) {
            double x = test_matrix_value(a, r, c), y = test_matrix_value(b, r, c);
            bool same = isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
            if (!same) fail_msg("(%d, %d) is %a; must be %a", (int)r, (int)c, y, x);
        }
}

static bsmm_matrix shaped(const char *format, int64_t rows, int64_t cols, uint32_t order,
                          uint32_t layout) {
    bsmm_matrix m = describe(format_named(format), rows, cols);
    m.order = order;
    if (m.format.scale != BSMM_SCALE_NONE) m.scale_layout = layout;
    return m;
}

static void check_same(const char *format, int64_t rows, int64_t cols, rng *r) {
    static const uint32_t layouts[] = {BSMM_LAYOUT_ROW_MAJOR, BSMM_LAYOUT_NV_128X4,
                                       BSMM_LAYOUT_CDNA4_MFMA32, BSMM_LAYOUT_CUBLAS_VEC128};
    for (uint32_t i = 0; i < 4; i++) {
        test_matrix src, dst;
        bsmm_matrix to = shaped(format, rows, cols, i / 2, layouts[(i + 1) % 4]);
        if (i == 3) to.ld = bsmm_round_up(rows > cols ? rows : cols, 4) + 8;
        test_matrix_make(&src, shaped(format, rows, cols, i % 2, layouts[i]), FILL_SPECIAL, r);
        test_matrix_make(&dst, to, FILL_SPECIAL, r);
        float level = 3;
        if (i == 1) src.m.global_scale = &level, dst.m.global_scale = &dst.global;
        if (bsmm_convert(&src.m, &dst.m) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        assert_same_values(&src, &dst);
        test_matrix_free(&src);
        test_matrix_free(&dst);
    }
}

static void test_every_format_to_itself(void **state) {
    (void)state;
    rng r = {7};
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++) {
        check_same(preset.name, 37, 165, &r);
        check_same(preset.name, 1, 1, &r);
        check_same(preset.name, 0, 16, &r);
    }
    for (uint32_t elem = next_elem(BSMM_ELEM_NONE); elem; elem = next_elem(elem))
        check_same(bsmm_elem_row(elem)->name, 9, 31, &r);
    /* A matrix of this size is so large that the conversion divides it among several threads. */
    check_same("mxfp4", 67, 1031, &r);
}

/* Tests that a conversion of f32 to f32 keeps the payloads of NaNs. It must copy codes, because
 * converting values would lose the payloads. */
static void test_codes_are_copied(void **state) {
    (void)state;
    uint32_t from[] = {0x7f800001, 0x80000000, 0xffc12345, 1}, to[4] = {0};
    bsmm_matrix src = describe(format_named("f32"), 2, 2), dst = src;
    src.data = from;
    dst.data = to;
    dst.order = BSMM_ORDER_COL;
    assert_int_equal(bsmm_convert(&src, &dst), BSMM_OK);
    const uint32_t want[] = {from[0], from[2], from[1], from[3]};
    assert_memory_equal(to, want, sizeof want);
}

static void test_second_level_is_kept(void **state) {
    (void)state;
    rng r = {8};
    test_matrix src, dst;
    test_matrix_make(&src, shaped("nvfp4", 3, 40, 0, 0), FILL_ORDINARY, &r);
    test_matrix_make(&dst, shaped("nvfp4", 3, 40, 1, 0), FILL_ORDINARY, &r);
    src.m.global_scale = &src.global;
    src.global = 0.25f;
    assert_int_equal(bsmm_convert(&src.m, &dst.m), BSMM_E_INVALID);
    dst.m.global_scale = &dst.global;
    dst.m.global_kind = BSMM_GLOBAL_DIVISOR;
    assert_int_equal(bsmm_convert(&src.m, &dst.m), BSMM_OK);
    assert_true(dst.global == 4);
    assert_same_values(&src, &dst);
    src.global = 0.3f;
    assert_int_equal(bsmm_convert(&src.m, &dst.m), BSMM_E_RANGE);
    assert_true(dst.global == 4);
    src.m.global_scale = NULL;
    assert_int_equal(bsmm_convert(&src.m, &dst.m), BSMM_OK);
    assert_true(dst.global == 1);
    test_matrix_free(&src);
    test_matrix_free(&dst);
}

typedef struct target {
    const char *format;
    int spread;
    bool level; /* `level` is true if the format needs a second-level scale. */
} target;

static const target targets[] = {
    {"nvfp4", 17, true}, {"fp8_block128", 14, false}, {"fp8_group128", 14, false}};

static void set_exponent(test_matrix *t, int64_t r, int64_t block, int exponent) {
    uint64_t at;
    assert_int_equal(bsmm_scale_offset(&t->m, r, block, &at), BSMM_OK);
    bsmm_scale_store_code(BSMM_SCALE_E8M0, t->m.scales, at, (uint32_t)(exponent + 127));
}

static void set_exponents(test_matrix *t, int low, int high, rng *r) {
    int64_t blocks = bsmm_ceil_div(t->m.cols, 32);
    for (int64_t i = 0; i < t->m.rows; i++)
        for (int64_t b = 0; b < blocks; b++)
            set_exponent(t, i, b, low + (int)rng_below(r, (uint32_t)(high - low + 1)));
}

static void set_codes(test_matrix *t, int64_t r, int64_t block, uint32_t code) {
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(&t->m, "t", &o), BSMM_OK);
    for (int64_t c = 32 * block; c < bsmm_min_i64(32 * block + 32, t->m.cols); c++)
        bsmm_elem_store(BSMM_ELEM_E2M1, t->m.data, bsmm_operand_index(&o, r, c), code);
}

typedef struct pair {
    test_matrix src, dst;
} pair;

static void make_pair(pair *p, const target *to, int64_t rows, int64_t cols, uint32_t order,
                      rng *r) {
    uint32_t layout = order ? BSMM_LAYOUT_NV_128X4 : BSMM_LAYOUT_ROW_MAJOR;
    test_matrix_make(&p->src, shaped("mxfp4", rows, cols, order, layout), FILL_ORDINARY, r);
    test_matrix_make(&p->dst, shaped(to->format, rows, cols, !order, layout), FILL_SPECIAL, r);
    if (to->level) p->dst.m.global_scale = &p->dst.global;
}

static void free_pair(pair *p) {
    test_matrix_free(&p->src);
    test_matrix_free(&p->dst);
}

/* Tests conversions of matrices whose e8m0 scales cover the largest range of exponents that the
 * destination format can represent. The range begins at various e8m0 codes, and the matrices have
 * various shapes. */
static void test_values_are_kept(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {5, 70}, {130, 260}, {256, 129}, {0, 32}};
    static const uint32_t kinds[] = {BSMM_GLOBAL_MULTIPLIER, BSMM_GLOBAL_DIVISOR};
    rng r = {3};
    for (size_t t = 0; t < BSMM_COUNT(targets); t++)
        for (size_t s = 0; s < BSMM_COUNT(shapes); s++)
            for (int top = -127 + targets[t].spread; top <= 127; top += 11) {
                pair p;
                make_pair(&p, &targets[t], shapes[s][0], shapes[s][1], (uint32_t)top & 1, &r);
                p.dst.m.global_kind = targets[t].level ? kinds[s & 1] : 0;
                set_exponents(&p.src, top - targets[t].spread, top, &r);
                if (bsmm_convert(&p.src.m, &p.dst.m) != BSMM_OK)
                    fail_msg("%s", bsmm_error_message());
                assert_same_values(&p.src, &p.dst);
                free_pair(&p);
            }
}

/* Tests conversions from a row-major mxfp4 matrix to a row-major matrix. Such conversions have a
 * fast path for scale blocks whose codes fill whole bytes. An unreadable page follows the
 * destination matrix, so a write past the end of that matrix crashes the test. */
static void test_rows_to_rows(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 32}, {3, 64}, {130, 160}, {5, 72}};
    rng r = {31};
    for (size_t t = 0; t < BSMM_COUNT(targets); t++)
        for (size_t s = 0; s < BSMM_COUNT(shapes); s++) {
            pair p;
            make_pair(&p, &targets[t], shapes[s][0], shapes[s][1], 1, &r);
            test_matrix_free(&p.src);
            test_matrix_make(&p.src,
                             shaped("mxfp4", shapes[s][0], shapes[s][1], 0, BSMM_LAYOUT_ROW_MAJOR),
                             FILL_ORDINARY, &r);
            set_exponents(&p.src, 2 - targets[t].spread, 2, &r);
            assert_int_equal(p.dst.m.order, BSMM_ORDER_ROW);
            if (bsmm_convert(&p.src.m, &p.dst.m) != BSMM_OK) fail_msg("%s", bsmm_error_message());
            assert_same_values(&p.src, &p.dst);
            free_pair(&p);
        }
}

/* Tests a matrix with a very large scale in one block and a very small scale in another one. The
 * destination format limits the difference between the exponents of the two scales. If the
 * difference is just at this limit, the conversion must succeed. If it is larger by one, the
 * conversion must fail and leave the destination unchanged. */
static void test_boundary_of_the_spread(void **state) {
    (void)state;
    rng r = {4};
    for (size_t t = 0; t < BSMM_COUNT(targets); t++)
        for (int more = 0; more <= 1; more++) {
            pair p;
            char name[64];
            int spread = targets[t].spread + more;
            make_pair(&p, &targets[t], 40, 128, 0, &r);
            set_exponents(&p.src, -3, -3, &r);
            set_codes(&p.src, 39, 1, 5);
            set_codes(&p.src, 39, 2, 0xf);
            set_exponent(&p.src, 39, 1, 5);
            set_exponent(&p.src, 39, 2, 5 - spread);
            memset(p.dst.m.data, 0x5a, p.dst.data_bytes);
            bsmm_status status = bsmm_convert(&p.src.m, &p.dst.m);
            assert_int_equal(status, more ? BSMM_E_RANGE : BSMM_OK);
            if (!more) assert_same_values(&p.src, &p.dst);
            snprintf(name, sizeof name, "block (row 39, block column 2) has exponent %d",
                     5 - spread);
            if (more) assert_non_null(strstr(bsmm_error_message(), name));
            for (uint64_t i = 0; more && i < p.dst.data_bytes; i++)
                assert_int_equal(((uint8_t *)p.dst.m.data)[i], 0x5a);
            free_pair(&p);
        }
}

/* Tests a block of zeros with various scales. The conversion must ignore its scale and keep the
 * signs of its zeros. */
static void test_blocks_of_zeros_take_no_part(void **state) {
    (void)state;
    rng r = {5};
    for (size_t t = 0; t < BSMM_COUNT(targets); t++) {
        pair p;
        make_pair(&p, &targets[t], 2, 128, 0, &r);
        set_exponents(&p.src, 0, 2, &r);
        set_codes(&p.src, 0, 1, 0), set_exponent(&p.src, 0, 1, 127);
        set_codes(&p.src, 1, 2, 8), set_exponent(&p.src, 1, 2, -127);
        assert_int_equal(bsmm_convert(&p.src.m, &p.dst.m), BSMM_OK);
        assert_same_values(&p.src, &p.dst);
        for (int64_t i = 0; i < 2; i++)
            for (int64_t b = 0; b < 4; b++)
                set_codes(&p.src, i, b, 8);
        assert_int_equal(bsmm_convert(&p.src.m, &p.dst.m), BSMM_OK);
        assert_same_values(&p.src, &p.dst);
        assert_true(p.dst.global == 1);
        free_pair(&p);
    }
}

static void test_nan_blocks_are_refused(void **state) {
    (void)state;
    rng r = {6};
    for (size_t t = 0; t < BSMM_COUNT(targets); t++) {
        pair p;
        make_pair(&p, &targets[t], 3, 100, 0, &r);
        set_codes(&p.src, 2, 3, 0);
        set_exponent(&p.src, 2, 3, 128);
        assert_int_equal(bsmm_convert(&p.src.m, &p.dst.m), BSMM_E_RANGE);
        assert_non_null(strstr(bsmm_error_message(), "block (row 2, block column 3) is NaN"));
        free_pair(&p);
    }
}

/* Tests the scales that the conversion from mxfp4 to nvfp4 and to fp8 chooses. Let 2^e be the
 * largest block scale of the mxfp4 matrix. The second-level scale of nvfp4 must then be 2^(e - 8),
 * and the fp32 scale of an fp8 block must be 2^(e - 6). But these scales may not be smaller than
 * 2^-126, the smallest normal fp32 number: if the power of two would be smaller, the scale must be
 * 2^-126. */
static void test_outer_scales(void **state) {
    (void)state;
    rng r = {9};
    static const int exponents[] = {-127, -120, 0, 127};
    static const float want[][2] = {
        {0x1p-126f, 0x1p-126f}, {0x1p-126f, 0x1p-126f}, {0x1p-8f, 0x1p-6f}, {0x1p119f, 0x1p121f}};
    for (size_t i = 0; i < BSMM_COUNT(exponents); i++)
        for (size_t t = 0; t < 2; t++) {
            pair p;
            make_pair(&p, &targets[t], 1, 32, 0, &r);
            set_exponent(&p.src, 0, 0, exponents[i]);
            set_codes(&p.src, 0, 0, 0xf);
            assert_int_equal(bsmm_convert(&p.src.m, &p.dst.m), BSMM_OK);
            float outer = t == 0 ? p.dst.global : *(float *)p.dst.m.scales;
            assert_true(outer == want[i][t]);
            assert_same_values(&p.src, &p.dst);
            free_pair(&p);
        }
}

static void test_other_pairs_are_unsupported(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"nvfp4", "mxfp4"},
                                           {"mxfp8", "fp8_block128"},
                                           {"mxfp4", "mxfp8"},
                                           {"bf16", "f32"},
                                           {"mxfp4", "fp8_block128_fnuz"}};
    rng r = {10};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        test_matrix src, dst;
        test_matrix_make(&src, shaped(pairs[i][0], 4, 64, 0, 0), FILL_ORDINARY, &r);
        test_matrix_make(&dst, shaped(pairs[i][1], 4, 64, 0, 0), FILL_ORDINARY, &r);
        assert_int_equal(bsmm_convert(&src.m, &dst.m), BSMM_E_UNSUPPORTED);
        assert_non_null(strstr(bsmm_error_message(), "mxfp4 to nvfp4"));
        test_matrix_free(&src);
        test_matrix_free(&dst);
    }
}

static void test_missing_level_and_overlap(void **state) {
    (void)state;
    rng r = {11};
    pair p;
    make_pair(&p, &targets[0], 4, 64, 0, &r);
    bsmm_matrix dst = p.dst.m;
    dst.global_scale = NULL;
    assert_int_equal(bsmm_convert(&p.src.m, &dst), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "dst.global_scale"));
    /* mxfp4 and the FP8 formats have no second-level scale. */
    float one = 1;
    bsmm_matrix src = p.src.m;
    src.global_scale = &one;
    expect_failure(bsmm_convert(&src, &p.dst.m), BSMM_E_INVALID, "src.global_scale: given");
    pair fp8;
    make_pair(&fp8, &targets[1], 128, 128, 0, &r);
    src = fp8.src.m;
    src.global_scale = &one;
    expect_failure(bsmm_convert(&src, &fp8.dst.m), BSMM_E_INVALID, "global_scale: given; must be");
    src = fp8.dst.m;
    src.global_scale = &one;
    expect_failure(bsmm_convert(&fp8.src.m, &src), BSMM_E_INVALID, "global_scale: given; must be");
    free_pair(&fp8);
    dst = p.dst.m;
    dst.scales = p.src.m.data;
    dst.scale_bytes = 0;
    dst.scale_layout = 0;
    assert_int_equal(bsmm_convert(&p.src.m, &dst), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "overlaps"));
    dst = p.dst.m;
    dst.rows = 3;
    assert_int_equal(bsmm_convert(&p.src.m, &dst), BSMM_E_INVALID);
    assert_int_equal(bsmm_convert(&p.src.m, NULL), BSMM_E_INVALID);
    free_pair(&p);
}

/* Tests a matrix without columns. The conversion must return at once, even if there are very many
 * rows. */
static void test_rows_without_columns(void **state) {
    (void)state;
    float level = 0;
    bsmm_matrix src = describe(format_named("mxfp4"), (int64_t)1 << 56, 0), same = src, nv = src;
    bsmm_matrix plain = describe(format_named("f32"), src.rows, 0);
    same.order = BSMM_ORDER_COL;
    nv.format = format_named("nvfp4");
    nv.global_scale = &level;
    assert_int_equal(bsmm_convert(&src, &same), BSMM_OK);
    assert_int_equal(bsmm_convert(&src, &nv), BSMM_OK);
    assert_true(level == 1);
    assert_int_equal(bsmm_dequantize(&src, &plain), BSMM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format_to_itself),
        cmocka_unit_test(test_codes_are_copied),
        cmocka_unit_test(test_second_level_is_kept),
        cmocka_unit_test(test_values_are_kept),
        cmocka_unit_test(test_rows_to_rows),
        cmocka_unit_test(test_boundary_of_the_spread),
        cmocka_unit_test(test_blocks_of_zeros_take_no_part),
        cmocka_unit_test(test_nan_blocks_are_refused),
        cmocka_unit_test(test_outer_scales),
        cmocka_unit_test(test_other_pairs_are_unsupported),
        cmocka_unit_test(test_missing_level_and_overlap),
        cmocka_unit_test(test_rows_without_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
