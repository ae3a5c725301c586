/* Tests bsmm_dequantize to f16 and bf16 with values that are hard to round. The product of an
 * element and its scale is halfway between two results, or so near the midpoint that fp32 rounds it
 * to the midpoint. The processor's instructions and plain C must give the same bytes. */
#include "base/scalar.h"
#include "cpu_hooks.h"
#include "operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { COLS = 250, TRIALS = 1000 };

/* Fills the matrix with every element code. Codes of fewer than 8 bits occur several times. */
static void fill_codes(const test_matrix *t) {
    uint32_t elem = t->m.format.elem, codes = 1u << bsmm_elem_row(elem)->bits;
    for (uint32_t i = 0; i < COLS; i++)
        bsmm_elem_store(elem, t->m.data, i, i % codes);
}

/* Returns a number halfway between two adjacent f16 or bf16 numbers, which may be subnormal. */
static double halfway(uint32_t to, rng *r) {
    bool is_f16 = to == BSMM_ELEM_F16;
    int least = is_f16 ? -25 : -134, bits = is_f16 ? 11 : 8, range = is_f16 ? 30 : 254;
    uint32_t whole = rng_below(r, 1u << rng_below(r, (uint32_t)bits)) * 2 + 1;
    bool subnormal = rng_below(r, 2);
    if (!subnormal) whole |= 1u << bits;
    return ldexp(whole, least + (subnormal ? 0 : (int)rng_below(r, (uint32_t)range)));
}

/* Returns a factor for which the product with one of `values` is halfway between two numbers of the
 * format `to`, or next to this midpoint. */
static float factor_of(const double *values, uint32_t count, uint32_t to, rng *r) {
    double value = values[1 + rng_below(r, count - 1)];
    uint32_t bits = bsmm_float_bits((float)(halfway(to, r) / value));
    return bsmm_bits_float(bits + rng_below(r, 3) - 1);
}

static void check(const test_matrix *src, uint32_t to) {
    static const uint32_t processors[] = {0, BSMM_CPU_AVX2, ~0u};
    uint16_t results[BSMM_COUNT(processors)][COLS];
    for (size_t i = 0; i < BSMM_COUNT(processors); i++) {
        bsmm_matrix m = describe((bsmm_format){.elem = to}, 1, COLS);
        m.data = results[i];
        bsmm_cpu_mask_features(processors[i]);
        assert_int_equal(bsmm_dequantize(&src->m, &m), BSMM_OK);
        for (uint32_t c = 0; c < COLS; c++)
            if (results[i][c] != results[0][c])
                fail_msg("%s, column %u, %a, processor %d: %04x, not %04x",
                         bsmm_format_name(src->m.format), c, test_matrix_value(src, 0, c), (int)i,
                         results[i][c], results[0][c]);
    }
    bsmm_cpu_mask_features(~0u);
}

/* Tests dequantizing to f16 and bf16 where rounding is hardest: the exact values lie halfway
 * between two results, or next to this midpoint. In formats with block scales, such a value is an
 * element times a block scale. In formats without block scales, it is an element times the
 * second-level scale. */
static void test_scales_and_levels(void **state) {
    (void)state;
    static const bsmm_format formats[] = {
        {.elem = BSMM_ELEM_E4M3},
        {.elem = BSMM_ELEM_E4M3FNUZ},
        {.elem = BSMM_ELEM_E5M2},
        {.elem = BSMM_ELEM_E3M2},
        {.elem = BSMM_ELEM_E2M3},
        {.elem = BSMM_ELEM_E2M1},
        {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128},
        {BSMM_ELEM_E2M3, BSMM_SCALE_F32, 1, 128},
        {BSMM_ELEM_E2M1, BSMM_SCALE_F32, 1, 128},
    };
    rng r = {11};
    for (int trial = 0; trial < TRIALS; trial++) {
        bsmm_format format = formats[(size_t)trial % BSMM_COUNT(formats)];
        uint32_t to = rng_below(&r, 2) ? BSMM_ELEM_F16 : BSMM_ELEM_BF16;
        uint32_t half = 1u << (bsmm_elem_row(format.elem)->bits - 1);
        const double *values = bsmm_elem_values(format.elem);
        test_matrix src;
        test_matrix_make(&src, describe(format, 1, COLS), FILL_ORDINARY, &r);
        fill_codes(&src);
        for (uint32_t i = 0; i < src.scale_bytes / sizeof(float); i++)
            ((float *)src.m.scales)[i] = factor_of(values, half / 2, to, &r);
        if (!format.scale) {
            src.global = factor_of(values, half / 2, to, &r);
            src.m.global_scale = &src.global;
        }
        check(&src, to);
        test_matrix_free(&src);
    }
}

/* Tests block scales of 1 to 1.875 together with a second-level scale. The product of both with an
 * element has more significant bits than fp32. */
static void test_levels_over_scales(void **state) {
    (void)state;
    rng r = {12};
    for (int trial = 0; trial < TRIALS; trial++) {
        uint32_t elem = trial % 3 ? BSMM_ELEM_E2M1 : BSMM_ELEM_E4M3,
                 codes = elem == BSMM_ELEM_E2M1 ? 8 : 64;
        uint32_t to = rng_below(&r, 2) ? BSMM_ELEM_F16 : BSMM_ELEM_BF16,
                 code = 0x38 + rng_below(&r, 8);
        double values[64];
        test_matrix src;
        test_matrix_make(&src, describe((bsmm_format){elem, BSMM_SCALE_E4M3, 1, 16}, 1, COLS),
                         FILL_ORDINARY, &r);
        fill_codes(&src);
        memset(src.m.scales, (int)code, src.scale_bytes);
        for (uint32_t i = 0; i < codes; i++)
            values[i] = bsmm_elem_values(elem)[i] * bsmm_elem_values(BSMM_ELEM_E4M3)[code];
        src.global = factor_of(values, codes, to, &r);
        src.m.global_scale = &src.global;
        check(&src, to);
        test_matrix_free(&src);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scales_and_levels),
        cmocka_unit_test(test_levels_over_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
