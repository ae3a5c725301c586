/* Tests functions of the GPU kernels for few rows of A. The test runs these functions on the CPU.
 * The functions decode weights in registers, and convert scales to factors. The decoded values must
 * equal those of the scalar decoder bsmm_elem_decode. */
#include "gpu/half_weights.h"
#include "gpu/params.h"
#include "gpu/small_m_weights.h"
#include "operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static double bf16_value(uint32_t code) {
    return bsmm_elem_decode(BSMM_ELEM_BF16, code & 0xffff);
}

/* Tests the decoding of e2m1: every code at every position of a 32-bit word, among random codes. */
static void e2m1_pairs_hold_elements_4_apart(void **state) {
    (void)state;
    rng r = {1};
    for (uint32_t code = 0; code < 16; code++)
        for (uint32_t place = 0; place < 8; place++) {
            uint32_t word = (uint32_t)rng_next(&r), pairs[4];
            word = (word & ~(0xfu << 4 * place)) | code << 4 * place;
            bsmm_e2m1_pairs(word, pairs);
            for (uint32_t i = 0; i < 8; i++) {
                double got = bf16_value(pairs[i % 4] >> 16 * (i / 4)) * 0x1p126;
                double want = bsmm_elem_decode(BSMM_ELEM_E2M1, word >> 4 * i & 0xf);
                assert_true(got == want && signbit(got) == signbit(want));
            }
        }
}

static double f16_value(uint32_t code) {
    return bsmm_elem_decode(BSMM_ELEM_F16, code & 0xffff);
}

typedef void decoder(uint32_t first, uint32_t second, uint32_t pairs[4]);

/* Tests the decoding of 6-bit codes: every code at every position of a 48-bit word, among random
 * codes. */
static void check_sixes(uint32_t elem, decoder *decode, double value(uint32_t), double unfold,
                        rng *r) {
    for (uint32_t code = 0; code < 64; code++)
        for (uint32_t place = 0; place < 8; place++) {
            uint64_t word = rng_next(r);
            uint32_t pairs[4];
            word = (word & ~(UINT64_C(0x3f) << 6 * place)) | (uint64_t)code << 6 * place;
            /* The kernels load bytes 0, 1, 3 and 4 of the codes into a first register, and bytes 1,
             * 2, 4 and 5 into a second one. */
            const uint32_t first = (uint32_t)((word & 0xffff) | (word >> 24 & 0xffff) << 16),
                           second = (uint32_t)((word >> 8 & 0xffff) | (word >> 32 & 0xffff) << 16);
            decode(first, second, pairs);
            for (uint32_t i = 0; i < 8; i++) {
                double got = value(pairs[i % 4] >> 16 * (i / 4)) * unfold;
                double want = bsmm_elem_decode(elem, (uint32_t)(word >> 6 * i & 0x3f));
                assert_true(got == want && signbit(got) == signbit(want));
            }
        }
}

static void e2m3_and_e3m2_pairs_hold_elements_4_apart(void **state) {
    (void)state;
    rng r = {4};
    check_sixes(BSMM_ELEM_E2M3, bsmm_e2m3_pairs, bf16_value, 0x1p126, &r);
    check_sixes(BSMM_ELEM_E3M2, bsmm_e3m2_pairs, bf16_value, 0x1p124, &r);
    check_sixes(BSMM_ELEM_E2M3, bsmm_e2m3_halves, f16_value, 0x1p14, &r);
    check_sixes(BSMM_ELEM_E3M2, bsmm_e3m2_halves, f16_value, 0x1p12, &r);
}

/* Tests the conversion of e2m1 to e4m3 by random words, which contain every code many times. */
static void e2m1_becomes_e4m3(void **state) {
    (void)state;
    rng r = {5};
    for (int n = 0; n < 1000; n++) {
        const uint32_t word = (uint32_t)rng_next(&r);
        uint32_t to[2];
        bsmm_e2m1_to_e4m3(word, to);
        for (uint32_t i = 0; i < 8; i++) {
            const double got = bsmm_elem_decode(BSMM_ELEM_E4M3, to[i % 2] >> 8 * (i / 2) & 0xff);
            const double want = bsmm_elem_decode(BSMM_ELEM_E2M1, word >> 4 * i & 0xf) * 0x1p-6;
            assert_true(got == want && signbit(got) == signbit(want));
        }
    }
}

/* A kernel multiplies the decoded elements of a row of B by factors that stand for their e8m0
 * scales (half_weights.h). Tests that f16 holds the product of every element and every factor
 * exactly. Also tests that this product, times the power of two of bsmm_half_exponent, is the
 * weight, i.e. the element times its scale. */
static void check_range(uint32_t elem, uint32_t bits, uint32_t mantissa) {
    const bsmm_half_range range = bsmm_half_range_of(bits, mantissa);
    const uint32_t reference = bsmm_half_reference(&range, 127);
    for (uint32_t n = 0; n <= range.span; n++) {
        const uint32_t factor = bsmm_half_factor(&range, n);
        assert_int_equal(factor & 0xffff, factor >> 16);
        for (uint32_t code = 0; code < 1u << bits; code++) {
            const double value = bsmm_elem_decode(elem, code);
            if (isnan(value)) continue;
            const double product = ldexp(value, -range.bias) * f16_value(factor);
            assert_true(fabs(product) <= 65504 && product * 0x1p24 == rint(product * 0x1p24));
            assert_true(ldexp(product, bsmm_half_exponent(&range, reference)) ==
                        ldexp(value, (int)(reference + n) - 127));
        }
    }
    for (uint32_t most = 0; most < 255; most++) {
        const uint32_t lowest = bsmm_half_reference(&range, most);
        assert_true(lowest <= most && most - lowest <= range.span && 255 - lowest > range.span);
    }
}

static void f16_holds_ranges_of_scales(void **state) {
    (void)state;
    check_range(BSMM_ELEM_E2M1, 4, 1);
    check_range(BSMM_ELEM_E4M3, 8, 3);
    check_range(BSMM_ELEM_E2M3, 6, 3);
    check_range(BSMM_ELEM_E3M2, 6, 2);
}

static void e4m3_pairs_hold_elements_2_apart(void **state) {
    (void)state;
    rng r = {2};
    for (uint32_t code = 0; code < 256; code++)
        for (uint32_t place = 0; place < 4; place++) {
            uint32_t word = (uint32_t)rng_next(&r), pairs[2];
            word = (word & ~(0xffu << 8 * place)) | code << 8 * place;
            bsmm_e4m3_pairs(word, pairs);
            uint32_t nans = bsmm_e4m3_nans(word);
            for (uint32_t i = 0; i < 4; i++) {
                double got = bf16_value(pairs[i % 2] >> 16 * (i / 2)) * 0x1p120;
                double want = bsmm_elem_decode(BSMM_ELEM_E4M3, word >> 8 * i & 0xff);
                assert_int_equal(nans >> (8 * i + 7) & 1, isnan(want) ? 1 : 0);
                assert_true(isnan(want) ? fabs(got) == 480 : got == want);
            }
        }
}

/* Tests bsmm_e8m0_factor, which makes a factor in bf16 of an e8m0 scale. The 32-bit result must
 * have the factor in both halves. For a scale inside the range that the kernels for few rows
 * support, the factor must be exact: the scale divided by the lowest supported one. The test also
 * checks that bsmm_e8m0_most and bsmm_e8m0_beyond, which go through the scales of a row one after
 * another, detect a scale outside this range, even if other scales follow it. */
static void e8m0_factors_are_exact_or_told(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 256; code++) {
        uint32_t factor = bsmm_e8m0_factor(code);
        assert_int_equal(factor & 0xffff, factor >> 16);
        bool inside = code >= BSMM_SMALL_M_LOWEST && code <= BSMM_SMALL_M_HIGHEST;
        if (inside) assert_true(bf16_value(factor) == ldexp(1, (int)code - BSMM_SMALL_M_LOWEST));
        for (uint32_t before = BSMM_SMALL_M_LOWEST; before <= BSMM_SMALL_M_HIGHEST; before++) {
            uint32_t most = bsmm_e8m0_most(bsmm_e8m0_most(0, before), code);
            assert_int_equal(bsmm_e8m0_beyond(most), !inside);
            assert_int_equal(bsmm_e8m0_beyond(bsmm_e8m0_most(most, before)), !inside);
        }
    }
}

static const char *const formats[] = {
    "f32",        "f16",        "bf16",  "e4m3",  "e4m3fnuz",     "e5m2",
    "e5m2fnuz",   "e3m2",       "e2m3",  "e2m1",  "mxfp8",        "mxfp8_e5m2",
    "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "nvfp4", "fp8_group128", "fp8_block128",
};

static void check_values(bsmm_matrix shape, rng *r) {
    test_matrix t;
    bsmm_operand o;
    test_matrix_make(&t, shape, FILL_SPECIAL, r);
    assert_int_equal(bsmm_operand_take(&t.m, "t", &o), BSMM_OK);
    bsmm_gpu_operand c = bsmm_gpu_operand_of(&o);
    for (int64_t i = 0; i < t.m.rows; i++)
        for (int64_t j = 0; j < t.m.cols; j++) {
            double want = test_matrix_value(&t, i, j);
            double got = bsmm_gpu_value(&c, (uint32_t)i, (uint32_t)j);
            if (isnan(want) ? !isnan(got) : got != want)
                fail_msg("%s at (%lld, %lld): got %a, want %a", bsmm_format_name(t.m.format),
                         (long long)i, (long long)j, got, want);
        }
    test_matrix_free(&t);
}

static void operands_have_their_values(void **state) {
    (void)state;
    rng r = {3};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (uint32_t order = 0; order < 2; order++) {
            bsmm_matrix m = describe(format_named(formats[i]), 21, 140);
            m.order = order;
            m.ld = order ? 24 : 144;
            check_values(m, &r);
            if (m.format.scale == BSMM_SCALE_NONE) continue;
            for (uint32_t layout = 0; layout < BSMM_LAYOUT_COUNT; layout++) {
                m.scale_layout = layout;
                m.scale_tile_rows = layout == BSMM_LAYOUT_TILE_CONTIGUOUS ? 5 : 0;
                m.scale_tile_cols = layout == BSMM_LAYOUT_TILE_CONTIGUOUS ? 3 : 0;
                check_values(m, &r);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e2m1_pairs_hold_elements_4_apart),
        cmocka_unit_test(e2m3_and_e3m2_pairs_hold_elements_4_apart),
        cmocka_unit_test(e4m3_pairs_hold_elements_2_apart),
        cmocka_unit_test(e2m1_becomes_e4m3),
        cmocka_unit_test(f16_holds_ranges_of_scales),
        cmocka_unit_test(e8m0_factors_are_exact_or_told),
        cmocka_unit_test(operands_have_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
