/* Compares bsmm_operand_decode_row with the scalar definitions of the formats. This function
 * decodes a part of a row to floats, and must not read past the end of the operand. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_same_bits(double a, double b, const char *what, int64_t i) {
    if (memcmp(&a, &b, sizeof a) != 0) fail_msg("%s, %d: %a and %a", what, (int)i, a, b);
}

static void test_tables(void **state) {
    (void)state;
    for (uint32_t elem = 1; elem < BSMM_ELEM_COUNT; elem++) {
        const bsmm_elem_info *info = bsmm_elem_row(elem);
        const double *values = bsmm_elem_values(elem);
        assert_int_equal(values != NULL, info->bits <= 8);
        for (uint32_t code = 0; values && code < 1u << info->bits; code++)
            assert_same_bits(values[code], bsmm_elem_decode(elem, code), info->name, code);
    }
    assert_null(bsmm_elem_values(BSMM_ELEM_NONE));
    assert_null(bsmm_elem_values(BSMM_ELEM_COUNT));
}

static void test_every_f16_and_bf16(void **state) {
    (void)state;
    for (uint32_t elem = BSMM_ELEM_F16; elem <= BSMM_ELEM_BF16; elem++) {
        enum { CODES = 1 << 16 };
        test_matrix t;
        rng r = {0};
        double *values = malloc(CODES * sizeof *values);
        bsmm_operand o;
        test_matrix_make(&t, describe((bsmm_format){.elem = elem}, 1, CODES), FILL_ORDINARY, &r);
        for (uint32_t code = 0; code < CODES; code++)
            bsmm_elem_store(elem, t.m.data, code, code);
        assert_int_equal(bsmm_operand_take(&t.m, "t", &o), BSMM_OK);
        bsmm_operand_decode_row(&o, 0, 0, CODES, values);
        for (uint32_t code = 0; code < CODES; code++)
            assert_same_bits(values[code], bsmm_elem_decode(elem, code), "code", code);
        free(values);
        test_matrix_free(&t);
    }
}

static void check_row(const test_matrix *t, const bsmm_operand *o, int64_t r, rng *random) {
    double values[1100];
    int64_t c = rng_below(random, (uint32_t)o->m.cols + 1);
    int64_t n = rng_below(random, (uint32_t)(o->m.cols - c) + 1);
    if (rng_below(random, 3) == 0) c = 0, n = o->m.cols;
    bsmm_operand_decode_row(o, r, c, n, values);
    for (int64_t i = 0; i < n; i++)
        assert_same_bits(values[i], test_matrix_value(t, r, c + i), bsmm_format_name(o->m.format),
                         c + i);
}

/* Chooses the layout, order, stride and second-level scale of a matrix. Each bit of `variant`
 * decides one of them. */
static bsmm_matrix variant_of(bsmm_format format, uint32_t variant) {
    static const uint32_t layouts[] = {BSMM_LAYOUT_ROW_MAJOR, BSMM_LAYOUT_COL_MAJOR,
                                       BSMM_LAYOUT_NV_128X4, BSMM_LAYOUT_CDNA4_MFMA16};
    bsmm_matrix m = describe(format, 5, variant & 4 ? 1033 : 70);
    m.order = variant & 1;
    if (variant & 2) m.ld = bsmm_round_up(m.order ? m.rows : m.cols, 4) + 8;
    if (format.scale != BSMM_SCALE_NONE) m.scale_layout = layouts[variant % 4];
    m.global_kind = variant >> 3 & 1;
    return m;
}

static void check_format(bsmm_format format, rng *random) {
    for (uint32_t variant = 0; variant < 16; variant++) {
        test_matrix t;
        bsmm_operand o;
        test_matrix_make(&t, variant_of(format, variant), variant & 1 ? FILL_SPECIAL : FILL_EXTREME,
                         random);
        t.global = 0.7f;
        if (variant % 3) t.m.global_scale = &t.global;
        assert_int_equal(bsmm_operand_take(&t.m, "t", &o), BSMM_OK);
        for (int64_t r = 0; r < o.m.rows; r++)
            check_row(&t, &o, r, random);
        test_matrix_free(&t);
    }
}

static void test_all_formats(void **state) {
    (void)state;
    static const uint32_t blocks[][2] = {{1, 16}, {1, 32}, {2, 128}, {3, 4}};
    rng random = {6};
    for (uint32_t elem = next_elem(BSMM_ELEM_NONE); elem; elem = next_elem(elem)) {
        check_format((bsmm_format){.elem = elem}, &random);
        for (uint32_t scale = BSMM_SCALE_E8M0; scale < BSMM_SCALE_COUNT; scale++)
            for (size_t b = 0; b < BSMM_COUNT(blocks); b++)
                check_format((bsmm_format){elem, scale, blocks[b][0], blocks[b][1]}, &random);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_every_f16_and_bf16),
        cmocka_unit_test(test_all_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
