/* Tests functions of GPU code on the CPU. Each function in base/device.h has a version for each GPU
 * compiler and one for the host. The test compares the host version with C's mathematical functions
 * and with the scalar codec. */
#include "gpu/epilogue.h"
#include "gpu/params.h"
#include "operand.h"

#include <fenv.h>
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect_log2(float value) {
    const float got = (float)bsmm_log2_series(value), want = (float)log2((double)value);
    if (bsmm_float_bits(got) != bsmm_float_bits(want))
        fail_msg("log2 of %a: %a, not %a", (double)value, (double)got, (double)want);
}

/* Tests that the last bit of log2 is right. Recipes round log2 to an integer, so a wrong last bit
 * near a power of two would change a scale by a factor of 2. */
static void log2_as_in_the_library_of_mathematics(void **state) {
    (void)state;
    rng r = {7};
    for (int exponent = -149; exponent < 128; exponent++)
        for (uint32_t near = 0; near < 64; near++) {
            const uint32_t bits = bsmm_float_bits(bsmm_pow2(exponent)) + near;
            expect_log2(bsmm_bits_float(bits));
            if (bits > 64) expect_log2(bsmm_bits_float(bits - 2 * near));
        }
    for (int i = 0; i < 2000000; i++)
        expect_log2(bsmm_bits_float((uint32_t)rng_next(&r) % 0x7f800001u));
    assert_true(bsmm_log2_series(0) == -INFINITY);
    assert_true(isnan(bsmm_log2_series(NAN)));
}

static double random_double(rng *r) {
    union {
        uint64_t bits;
        double value;
    } both = {.bits = rng_next(r)};
    both.bits = (both.bits & ~(0x7ffull << 52)) | (1023 - 170 + rng_next(r) % 340) << 52;
    /* In a quarter of the inputs, a random number of low bits is set to 0, so that some inputs are
     * representable exactly, and some lie halfway between two codes. */
    if (rng_next(r) % 4 == 0) both.bits &= ~0ull << (rng_next(r) % 52);
    return both.value;
}

static void doubles_are_cut_towards_zero(void **state) {
    (void)state;
    rng r = {8};
    for (int i = 0; i < 1000000; i++) {
        volatile double value = random_double(&r);
        fesetround(FE_TOWARDZERO);
        volatile float want = (float)value;
        fesetround(FE_TONEAREST);
        assert_int_equal(bsmm_float_bits(bsmm_double_toward_zero(value)), bsmm_float_bits(want));
    }
}

static void bytes_are_picked(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(bsmm_pick_bytes(0x13121110, 0x17161514, i * 0x1111),
                         (0x10 + i) * 0x01010101);
    assert_int_equal(bsmm_pick_bytes(0x13121110, 0x17161514, 0x7206), 0x17121016);
}

/* Expects that the epilogue rounds a double only once, to the code that the scalar codec gives. */
static void expect_code(const bsmm_gpu_epilogue *e, double value) {
    const bool narrow = bsmm_elem_row(e->d_elem)->bits <= 8;
    const uint32_t got = bsmm_gpu_epilogue_code(e, value),
                   want = bsmm_elem_encode(e->d_elem, value, narrow);
    if (got != want)
        fail_msg("%s of %a: %x, not %x", bsmm_elem_row(e->d_elem)->name, value, got, want);
}

static void results_have_the_codecs_codes(void **state) {
    (void)state;
    static const uint32_t elems[] = {BSMM_ELEM_F32,     BSMM_ELEM_F16,  BSMM_ELEM_BF16,
                                     BSMM_ELEM_E4M3,    BSMM_ELEM_E5M2, BSMM_ELEM_E4M3FNUZ,
                                     BSMM_ELEM_E5M2FNUZ};
    rng r = {9};
    for (size_t k = 0; k < BSMM_COUNT(elems); k++) {
        bsmm_gpu_epilogue e = {.d_elem = elems[k], .d_nan = bsmm_elem_encode(elems[k], NAN, false)};
        if (bsmm_elem_row(elems[k])->bits <= 8) e.d_codec = bsmm_narrow_codec_of(elems[k]);
        for (int i = 0; i < 300000; i++) {
            const double value = random_double(&r);
            expect_code(&e, i % 2
                                ? value
                                : remainder(value, 64) * bsmm_pow2((int)(rng_next(&r) % 48) - 24));
        }
        expect_code(&e, 0.0);
        expect_code(&e, -0.0);
        expect_code(&e, NAN);
        expect_code(&e, INFINITY);
        expect_code(&e, -DBL_MAX);
    }
}

static void a_result_goes_through_every_step(void **state) {
    (void)state;
    const float global_a = 0.5f, global_d = 4, c[6] = {0, 1, 2, 3, 4, 5}, bias[3] = {8, 16, 32};
    uint32_t d[6] = {0}; /* The output is an array of uint32, because the epilogue stores codes. */
    const bsmm_gpu_epilogue e = {.d = d,
                                 .c = c,
                                 .bias = bias,
                                 .d_row = 3,
                                 .d_col = 1,
                                 .c_row = 1,
                                 .c_col = 2,
                                 .alpha = 3,
                                 .beta = 2,
                                 .d_elem = BSMM_ELEM_F32,
                                 .globals = {&global_a, NULL, &global_d},
                                 .divides = {0, 0, 0},
                                 .c_elem = BSMM_ELEM_F32,
                                 .bias_elem = BSMM_ELEM_F32};
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&e);
    for (uint32_t row = 0; row < 2; row++)
        for (uint32_t col = 0; col < 3; col++)
            bsmm_gpu_epilogue_store(&e, &factors, row, col, 10 * row + col);
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t row = i / 3, col = i % 3;
        const double value =
            1.5 * (10 * row + col) + 2.0 * (double)c[row + 2 * col] + (double)bias[col];
        assert_true(bsmm_bits_float(d[i]) == (float)(value / 4));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log2_as_in_the_library_of_mathematics),
        cmocka_unit_test(doubles_are_cut_towards_zero),
        cmocka_unit_test(bytes_are_picked),
        cmocka_unit_test(results_have_the_codecs_codes),
        cmocka_unit_test(a_result_goes_through_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
