/* Tests the functions that pack operands into panels for the f32 CPU kernels. A panel must contain
 * the operand's values, and every instruction set must write the same bytes as plain C. An
 * unreadable page follows each operand. */
#include "cpu/pack/pack_f32fma.h"
#include "pack_cases.h"
#include "packing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_ROWS = 127 };

static void pack(const bsmm_pack_isa *isa, const packing *w, int64_t row, int64_t rows,
                 bsmm_panel *to) {
    bsmm_f32fma_pack_by(isa, &w->request.product, w->is_b, w->width, row, rows, to);
}

static float float_at(const packed *p, int64_t byte) {
    float value;
    memcpy(&value, p->units + byte, sizeof value);
    return value;
}

static double value_at(const packing *w, const packed *p, int64_t lane, int64_t k) {
    int64_t unit = k / w->unit * w->unit_bytes;
    double value = (double)float_at(p, unit + 4 * (k % w->unit * w->width + lane));
    if (w->unit == BSMM_F32FMA_SEGMENT_UNIT)
        value *= (double)float_at(p, unit + 4 * (w->unit * w->width + lane));
    return value * p->factors[lane];
}

static void check_values(const packing *w, const packed *p, const test_matrix *t, int64_t row,
                         int64_t rows) {
    for (int64_t lane = 0; lane < w->width; lane++) {
        if (p->wide[lane] == UINT8_MAX) continue;
        for (int64_t k = 0; k < bsmm_round_up(t->m.cols, w->unit); k++) {
            bool there = lane < rows && k < t->m.cols;
            double got = value_at(w, p, lane, k);
            double want = there ? w->values[(row + lane) * t->m.cols + k] : 0;
            /* After the operand's last column, the panel contains 0 times a block scale. This is
             * NaN if the scale is Inf or NaN. */
            if (got == want || (isnan(got) && (isnan(want) || !there))) continue;
            fail_msg("%s, order %u, width %lld: row %lld, k %lld: got %a, want %a",
                     bsmm_format_name(t->m.format), t->m.order, (long long)w->width,
                     (long long)(row + lane), (long long)k, got, want);
        }
    }
}

/* Fails unless the bytes of both packed panels are the same. All NaNs count as equal, because the
 * payload of a NaN may come from the element or from the scale. */
static void check_units(const packed *a, const packed *b) {
    for (uint64_t i = 0; i < a->bytes; i += sizeof(float)) {
        if (memcmp(a->units + i, b->units + i, sizeof(float)) == 0) continue;
        assert_true(isnan(float_at(a, (int64_t)i)) && isnan(float_at(b, (int64_t)i)));
    }
}

/* Packs an operand as A and as B. Panels of 6, 16 and 64 rows are those of kernels. The test also
 * packs panels of 5 rows, which no kernel uses. */
static void check_operand(const test_matrix *t, const char *other) {
    static const int64_t widths[] = {5, 6, 16, 64};
    double *values = test_matrix_values(t);
    for (int side = 0; side < 2; side++) {
        packing w = {.values = values, .pack = pack};
        char why[256];
        packing_describe(&w, t, other, side);
        assert_null(bsmm_pack_refuse(&w.request.product, bsmm_f32fma_refuse, why, sizeof why));
        bool segmented = bsmm_f32fma_by_segment(&w.request.product);
        w.unit = segmented ? BSMM_F32FMA_SEGMENT_UNIT : BSMM_F32FMA_FOLDED_UNIT;
        for (size_t i = 0; i < BSMM_COUNT(widths); i++) {
            w.width = widths[i];
            w.unit_bytes = BSMM_F32FMA_UNIT_BYTES(w.width, w.unit);
            for (int64_t row = 0; row < t->m.rows; row += w.width)
                packing_check_panel(&w, t, row, check_values, check_units);
            packing_check_at_once(&w, t);
        }
    }
    free(values);
}

static format_list formats;

static void test_formats_and_lengths(void **state) {
    (void)state;
    pack_check_lengths(check_operand, &formats);
}

/* Tests column-major operands with long columns. Packing copies a strip of a column, i.e. a fixed
 * number of bytes, at a time, and these columns are longer than a strip. */
static void test_long_columns(void **state) {
    (void)state;
    rng r = {7};
    for (size_t i = 0; i < formats.count; i++) {
        bsmm_matrix m = describe(format_named(formats.names[i]), LONG_ROWS, 290);
        m.order = BSMM_ORDER_COL;
        pack_check_matrix(check_operand, m, "mxfp4", FILL_ORDINARY, &r);
    }
}

/* Tests every element code of up to 8 bits, with and without scales. The operands have more rows
 * than a panel, i.e. than are packed together. */
static void test_every_code(void **state) {
    (void)state;
    pack_check_every_code(check_operand, &formats, 70);
}

static void test_leading_dimensions(void **state) {
    (void)state;
    pack_check_leading_dimensions(check_operand, &formats);
}

static void test_scale_layouts(void **state) {
    (void)state;
    pack_check_scale_layouts(check_operand);
}

/* Tests scale blocks whose length is no multiple of 16. Some of them end among the elements that
 * packing decodes together. */
static void test_blocks(void **state) {
    (void)state;
    static const uint32_t elems[] = {BSMM_ELEM_F16, BSMM_ELEM_BF16, BSMM_ELEM_E4M3, BSMM_ELEM_E3M2,
                                     BSMM_ELEM_E2M1};
    static const uint32_t blocks[] = {4, 20, 48, 112, 384, 4096};
    rng r = {5};
    for (size_t e = 0; e < BSMM_COUNT(elems); e++)
        for (size_t i = 0; i < BSMM_COUNT(blocks); i++)
            for (uint32_t scale = BSMM_SCALE_E8M0; scale <= BSMM_SCALE_E4M3; scale++) {
                bsmm_format f = {elems[e], scale, 1 + (uint32_t)i, blocks[i]};
                pack_check_matrix(check_operand, describe(f, 9, 1300), "mxfp8", (fill)(i % 3), &r);
            }
    bsmm_format long_blocks = {BSMM_ELEM_F32, BSMM_SCALE_F32, 3, 384};
    pack_check_matrix(check_operand, describe(long_blocks, 9, 1300), "mxfp4", FILL_ORDINARY, &r);
    bsmm_format of_floats = {BSMM_ELEM_F32, BSMM_SCALE_E8M0, 1, 32};
    pack_check_matrix(check_operand, describe(of_floats, 9, 1300), "mxfp4", FILL_EXTREME, &r);
}

/* Tests rows in which all values are subnormal, so that the factor that packing divides out of a
 * row (a power of two) is too small to be a normal fp32 number. */
static void test_subnormal_rows(void **state) {
    (void)state;
    rng r = {6};
    for (uint32_t order = 0; order < 2; order++) {
        test_matrix t;
        bsmm_matrix m = describe(format_named("f32"), 9, 130);
        m.order = order;
        test_matrix_make(&t, m, FILL_ORDINARY, &r);
        uint32_t *codes = t.m.data;
        for (uint64_t i = 0; i < t.data_bytes / 4; i++)
            codes[i] = (uint32_t)rng_next(&r) & 0x800fffff;
        check_operand(&t, "mxfp8");
        test_matrix_free(&t);
    }
}

int main(void) {
    formats = all_formats();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats_and_lengths), cmocka_unit_test(test_every_code),
        cmocka_unit_test(test_long_columns),        cmocka_unit_test(test_leading_dimensions),
        cmocka_unit_test(test_scale_layouts),       cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_subnormal_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
