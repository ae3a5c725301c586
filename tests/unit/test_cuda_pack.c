/* Tests the per-thread functions of the GPU's packing kernels by running them on the CPU. The test
 * covers every format, both orders, every scale layout, and odd sizes. A packed element times its
 * packed scale must be the operand's value, unless the header of the packed operand has the flag
 * WIDE (cannot be packed). */
#include "gpu/pack_lane.h"
#include "operand.h"
#include "pack_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct packed {
    void *memory;
    uint64_t bytes;
    bsmm_operand operand;
    bsmm_pack_launch launch;
} packed;

static packed pack(const bsmm_matrix *m, bsmm_pack_route route, bool with_scales) {
    packed p;
    assert_int_equal(bsmm_operand_take(m, "m", &p.operand), BSMM_OK);
    p.bytes = bsmm_pack_layout_of(m->rows, m->cols, route).bytes;
    p.memory = guarded_alloc(p.bytes);
    p.launch = bsmm_pack_launch_of(&p.operand, route, with_scales, p.memory);
    pack_model(&p.launch, &p.operand);
    return p;
}

static uint32_t check(const bsmm_matrix *m, bsmm_pack_route route, bool with_scales) {
    packed p = pack(m, route, with_scales);
    pack_verdict v = pack_check(&p.launch, &p.operand);
    if (v.wrong)
        fail_msg("%s route %d layout %u %lld x %lld: %llu wrong, first at %lld, %lld: %a, got %a",
                 bsmm_format_name(m->format), (int)route, m->scale_layout, (long long)m->rows,
                 (long long)m->cols, (unsigned long long)v.wrong, (long long)v.row,
                 (long long)v.col, v.expected, v.got);
    guarded_free(p.memory, p.bytes);
    return v.flags;
}

static bool refused(const bsmm_matrix *m, bsmm_pack_route route) {
    char why[160];
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(m, "m", &o), BSMM_OK);
    return bsmm_pack_refuse(&o, 'A', route, why, sizeof why) != NULL;
}

static const char *const formats[] = {
    "mxfp8",        "mxfp8_e5m2",   "mxfp6_e2m3",
    "mxfp6_e3m2",   "mxfp4",        "nvfp4",
    "fp8_group128", "fp8_block128", "fp8_group128_fnuz",
    "e4m3",         "e5m2",         "e5m2fnuz",
    "e2m1",         "bf16",         "f16",
    "f32",
};

static bsmm_matrix shape_of(const char *name, uint32_t layout, uint32_t order, rng *r) {
    bsmm_matrix m = describe(format_named(name), 1 + rng_below(r, 40), 1 + rng_below(r, 400));
    m.order = order;
    if (m.format.scale == BSMM_SCALE_NONE) return m;
    m.scale_layout = layout;
    if (layout != BSMM_LAYOUT_TILE_CONTIGUOUS) return m;
    m.scale_tile_rows = 1 + rng_below(r, 9);
    m.scale_tile_cols = 1 + rng_below(r, 5);
    return m;
}

static void check_format(const char *name, rng *r, uint32_t seen[3]) {
    for (uint32_t i = 0; i < 3 * 2 * 9; i++) {
        test_matrix t;
        test_matrix_make(&t, shape_of(name, i / 6, i % 2, r), (fill)(i / 2 % 3), r);
        t.m.global_scale = NULL;
        for (int route = 0; route < 3; route++)
            if (!refused(&t.m, (bsmm_pack_route)route)) {
                uint32_t flags = check(&t.m, (bsmm_pack_route)route, true);
                check(&t.m, (bsmm_pack_route)route, false);
                if (i / 2 % 3 == FILL_ORDINARY && !(flags & BSMM_PACK_WIDE)) seen[route]++;
            }
        test_matrix_free(&t);
    }
}

static void packs_values(void **state) {
    (void)state;
    rng r = {20};
    for (size_t f = 0; f < BSMM_COUNT(formats); f++) {
        uint32_t seen[3] = {0};
        check_format(formats[f], &r, seen);
        bsmm_format format = format_named(formats[f]);
        bool inexact = format.elem == BSMM_ELEM_F16 || format.elem == BSMM_ELEM_F32;
        if (!inexact) assert_int_equal(seen[BSMM_PACK_BF16], 18);
        if (format.scale == BSMM_SCALE_E8M0)
            assert_int_not_equal(seen[BSMM_PACK_FP8] + seen[BSMM_PACK_FAST], 0);
    }
}

/* Packing to FP8 multiplies elements by powers of two. pack_plan.c states the range of powers for
 * which every product is exact in e4m3. The test checks that the products are exact inside this
 * range, and that some are inexact just outside it. */
static void e4m3_holds_the_window(void **state) {
    static const uint32_t elems[] = {BSMM_ELEM_E2M1, BSMM_ELEM_E2M3, BSMM_ELEM_E3M2};
    (void)state;
    for (size_t e = 0; e < BSMM_COUNT(elems); e++) {
        bsmm_format format = {elems[e], BSMM_SCALE_E8M0, 1, 32};
        test_matrix t;
        rng r = {1};
        test_matrix_make(&t, describe(format, 1, 128), FILL_ORDINARY, &r);
        packed p = pack(&t.m, BSMM_PACK_FP8, true);
        int top = p.launch.job.fold, bottom = top - (int)p.launch.job.window;
        for (int shift = bottom - 1; shift <= top + 1; shift++) {
            bool exact = true;
            for (uint32_t c = 0; c < 1u << bsmm_elem_row(elems[e])->bits; c++) {
                double value = ldexp(bsmm_elem_decode(elems[e], c), shift);
                uint32_t code = bsmm_elem_encode(BSMM_ELEM_E4M3, value, true);
                exact &= bsmm_elem_decode(BSMM_ELEM_E4M3, code) == value;
            }
            assert_int_equal(exact, shift >= bottom && shift <= top);
        }
        guarded_free(p.memory, p.bytes);
        test_matrix_free(&t);
    }
}

/* Packs an operand of 128 columns, i.e. four blocks of 32 elements, and returns the flags in its
 * header. `exponents` are the exponents of the four block scales. A block whose bit is set in
 * `empty` contains zeros, and the other blocks contain every code of the element format. */
static uint32_t flags_of(const char *name, bsmm_pack_route route, const int exponents[4],
                         uint32_t empty) {
    test_matrix t;
    rng r = {2};
    test_matrix_make(&t, describe(format_named(name), 3, 128), FILL_ORDINARY, &r);
    uint32_t elem = t.m.format.elem, codes = 1u << bsmm_elem_row(elem)->bits;
    for (uint64_t i = 0; i < 3 * 128; i++) {
        uint32_t code = (uint32_t)(i * 37 % codes);
        if (!isfinite(bsmm_elem_decode(elem, code)) || (empty >> i % 128 / 32 & 1)) code = 0;
        bsmm_elem_store(elem, t.m.data, i, code);
    }
    for (uint64_t i = 0; i < 12; i++)
        ((uint8_t *)t.m.scales)[i] = (uint8_t)(exponents[i % 4] + 127);
    uint32_t flags = check(&t.m, route, true);
    test_matrix_free(&t);
    return flags;
}

static void spreads_are_told(void **state) {
    (void)state;
    const uint32_t wide = BSMM_PACK_WIDE;
    const int in[4] = {3, -11, 0, 2}, out[4] = {3, -12, 0, 2}, far[4] = {127, 0, 1, 2};
    assert_false(flags_of("mxfp4", BSMM_PACK_FP8, in, 0) & wide);
    assert_true(flags_of("mxfp4", BSMM_PACK_FP8, out, 0) & wide);
    /* Block 1 now contains only zeros, so its small scale no longer makes the operand WIDE. */
    assert_false(flags_of("mxfp4", BSMM_PACK_FP8, out, 1 << 1) & wide);
    assert_false(flags_of("mxfp4", BSMM_PACK_BF16, out, 0));
    assert_true(flags_of("mxfp6_e3m2", BSMM_PACK_FP8, in, 0) & wide);
    assert_int_equal(flags_of("mxfp8", BSMM_PACK_BF16, far, 0), wide | BSMM_PACK_SCALED);
    assert_false(flags_of("mxfp8", BSMM_PACK_BF16, far, 1));
    assert_false(flags_of("mxfp8", BSMM_PACK_FAST, far, 0) & wide);
    const int low[4] = {-127, -126, -125, -120}, high[4] = {127, 126, 120, 115};
    assert_int_equal(flags_of("mxfp8", BSMM_PACK_BF16, low, 0), BSMM_PACK_SCALED);
    assert_int_equal(flags_of("mxfp8", BSMM_PACK_BF16, high, 0), BSMM_PACK_SCALED);
}

/* Packs rows of 256 elements by a route (BSMM_PACK_FP8 or _FAST). Each row has two groups of 128
 * elements. In the first group, all block scales are 1. In the second group, one block scale is
 * 2^bottom and the others are 2^top. Returns true if packing gives the two groups different group
 * scales, i.e. if it sets the flag UNEVEN. */
static bool is_uneven(const char *name, bsmm_pack_route route, int top, int bottom) {
    test_matrix t;
    rng r = {3};
    test_matrix_make(&t, describe(format_named(name), 3, 256), FILL_ORDINARY, &r);
    uint32_t elem = t.m.format.elem, codes = 1u << bsmm_elem_row(elem)->bits;
    for (uint64_t i = 0; i < 3 * 256; i++) {
        uint32_t code = (uint32_t)(i * 37 % codes);
        if (!isfinite(bsmm_elem_decode(elem, code))) code = 0;
        bsmm_elem_store(elem, t.m.data, i, code);
    }
    for (uint64_t i = 0; i < 3 * 8; i++)
        ((uint8_t *)t.m.scales)[i] = (uint8_t)(127 + (i % 8 < 4 ? 0 : i % 8 == 6 ? bottom : top));
    uint32_t flags = check(&t.m, route, true);
    test_matrix_free(&t);
    return flags & BSMM_PACK_UNEVEN;
}

/* Tests in which cases all groups (128 elements) of a row get the same packed scale. If they do in
 * every row, packing does not set the flag UNEVEN. The GEMM kernel then sums over all of K and
 * applies the scale only once. */
static void even_rows_are_told(void **state) {
    (void)state;
    const uint32_t uneven = BSMM_PACK_UNEVEN;
    const int near[4] = {3, -3, 0, 2}, apart[4] = {3, -4, 0, 2}, top[4] = {127, 126, 127, 127};
    static const char *const rounded[] = {"mxfp8", "mxfp8_e5m2"};
    for (size_t i = 0; i < BSMM_COUNT(rounded); i++) {
        const char *f = rounded[i];
        assert_false(flags_of(f, BSMM_PACK_FAST, near, 0) & uneven);
        assert_true(flags_of(f, BSMM_PACK_FAST, apart, 0) & uneven);
        /* Block 1 now contains only zeros, so its small scale no longer makes the row UNEVEN. */
        assert_false(flags_of(f, BSMM_PACK_FAST, apart, 1 << 1) & uneven);
        /* All elements of the row are zero. For a group of 128 zeros, packing accepts the common
         * scale of the row only if this scale is at most 1. Here the common scale would be above 1,
         * so packing must set the flag UNEVEN. */
        assert_true(flags_of(f, BSMM_PACK_FAST, near, 15) & uneven);
        /* If all groups of the row had the same packed scale, this scale would be 2^129, which is
         * too large for fp32. */
        assert_true(flags_of(f, BSMM_PACK_FAST, top, 0) & uneven);
        assert_false(is_uneven(f, BSMM_PACK_FAST, 0, 0));
        assert_false(is_uneven(f, BSMM_PACK_FAST, 2, 2));
        /* The scales of the row's first half are 1. Packing can therefore use one packed scale for
         * both halves only if this packed scale is at most 2^2. Block scales of 2^3 in the second
         * half need a larger packed scale, so the halves get different ones. */
        assert_true(is_uneven(f, BSMM_PACK_FAST, 3, 3));
        assert_false(is_uneven(f, BSMM_PACK_FAST, -6, -6));
        assert_true(is_uneven(f, BSMM_PACK_FAST, -7, -7));
        assert_false(is_uneven(f, BSMM_PACK_FAST, 1, -6));
        assert_true(is_uneven(f, BSMM_PACK_FAST, 1, -7));
    }
    assert_false(flags_of("mxfp4", BSMM_PACK_FP8, near, 0) & uneven);
    /* Elements of less than 8 bits are packed exactly. If possible, the whole row gets one packed
     * scale: the largest block scale of the row's first half (its first group), which is 1 here. It
     * is possible if the block scales of the second half lie between 2^lowest and 2^highest. */
    static const struct {
        const char *format;
        int highest, lowest;
    } exact[] = {{"mxfp4", 6, -8}, {"mxfp6_e2m3", 5, -6}, {"mxfp6_e3m2", 4, -5}};
    for (size_t i = 0; i < BSMM_COUNT(exact); i++) {
        const char *f = exact[i].format;
        const int highest = exact[i].highest, lowest = exact[i].lowest;
        assert_false(is_uneven(f, BSMM_PACK_FP8, highest, lowest));
        assert_true(is_uneven(f, BSMM_PACK_FP8, highest + 1, highest + 1));
        assert_true(is_uneven(f, BSMM_PACK_FP8, lowest - 1, lowest - 1));
    }
}

/* Tests packing with rounding (BSMM_PACK_FAST). If an operand contains Inf, packing must set the
 * flag WIDE (cannot be packed). Otherwise an element of the other operand that rounding turns into
 * 0 would give 0 * Inf = NaN. NaN in an operand must not set the flag. */
static void infinities_are_told(void **state) {
    (void)state;
    static const struct {
        const char *format;
        uint32_t code;
        bool wide;
    } cases[] = {{"mxfp8_e5m2", 0x7c, true},  {"mxfp8_e5m2", 0xfc, true},
                 {"mxfp8_e5m2", 0x7d, false}, {"mxfp8_e5m2", 0x7b, false},
                 {"mxfp8", 0x7c, false},      {"mxfp8", 0x7f, false}};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        test_matrix t;
        rng r = {4};
        test_matrix_make(&t, describe(format_named(cases[i].format), 5, 300), FILL_ORDINARY, &r);
        ((uint8_t *)t.m.data)[2 * 300 + 290] = (uint8_t)cases[i].code;
        assert_int_equal((check(&t.m, BSMM_PACK_FAST, true) & BSMM_PACK_WIDE) != 0, cases[i].wide);
        test_matrix_free(&t);
    }
}

/* Tests bsmm_pack_pair_fits, which decides by the ranges in the headers of two packed operands
 * whether the operands can be multiplied in fp32. It must accept an operand with very small values
 * times an operand with very large values, because their products have moderate sizes. It must
 * refuse two operands with very small values, and two operands with very large values. */
static void pairs_are_judged(void **state) {
    (void)state;
    bsmm_pack_header small = {1, 512 - 118, 512 + 136, 512 + 9, {0}},
                     large = {1, 512 + 136, 512 - 118, 512 + 9, {0}}, wide = small;
    wide.flags = BSMM_PACK_WIDE;
    assert_true(bsmm_pack_pair_fits(&small, &large, 13));
    assert_false(bsmm_pack_pair_fits(&small, &small, 13));
    assert_false(bsmm_pack_pair_fits(&large, &large, 13));
    assert_false(bsmm_pack_pair_fits(&wide, &large, 13));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_values),        cmocka_unit_test(e4m3_holds_the_window),
        cmocka_unit_test(spreads_are_told),    cmocka_unit_test(even_rows_are_told),
        cmocka_unit_test(infinities_are_told), cmocka_unit_test(pairs_are_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
