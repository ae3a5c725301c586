/* Tests the functions that pack operands into panels for the CPU kernels. A panel must contain the
 * operand's values, and every instruction set must write the same bytes as plain C. An unreadable
 * page follows each operand. */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/pack/pack_int8dot.h"
#include "pack_cases.h"
#include "packing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void pack_integers(const bsmm_pack_isa *isa, const packing *w, int64_t row, int64_t rows,
                          bsmm_panel *to) {
    bsmm_int8_pack_by(isa, &w->request.product, (bsmm_int8_form)w->form, w->width, w->unit, row,
                      rows, to);
}

static void pack_halves(const bsmm_pack_isa *isa, const packing *w, int64_t row, int64_t rows,
                        bsmm_panel *to) {
    bsmm_bf16_pack_by(isa, &w->request.product, w->is_b ? BSMM_BF16_B : BSMM_BF16_A, w->width, row,
                      rows, to);
}

static bool is_integers(const packing *w) {
    return w->pack == pack_integers;
}

static double word_at(const uint8_t *at, int32_t plus) {
    int32_t bits;
    float value;
    memcpy(&bits, at, 4);
    bits += plus;
    memcpy(&value, &bits, 4);
    return (double)value;
}

/* In the looked-up layout, a scale of A is packed as a uint32. This number is the offset of a row
 * in the table bsmm_int8_products. The row has the products of A's scale and the possible scales of
 * B. Returns the product of A's scale and 1, i.e. A's scale itself. `at` is the address of the
 * uint32. */
static double looked_up_scale(const uint8_t *at) {
    const uint32_t one = 127u << 23;
    uint32_t offset;
    memcpy(&offset, at, 4);
    return word_at((const uint8_t *)bsmm_int8_products + offset + 4 * (one >> 20 & 15),
                   (int32_t)((one & 0xff000000) - BSMM_INT8_PRODUCT_BIAS));
}

static double integer_value(const packing *w, const packed *p, int64_t lane, int64_t k) {
    const bsmm_product *product = &w->request.product;
    uint32_t elem = (w->is_b ? product->b : product->a).m.format.elem;
    const uint8_t *unit = p->units + k / w->unit * w->unit_bytes;
    const uint8_t *byte = unit + (k % w->unit / 4 * w->width + lane) * 4 + k % 4;
    const uint8_t *scales = unit + w->width * (w->unit + (w->is_b ? 0 : 4));
    double largest = bsmm_elem_row(elem)->max / bsmm_elem_row(elem)->min_subnormal;
    double integer = w->is_b ? *byte - largest : (double)(int8_t)*byte;
    bool biased = w->form == BSMM_INT8_A && bsmm_int8_by_exponent(product);
    if (w->form == BSMM_INT8_A_LOOKED_UP)
        return integer * looked_up_scale(scales + 4 * lane) * p->factors[lane];
    return integer * word_at(scales + 4 * lane, biased ? 127 << 23 : 0) * p->factors[lane];
}

static double half_value(const packing *w, const packed *p, int64_t lane, int64_t k) {
    const uint8_t *unit = p->units + k / w->unit * w->unit_bytes;
    const uint8_t *half = unit + (k % w->unit / 2 * w->width + lane) * 4 + k % 2 * 2;
    const uint8_t *scales = unit + w->width * w->unit * 2;
    double scale = w->unit == BSMM_BF16_SEGMENT_UNIT ? word_at(scales + 4 * lane, 0) : 1;
    return bsmm_elem_decode(BSMM_ELEM_BF16, bsmm_elem_load(BSMM_ELEM_BF16, half, 0)) * scale *
           p->factors[lane];
}

/* Checks the initial values of the accumulators of an integer kernel. The kernel adds a constant to
 * B's elements when it packs them. A dot product is therefore too large by this constant times the
 * sum of A's elements. The accumulator begins with the negative of this excess. */
static void check_begins(const packing *w, const packed *p, int64_t lane) {
    if (!is_integers(w) || w->is_b) return;
    const bsmm_elem_info *b = bsmm_elem_row(w->request.product.b.m.format.elem);
    for (int64_t u = 0; u * w->unit < w->request.product.a.m.cols; u++) {
        const uint8_t *unit = p->units + u * w->unit_bytes;
        int32_t sum = 0, begin;
        for (int64_t i = 0; i < w->unit; i++)
            sum += (int8_t)unit[(i / 4 * w->width + lane) * 4 + i % 4];
        memcpy(&begin, unit + w->width * w->unit + 4 * lane, 4);
        bool floated = w->form == BSMM_INT8_A_FLOATED;
        /* The accumulator begins with the bits of the float 1.5 * 2^23, so that the integer sum,
         * read as a float, is 1.5 * 2^23 plus the sum. */
        int32_t bits = floated ? (127 + 23) << 23 | 1 << 22 : 0;
        assert_int_equal(begin, bits - sum * (int32_t)(b->max / b->min_subnormal));
        if (!floated) continue;
        const uint8_t *scale = unit + w->width * (w->unit + 4) + 4 * lane;
        float taken = 0x1.8p23f * (float)word_at(scale, 0);
        assert_true(word_at(scale + 4 * w->width, 0) == (double)taken);
    }
}

static void check_values(const packing *w, const packed *p, const test_matrix *t, int64_t row,
                         int64_t rows) {
    for (int64_t lane = 0; lane < w->width; lane++) {
        check_begins(w, p, lane);
        if (p->wide[lane]) continue;
        for (int64_t k = 0; k < t->m.cols; k++) {
            double got = (is_integers(w) ? integer_value : half_value)(w, p, lane, k);
            double want = lane < rows ? w->values[(row + lane) * t->m.cols + k] : 0;
            if (!(got == want || (isnan(got) && isnan(want))))
                fail_msg("%s, order %u, width %lld: row %lld, k %lld: got %a, want %a",
                         bsmm_format_name(t->m.format), t->m.order, (long long)w->width,
                         (long long)(row + lane), (long long)k, got, want);
        }
    }
}

static void check_units(const packed *plain, const packed *other) {
    if (plain->bytes) assert_memory_equal(plain->units, other->units, plain->bytes);
}

/* Checks that packing A as fp32 gives the same values as packing A as bf16. Some bf16 kernels read
 * A in fp32. */
static void check_widened(const packing *w, const packed *narrow, const packed *wide) {
    int64_t bytes = BSMM_BF16_WIDE_UNIT_BYTES(w->width, w->unit), scales = w->width * w->unit * 2;
    for (int64_t u = 0; u * bytes < (int64_t)wide->bytes; u++) {
        const uint8_t *from = narrow->units + u * w->unit_bytes, *to = wide->units + u * bytes;
        for (int64_t i = 0; i < scales / 2; i++) {
            int64_t pair = i / 2 / w->width, lane = i / 2 % w->width;
            uint64_t at = (uint64_t)((2 * pair + 1 - i % 2) * w->width + lane);
            assert_int_equal(bsmm_elem_load(BSMM_ELEM_F32, to, at),
                             bsmm_elem_load(BSMM_ELEM_BF16, from, (uint64_t)i) << 16);
        }
        if (w->unit == BSMM_BF16_SEGMENT_UNIT)
            assert_memory_equal(to + 2 * scales, from + scales, (size_t)w->width * 4);
    }
}

static void check_wide_panel(const packing *w, int64_t row) {
    const bsmm_product *p = &w->request.product;
    const bsmm_pack_isa *const isas[] = {&bsmm_pack_portable, bsmm_pack_avx512()};
    int64_t rows = bsmm_min_i64(w->width, p->a.m.rows - row);
    int64_t bytes = BSMM_BF16_WIDE_UNIT_BYTES(w->width, w->unit);
    packed narrow = packing_pack(isas[0], w, row, rows);
    for (size_t i = 0; i < BSMM_COUNT(isas); i++) {
        if (!isas[i]) continue;
        packed wide = {.bytes = (uint64_t)(bsmm_ceil_div(p->a.m.cols, w->unit) * bytes)};
        wide.units = guarded_alloc(wide.bytes);
        bsmm_bf16_pack_by(isas[i], p, BSMM_BF16_A_WIDE, w->width, row, rows,
                          &(bsmm_panel){wide.units, wide.factors, wide.wide});
        check_widened(w, &narrow, &wide);
        guarded_free(wide.units, wide.bytes);
    }
    guarded_free(narrow.units, narrow.bytes);
}

static void check_widths(packing *w, const test_matrix *t, int64_t unit) {
    static const int64_t widths[] = {5, 6, 8, 15, 32, 48};
    w->unit = unit;
    for (size_t i = 0; i < BSMM_COUNT(widths); i++) {
        w->width = widths[i];
        w->unit_bytes = is_integers(w) ? BSMM_INT8_UNIT_BYTES(w->width, unit, w->form)
                                       : BSMM_BF16_UNIT_BYTES(w->width, unit);
        for (int64_t row = 0; row < t->m.rows; row += w->width) {
            packing_check_panel(w, t, row, check_values, check_units);
            if (!is_integers(w) && !w->is_b && w->width == BSMM_PACK_LANES)
                check_wide_panel(w, row);
        }
        packing_check_at_once(w, t);
    }
}

/* Packs a matrix as A and as B of a product, for every CPU kernel that accepts the product. The
 * other operand has the format `other`. */
static void check_operand(const test_matrix *t, const char *other) {
    double *values = test_matrix_values(t);
    for (int side = 0; side < 2; side++) {
        packing w = {.values = values, .pack = pack_integers};
        packing_describe(&w, t, other, side);
        const bsmm_product *p = &w.request.product;
        char why[256];
        const bool integers = !bsmm_pack_refuse(p, bsmm_int8_refuse, why, sizeof why);
        w.form = side ? BSMM_INT8_B : BSMM_INT8_A;
        if (integers) check_widths(&w, t, bsmm_int8_unit(p));
        w.form = BSMM_INT8_A_FLOATED;
        if (integers && !side) check_widths(&w, t, bsmm_int8_unit(p));
        w.form = BSMM_INT8_A_LOOKED_UP;
        if (integers && !side && bsmm_int8_has_products(p)) check_widths(&w, t, bsmm_int8_unit(p));
        w.pack = pack_halves;
        if (!bsmm_pack_refuse(p, bsmm_bf16_refuse, why, sizeof why))
            check_widths(&w, t,
                         bsmm_bf16_by_segment(p) ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT);
    }
    free(values);
}

/* `formats` lists the formats whose values bf16 represents exactly. */
static format_list formats;

static void find_formats(void) {
    format_list all = all_formats();
    for (size_t i = 0; i < all.count; i++)
        if (bsmm_elem_traits_of[format_named(all.names[i]).elem].exact_in_bf16)
            formats.names[formats.count++] = all.names[i];
}

static void test_formats_and_lengths(void **state) {
    (void)state;
    pack_check_lengths(check_operand, &formats);
}

/* Tests every element code of up to 8 bits, with and without scales. */
static void test_every_code(void **state) {
    (void)state;
    pack_check_every_code(check_operand, &formats, 9);
}

static void test_leading_dimensions(void **state) {
    (void)state;
    pack_check_leading_dimensions(check_operand, &formats);
}

/* Tests column-major operands with long columns. Packing copies a strip of a column, i.e. a fixed
 * number of bytes, at a time, and these columns are longer than a strip. */
static void test_long_columns(void **state) {
    (void)state;
    static const char *const some[] = {"bf16", "mxfp8", "mxfp6_e3m2", "mxfp4"};
    rng r = {8};
    for (size_t i = 0; i < BSMM_COUNT(some); i++) {
        bsmm_matrix m = describe(format_named(some[i]), 301, 200);
        m.order = BSMM_ORDER_COL;
        pack_check_matrix(check_operand, m, "mxfp4", FILL_ORDINARY, &r);
    }
}

static void test_scale_layouts(void **state) {
    (void)state;
    pack_check_scale_layouts(check_operand);
}

/* Tests scales just inside and just outside the range that the integer kernels accept. */
static void test_scales_at_bounds(void **state) {
    (void)state;
    static const uint8_t codes[] = {76, 77, 127, 177, 178, 0, 254, 255};
    rng r = {7};
    for (size_t i = 0; i < BSMM_COUNT(codes) * 4; i++) {
        test_matrix t;
        test_matrix_make(&t, describe(format_named(i % 2 ? "mxfp4" : "mxfp6_e2m3"), 13, 1060),
                         FILL_ORDINARY, &r);
        for (uint64_t at = i; at < t.scale_bytes; at += 1 + rng_below(&r, 60))
            ((uint8_t *)t.m.scales)[at] = codes[i / 4];
        check_operand(&t, "mxfp4");
        test_matrix_free(&t);
    }
}

/* Tests scale blocks of 48 to 4096 elements along K. A kernel applies scales after each 16 or 32
 * elements, so several such units lie in one block, and a block may end inside a unit. */
static void test_long_blocks(void **state) {
    (void)state;
    static const uint32_t blocks[] = {48, 96, 160, 384, 4096};
    rng r = {5};
    for (size_t i = 0; i < BSMM_COUNT(blocks); i++)
        for (uint32_t scale = BSMM_SCALE_E8M0; scale < BSMM_SCALE_COUNT; scale++) {
            bsmm_format f = {BSMM_ELEM_E2M3, scale, 1 + (uint32_t)i, blocks[i]};
            pack_check_matrix(check_operand, describe(f, 9, 1300), "mxfp8", FILL_ORDINARY, &r);
            pack_check_matrix(check_operand, describe(f, 9, 1300), "mxfp4", FILL_ORDINARY, &r);
        }
}

/* Tests bf16 rows that contain normal and subnormal numbers. Their magnitudes are similar enough
 * for the kernel to pack them. */
static void test_subnormal_rows(void **state) {
    (void)state;
    rng r = {6};
    test_matrix t;
    test_matrix_make(&t, describe(format_named("bf16"), 9, 130), FILL_ORDINARY, &r);
    uint16_t *codes = t.m.data;
    for (int64_t i = 0; i < 9 * 130; i++)
        codes[i] = (uint16_t)(rng_next(&r) & 0x8fff) % 0x1000;
    double *values = test_matrix_values(&t);
    packing w = {.values = values, .pack = pack_halves};
    packing_describe(&w, &t, "mxfp8", false);
    check_widths(&w, &t, BSMM_BF16_FOLDED_UNIT);
    packed p = packing_pack(&bsmm_pack_portable, &w, 0, 9);
    for (int64_t i = 0; i < 9; i++)
        assert_false(p.wide[i]);
    guarded_free(p.units, p.bytes);
    free(values);
    test_matrix_free(&t);
}

int main(void) {
    find_formats();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats_and_lengths), cmocka_unit_test(test_every_code),
        cmocka_unit_test(test_leading_dimensions),  cmocka_unit_test(test_long_columns),
        cmocka_unit_test(test_scale_layouts),       cmocka_unit_test(test_scales_at_bounds),
        cmocka_unit_test(test_long_blocks),         cmocka_unit_test(test_subnormal_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
