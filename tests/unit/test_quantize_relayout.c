/* Tests copying block scales from each scale layout to each other layout. Each copy must keep
 * every code and write zeros to the padding. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    uint32_t layout, tile_rows, tile_cols;
    /* `ld_more` is the number of scales by which the stride is larger than the smallest possible
     * stride. */
    int64_t ld_more;
} layouts[] = {
    {BSMM_LAYOUT_ROW_MAJOR, 0, 0, 0},       {BSMM_LAYOUT_ROW_MAJOR, 0, 0, 3},
    {BSMM_LAYOUT_COL_MAJOR, 0, 0, 0},       {BSMM_LAYOUT_COL_MAJOR, 0, 0, 5},
    {BSMM_LAYOUT_TILE_CONTIGUOUS, 3, 2, 0}, {BSMM_LAYOUT_TILE_CONTIGUOUS, 128, 8, 0},
    {BSMM_LAYOUT_NV_128X4, 0, 0, 0},        {BSMM_LAYOUT_NV_8X4, 0, 0, 0},
    {BSMM_LAYOUT_CDNA4_MFMA16, 0, 0, 0},    {BSMM_LAYOUT_CDNA4_MFMA32, 0, 0, 0},
    {BSMM_LAYOUT_CUBLAS_VEC128, 0, 0, 0},   {BSMM_LAYOUT_CUBLAS_BLK128, 0, 0, 0},
};

static const struct {
    const char *format;
    int64_t rows, cols;
} shapes[] = {
    {"mxfp8", 1, 1},  {"mxfp4", 37, 300},       {"mxfp4", 256, 512},        {"nvfp4", 130, 100},
    {"nvfp4", 8, 64}, {"fp8_group128", 5, 700}, {"fp8_block128", 400, 900}, {"mxfp8", 0, 64},
};

static bsmm_matrix described(size_t shape, size_t layout) {
    bsmm_matrix m =
        describe(format_named(shapes[shape].format), shapes[shape].rows, shapes[shape].cols);
    m.scale_layout = layouts[layout].layout;
    m.scale_tile_rows = layouts[layout].tile_rows;
    m.scale_tile_cols = layouts[layout].tile_cols;
    if (layouts[layout].ld_more)
        m.scale_ld =
            bsmm_ceil_div(layouts[layout].layout == BSMM_LAYOUT_ROW_MAJOR ? m.cols : m.rows,
                          layouts[layout].layout == BSMM_LAYOUT_ROW_MAJOR ? m.format.block_cols
                                                                          : m.format.block_rows) +
            layouts[layout].ld_more;
    return m;
}

static uint32_t code_at(const bsmm_matrix *m, int64_t r, int64_t c) {
    uint64_t at;
    assert_int_equal(bsmm_scale_offset(m, r, c, &at), BSMM_OK);
    return bsmm_scale_load_code(m->format.scale, m->scales, at);
}

/* Checks that padding is 0 at every offset without a scale. Gaps that result from the caller's
 * stride must be unchanged. */
static void check_padding(const test_matrix *t, const bsmm_operand *o) {
    uint32_t bytes = bsmm_scale_row_of(t->m.format.scale)->bytes;
    uint8_t *used = calloc(o->map.count + 1, 1);
    assert_non_null(used);
    for (int64_t r = 0; r < o->map.rows; r++)
        for (int64_t c = 0; c < o->map.cols; c++)
            used[bsmm_scale_map_at(&o->map, r, c)] = 1;
    const uint8_t want = bsmm_layout_pads(t->m.scale_layout) ? 0 : 0xa5;
    for (uint64_t i = 0; i < o->map.count; i++)
        for (uint32_t b = 0; b < bytes && !used[i]; b++)
            assert_int_equal(((const uint8_t *)t->m.scales)[i * bytes + b], want);
    free(used);
}

static void check_pair(size_t shape, size_t from, size_t to, rng *r) {
    test_matrix src, dst, back;
    bsmm_operand o;
    test_matrix_make(&src, described(shape, from), FILL_SPECIAL, r);
    test_matrix_make(&dst, described(shape, to), FILL_SPECIAL, r);
    test_matrix_make(&back, described(shape, from), FILL_SPECIAL, r);
    if (dst.m.scales) memset(dst.m.scales, 0xa5, dst.scale_bytes);
    if (bsmm_relayout_scales(&src.m, &dst.m) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    assert_int_equal(bsmm_relayout_scales(&dst.m, &back.m), BSMM_OK);
    assert_int_equal(bsmm_operand_take(&dst.m, "dst", &o), BSMM_OK);
    for (int64_t i = 0; i < o.map.rows; i++)
        for (int64_t j = 0; j < o.map.cols; j++) {
            assert_int_equal(code_at(&dst.m, i, j), code_at(&src.m, i, j));
            assert_int_equal(code_at(&back.m, i, j), code_at(&src.m, i, j));
        }
    check_padding(&dst, &o);
    test_matrix_free(&src);
    test_matrix_free(&dst);
    test_matrix_free(&back);
}

static void test_any_layout_to_any(void **state) {
    (void)state;
    rng r = {1};
    for (size_t shape = 0; shape < BSMM_COUNT(shapes); shape++)
        for (size_t from = 0; from < BSMM_COUNT(layouts); from++)
            for (size_t to = 0; to < BSMM_COUNT(layouts); to++)
                check_pair(shape, from, to, &r);
}

static void test_elements_take_no_part(void **state) {
    (void)state;
    uint8_t from[4] = {1, 2, 3, 4}, to[4] = {0};
    bsmm_matrix src = describe(format_named("mxfp4"), 2, 64), dst = src;
    src.scales = from;
    dst.scales = to;
    dst.scale_layout = BSMM_LAYOUT_COL_MAJOR;
    assert_int_equal(bsmm_relayout_scales(&src, &dst), BSMM_OK);
    static const uint8_t want[] = {1, 3, 2, 4};
    assert_memory_equal(to, want, sizeof want);
}

static void expect_invalid(bsmm_matrix src, bsmm_matrix dst, const char *field) {
    uint8_t before[64];
    memcpy(before, dst.scales ? dst.scales : before, dst.scales ? sizeof before : 0);
    assert_int_equal(bsmm_relayout_scales(&src, &dst), BSMM_E_INVALID);
    if (!strstr(bsmm_error_message(), field)) fail_msg("%s", bsmm_error_message());
    if (dst.scales) assert_memory_equal(before, dst.scales, sizeof before);
}

static void test_what_does_not_fit_is_refused(void **state) {
    (void)state;
    uint8_t from[4 + 64] = {1}, to[64] = {2};
    bsmm_matrix src = describe(format_named("mxfp4"), 4, 64), dst = src, bad;
    src.scales = from;
    dst.scales = to;
    bad = dst, bad.rows = 5, expect_invalid(src, bad, "dst.rows");
    bad = dst, bad.cols = 32, expect_invalid(src, bad, "dst.cols");
    bad = dst, bad.format = format_named("mxfp8"), expect_invalid(src, bad, "dst.format");
    bad = dst, bad.scales = NULL, expect_invalid(src, bad, "dst.scales");
    bad = dst, bad.scales = from + 4, expect_invalid(src, bad, "overlaps");
    bad = dst, bad.scale_layout = BSMM_LAYOUT_NV_128X4, expect_invalid(src, bad, "scale_bytes");
    bad = dst, bad.scale_bytes = 7, expect_invalid(src, bad, "dst.scale_bytes");
    bsmm_matrix plain = describe(format_named("f32"), 4, 64);
    expect_invalid(plain, plain, "src.format.scale");
    assert_int_equal(bsmm_relayout_scales(NULL, &dst), BSMM_E_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_layout_to_any),
        cmocka_unit_test(test_elements_take_no_part),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
