/* Tests the vector code that encodes elements on the CPU. It must give the same code as
 * bsmm_elem_encode for every value, and follow the recipes' rules for ties and zeros. Also tests
 * quotients that are computed without a division. */
#include "operand.h"
#include "quantize/coder.h"
#include "recipe/rules.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { RUN = 256 };

typedef struct checked {
    uint32_t elem;
    bool saturate;
    bsmm_coder coder;
} checked;

static void compare_run(const checked *k, const float *values, int64_t n) {
    uint16_t codes[RUN];
    bsmm_coder_run(&k->coder, values, n, codes);
    for (int64_t i = 0; i < n; i++) {
        uint32_t want = bsmm_elem_encode(k->elem, (double)values[i], k->saturate);
        if (codes[i] != want)
            fail_msg("%s of %a is 0x%x; must be 0x%x", bsmm_elem_row(k->elem)->name,
                     (double)values[i], codes[i], want);
    }
}

/* Compares the encoder's codes with those of bsmm_elem_encode for many f32 values. The high 16 bits
 * of these values take all 2^16 values. The low 16 bits take a few values, one of which is 0, so
 * that every bf16 value is tested. */
static void compare_bf16_grid(const checked *k) {
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (uint32_t high = 0; high < 1u << 16; high++) {
        float values[BSMM_COUNT(low)];
        for (size_t i = 0; i < BSMM_COUNT(low); i++)
            values[i] = bsmm_bits_float(high << 16 | low[i]);
        compare_run(k, values, BSMM_COUNT(low));
    }
}

/* Compares the encoder's codes with those of bsmm_elem_encode at the value of every code, at every
 * midpoint between two codes, and at the floats next to these. */
static void compare_boundaries(const checked *k) {
    uint32_t codes = 1u << (bsmm_elem_row(k->elem)->bits - 1);
    for (uint32_t code = 0; code + 1 < codes; code++) {
        double a = bsmm_elem_decode(k->elem, code), b = bsmm_elem_decode(k->elem, code + 1);
        float at[] = {(float)a, (float)((a + b) / 2)}, values[12];
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 6; j++) {
                float near = j % 3 == 0   ? at[i]
                             : j % 3 == 1 ? nextafterf(at[i], INFINITY)
                                          : nextafterf(at[i], -INFINITY);
                values[6 * i + j] = j < 3 ? near : -near;
            }
        compare_run(k, values, 12);
    }
}

static void compare_random(const checked *k) {
    rng r = {k->elem};
    for (int i = 0; i < 1000000 / RUN; i++) {
        float values[RUN];
        for (int j = 0; j < RUN; j++)
            values[j] = bsmm_bits_float((uint32_t)rng_next(&r));
        compare_run(k, values, RUN);
    }
}

static void test_coder_is_the_scalar_codec(void **state) {
    (void)state;
    for (uint32_t elem = next_elem(BSMM_ELEM_F32); elem; elem = next_elem(elem))
        for (int saturate = 0; saturate <= 1; saturate++) {
            checked k = {elem, saturate,
                         bsmm_coder_make(elem, saturate, BSMM_TIES_EVEN, BSMM_ZERO_KEEPS_SIGN)};
            compare_bf16_grid(&k);
            compare_boundaries(&k);
            compare_random(&k);
        }
}

/* Returns the e2m1 code of the number nearest to `value`. If two numbers are equally near, returns
 * the code of the smaller one. */
static uint32_t nearest_down(double value) {
    uint32_t best = 0;
    for (uint32_t code = 1; code < 8; code++) {
        double other = fabs(bsmm_elem_decode(BSMM_ELEM_E2M1, code) - fabs(value));
        if (other < fabs(bsmm_elem_decode(BSMM_ELEM_E2M1, best) - fabs(value))) best = code;
    }
    return best;
}

static void test_ties_down(void **state) {
    (void)state;
    bsmm_coder coder = bsmm_coder_make(BSMM_ELEM_E2M1, true, BSMM_TIES_DOWN, BSMM_ZERO_CODE_PLUS);
    for (int i = -800; i <= 800; i++) {
        float value = (float)i / 100, exact = (float)i / 8;
        uint16_t code;
        bsmm_coder_run(&coder, &value, 1, &code);
        assert_int_equal(code & 7, nearest_down((double)value));
        bsmm_coder_run(&coder, &exact, 1, &code);
        assert_int_equal(code & 7, nearest_down((double)exact));
        assert_int_equal(code >> 3, i < 0 && code & 7);
    }
}

/* Tests that the encoder rounds ties towards zero, with every e4m3 scale. The encoder must compare
 * a value with midpoint * scale, where a midpoint lies halfway between two element values. This
 * product is exact. The quotient value / scale would be rounded, and comparing it with the midpoint
 * would give wrong codes. */
static void test_bounds_times_scale(void **state) {
    (void)state;
    bsmm_coder coder = bsmm_coder_make(BSMM_ELEM_E2M1, true, BSMM_TIES_DOWN, BSMM_ZERO_CODE_PLUS);
    static const float bounds[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
    for (uint32_t s = 1; s < 0x7f; s++)
        for (size_t i = 0; i < BSMM_COUNT(bounds); i++) {
            float scale = (float)bsmm_elem_decode(BSMM_ELEM_E4M3, s), at = bounds[i] * scale;
            float values[] = {at, nextafterf(at, INFINITY), nextafterf(at, 0)};
            uint16_t codes[3];
            bsmm_coder_run_bounds(&coder, values, 3, scale, codes);
            assert_int_equal(codes[0], i);
            assert_int_equal(codes[1], i + 1);
            assert_int_equal(codes[2], i);
        }
}

static void test_bounds_have_no_answer_for_what_is_not_near(void **state) {
    (void)state;
    bsmm_coder coder = bsmm_coder_make(BSMM_ELEM_E2M1, true, BSMM_TIES_DOWN, BSMM_ZERO_CODE_PLUS);
    const float values[] = {1, -3e38f, INFINITY, NAN};
    uint16_t codes[4];
    bsmm_coder_run_bounds(&coder, values, 4, 0, codes);
    for (int i = 0; i < 4; i++)
        assert_int_equal(codes[i], 0);
    bsmm_coder_run_bounds(&coder, values, 4, 1, codes);
    static const uint16_t want[] = {2, 15, 0, 0};
    assert_memory_equal(codes, want, sizeof want);
}

static void test_zero_signs(void **state) {
    (void)state;
    static const struct {
        bsmm_zero_sign rule;
        uint16_t codes[4];
    } rows[] = {{BSMM_ZERO_KEEPS_SIGN, {0, 8, 0, 8}},
                {BSMM_ZERO_PLUS, {0, 0, 0, 8}},
                {BSMM_ZERO_CODE_PLUS, {0, 0, 0, 0}},
                {BSMM_ZERO_MINUS, {8, 8, 0, 8}}};
    const float values[] = {0.0f, -0.0f, 1e-3f, -1e-3f};
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        for (int ties = BSMM_TIES_EVEN; ties <= BSMM_TIES_DOWN; ties++) {
            uint16_t codes[4];
            bsmm_coder coder = bsmm_coder_make(BSMM_ELEM_E2M1, true, (bsmm_ties)ties, rows[i].rule);
            bsmm_coder_run(&coder, values, 4, codes);
            assert_memory_equal(codes, rows[i].codes, sizeof codes);
        }
}

/* Loads every code of a 16-bit format from a row-major or column-major matrix, and compares the
 * floats with the scalar codec. */
static void load_all(uint32_t elem, uint32_t order) {
    static uint16_t codes[1 << 16];
    static float values[1 << 16];
    for (uint32_t i = 0; i < 1u << 16; i++)
        codes[i] = (uint16_t)i;
    bsmm_matrix m = describe((bsmm_format){.elem = elem}, 256, 256);
    m.order = order;
    m.data = codes;
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(&m, "m", &o), BSMM_OK);
    bsmm_values_load(&o, 0, 256, 0, 256, values, 256);
    for (uint32_t i = 0; i < 1u << 16; i++) {
        uint32_t code = order == BSMM_ORDER_ROW ? i : i % 256 * 256 + i / 256;
        double want = bsmm_elem_decode(elem, code);
        assert_true(isnan(want) ? isnan(values[i]) : (double)values[i] == want);
        assert_int_equal(signbit(values[i]) != 0, code >> 15);
    }
}

static void test_values_of_every_code(void **state) {
    (void)state;
    for (uint32_t order = BSMM_ORDER_ROW; order <= BSMM_ORDER_COL; order++) {
        load_all(BSMM_ELEM_F16, order);
        load_all(BSMM_ELEM_BF16, order);
    }
}

/* Returns the inverse of an odd number modulo 2^32. */
static uint32_t inverse(uint32_t odd) {
    uint32_t y = odd;
    for (int i = 0; i < 4; i++)
        y *= 2 - odd * y;
    return y;
}

/* Tests bsmm_ratio by a division a / b whose quotient is very close to the midpoint between two
 * floats, where a wrong rounding is most likely. For this purpose the function chooses an integer a
 * for which a * 2^shift = m * b + rest. m is the significand of a midpoint, and `rest` is small, so
 * a / b is nearly m / 2^shift. */
static void check_ratio(uint32_t b, uint32_t rest, uint32_t shift) {
    uint32_t below = (1u << shift) - 1, middle = (0 - rest) * inverse(b) & below;
    uint64_t product = (uint64_t)(middle | 1u << 24) * b + (uint64_t)(int64_t)(int32_t)rest;
    float a = (float)(product >> shift), got = bsmm_ratio(a, (float)b, true);
    if (product >> shift >> 24 == 0 && got != a / (float)b)
        fail_msg("%a / %a is %a", (double)a, (double)b, (double)got);
}

static void test_ratios(void **state) {
    (void)state;
    rng r = {8};
    for (int i = 0; i < 1 << 15; i++) {
        uint32_t b = 1u << 23 | rng_below(&r, 1 << 22) << 1 | 1;
        for (uint32_t rest = 0; rest < 16; rest++)
            for (uint32_t shift = 24; shift <= 25; shift++)
                check_ratio(b, rest - 8, shift);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coder_is_the_scalar_codec),
        cmocka_unit_test(test_ties_down),
        cmocka_unit_test(test_bounds_times_scale),
        cmocka_unit_test(test_bounds_have_no_answer_for_what_is_not_near),
        cmocka_unit_test(test_zero_signs),
        cmocka_unit_test(test_values_of_every_code),
        cmocka_unit_test(test_ratios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
