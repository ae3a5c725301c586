/* Compares the rows of D that the CPU epilogue stores with the scalar codec. Every value must be
 * rounded only once, from double. The test runs the epilogue of every instruction set of this
 * processor. */
#include "cpu/engine/engine_gemm.h"
#include "cpu_hooks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { COLS = 1024 };

static void check_row(uint32_t elem, const double *values) {
    static uint32_t out[COLS];
    bsmm_product p = {0};
    p.d.m.format.elem = elem;
    p.d.m.rows = 1, p.d.m.cols = p.d.m.ld = COLS;
    p.d.m.data = out;
    bsmm_cpu_epilogue_store(&p, 0, 0, COLS, values);
    for (int i = 0; i < COLS; i++) {
        uint32_t code = bsmm_elem_load(elem, out, (uint64_t)i);
        uint32_t expected = bsmm_elem_encode(elem, values[i], bsmm_elem_row(elem)->bits == 8);
        if (code != expected)
            fail_msg("%s of %a: %#x, expected %#x", bsmm_elem_row(elem)->name, values[i], code,
                     expected);
    }
}

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Fills `values` with doubles that are very close to a number that D's format represents, or to the
 * midpoint between two such numbers. Rounding them to fp32 would give exactly this number or
 * midpoint, and a second rounding to D's format might then choose a wrong code. An epilogue must
 * therefore round only once. */
static void fill_neighbours(uint32_t elem, uint32_t first, double *values) {
    for (uint32_t i = 0; i < COLS / 8; i++) {
        double low = bsmm_elem_decode(elem, first + i);
        double high = bsmm_elem_decode(elem, first + i + 1);
        double middle = isfinite(low) && isfinite(high) ? (low + high) / 2 : low;
        const double group[8] = {low,
                                 nextafter(low, INFINITY),
                                 nextafter(low, -INFINITY),
                                 middle,
                                 nextafter(middle, INFINITY),
                                 nextafter(middle, -INFINITY),
                                 middle * (1 + 0x1p-40),
                                 middle * (1 - 0x1p-40)};
        memcpy(values + (size_t)i * 8, group, sizeof group);
    }
}

static void test_neighbours(void **state) {
    (void)state;
    static const uint32_t elems[] = {BSMM_ELEM_F16,  BSMM_ELEM_BF16,     BSMM_ELEM_E4M3,
                                     BSMM_ELEM_E5M2, BSMM_ELEM_E4M3FNUZ, BSMM_ELEM_E5M2FNUZ};
    double values[COLS];
    for (size_t e = 0; e < sizeof elems / sizeof elems[0]; e++)
        for (uint32_t first = 0; first < 1u << bsmm_elem_row(elems[e])->bits; first += COLS / 8) {
            fill_neighbours(elems[e], first, values);
            check_row(elems[e], values);
        }
    /* These values are bf16 numbers from code 65 on (the upper half of the subnormals), the
     * midpoints between neighbouring ones, and numbers just above and below all of these. */
    fill_neighbours(BSMM_ELEM_BF16, 65, values);
    check_row(BSMM_ELEM_BF16, values);
}

static void test_random_doubles(void **state) {
    (void)state;
    static const uint32_t elems[] = {BSMM_ELEM_F32,     BSMM_ELEM_F16,  BSMM_ELEM_BF16,
                                     BSMM_ELEM_E4M3,    BSMM_ELEM_E5M2, BSMM_ELEM_E4M3FNUZ,
                                     BSMM_ELEM_E5M2FNUZ};
    uint64_t seed = 1;
    double values[COLS];
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < COLS; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            /* The random exponents are such that some values are too large for fp32 or for 8-bit
             * formats, and some are too small. */
            uint64_t exponent =
                round % 3 ? 1023 - 160 + (seed >> 33) % 320 : 1023 - 24 + (seed >> 33) % 42;
            values[i] = from_bits((seed & 0x800fffffffffffff) | exponent << 52);
        }
        const double special[] = {0.0,
                                  -0.0,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  -NAN,
                                  65519.999999,
                                  65520,
                                  from_bits(0x7ff0000000000001),
                                  from_bits(0xfff0000000000001),
                                  0x1p-1074,
                                  -0x1p-1074,
                                  0x1.fffffffffffffp1023};
        if (round % 2) memcpy(values, special, sizeof special);
        for (size_t e = 0; e < sizeof elems / sizeof elems[0]; e++)
            check_row(elems[e], values);
    }
}

/* Tests the addition of beta times C and of an f32 bias. C contains every code of its format. */
static void test_added(void **state) {
    (void)state;
    static uint16_t codes[COLS];
    static float bias[COLS];
    static const uint32_t elems[] = {BSMM_ELEM_F16, BSMM_ELEM_BF16};
    double values[COLS];
    for (size_t e = 0; e < sizeof elems / sizeof elems[0]; e++)
        for (uint32_t first = 0; first < 0x10000; first += COLS) {
            for (uint32_t i = 0; i < COLS; i++) {
                codes[i] = (uint16_t)(first + i);
                bias[i] = (float)i / 3;
                values[i] = (double)i / 7;
            }
            bsmm_product p = {.has_c = true, .alpha = 1, .beta = -0.3};
            p.c.m = (bsmm_matrix){.format.elem = elems[e], .rows = 1, .cols = COLS, .ld = COLS};
            p.c.m.data = codes;
            p.bias_elem = BSMM_ELEM_F32;
            p.bias = bias;
            bsmm_cpu_epilogue_add(&p, 0, 0, COLS, values);
            for (uint32_t i = 0; i < COLS; i++) {
                double want = (double)i / 7 + p.beta * bsmm_elem_decode(elems[e], first + i);
                want += (double)bias[i];
                if (memcmp(&values[i], &want, sizeof want) != 0)
                    fail_msg("%s code %#x: %a, expected %a", bsmm_elem_row(elems[e])->name,
                             first + i, values[i], want);
            }
        }
}

static float random_float(uint64_t *seed, int round) {
    static const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                       0xffc12345, 1,          0x007fffff, 0x80800000, 0x7f7fffff};
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    uint32_t bits = (uint32_t)(*seed >> 32);
    /* Some values are near the subnormals of fp32. */
    uint32_t exponent = round % 3 == 0   ? bits >> 23 & 255
                        : round % 3 == 1 ? 127 - 30 + (bits >> 23) % 48
                                         : (bits >> 23) % 20;
    bits = (bits & 0x807fffff) | exponent << 23;
    if (round % 2 && bits % 16 == 0) bits = special[bits / 16 % 10];
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const uint32_t elems[] = {BSMM_ELEM_F32, BSMM_ELEM_F16, BSMM_ELEM_BF16};

enum { ADDED_C = 1, ADDED_BIAS = 2 };

/* Adds to the product a C of `rows` rows of random codes if `added` contains ADDED_C, and a bias if
 * it contains ADDED_BIAS. */
static void add_c_and_bias(bsmm_product *p, uint32_t added, int round, int64_t rows, int64_t cols) {
    enum { MOST = 7 * COLS };
    static float c[MOST], bias[COLS];
    uint64_t seed = (uint64_t)round;
    for (int i = 0; i < MOST; i++)
        c[i] = random_float(&seed, round);
    for (int i = 0; i < COLS; i++)
        bias[i] = random_float(&seed, round % 7 ? 1 : round);
    p->has_c = added & ADDED_C;
    p->beta = round % 2 ? -0.3 : 2;
    p->c.m = (bsmm_matrix){.format.elem = elems[round % 3], .rows = rows, .cols = cols};
    p->c.m.ld = cols + round % 4;
    p->c.m.data = c;
    p->bias = added & ADDED_BIAS ? bias : NULL;
    p->bias_elem = added & ADDED_BIAS ? elems[round / 3 % 3] : BSMM_ELEM_NONE;
}

/* Returns the factor of column i of D. It is 1, any number, or a power of two, depending on
 * `round`. Multiplied by the factor of a row, some of the powers of two are outside the range of
 * fp32. */
static double column_factor(int round, int i) {
    if (round % 4 < 2) return 1;
    if (round % 4 == 2) return ldexp(1 + i % 3, i % 7 - 3);
    return ldexp(1, (i % 7 - 3) * (round % 8 == 3 ? 1 : 25));
}

/* Tests how the epilogue makes a row of D from accumulators. The vector code does all steps in one
 * pass over the row, and the plain C code makes several passes. The results must be bitwise
 * identical. In some rounds, C and D are the same memory. */
static void test_direct_rows(void **state) {
    static const double factors[] = {1, 0x1p-40, -4, 0.3, 0x1p70, 0, 0x1p-80};
    static const double alphas[] = {1, -0.5, 1.7};
    static float acc[COLS], got[COLS], want[COLS];
    static double columns[COLS], values[COLS];
    static uint8_t wide[COLS];
    uint64_t seed = 7;
    for (int round = 0; round < 540; round++) {
        for (int i = 0; i < COLS; i++) {
            acc[i] = random_float(&seed, round);
            columns[i] = column_factor(round, i);
        }
        bsmm_product p = {.alpha = alphas[round % 3]};
        int64_t cols = 1 + round % COLS;
        p.d.m = (bsmm_matrix){.format.elem = elems[round / 3 % 3], .rows = 1, .cols = COLS};
        p.d.m.ld = COLS;
        uint32_t added = (uint32_t)round / 54;
        add_c_and_bias(&p, added % 4, round / 2, 1, COLS);
        bool in_place = added >= 6;
        if (in_place) p.c.m = p.d.m;
        bsmm_gemm_row row = {.cols = cols, .acc = acc, .factor = factors[round / 9 % 7]};
        row.column_factors = columns;
        row.column_wide = wide;
        memset(got, 0xa5, sizeof got);
        memset(want, 0xa5, sizeof want);
        for (int i = 0; i < (in_place ? COLS : 0); i++)
            got[i] = want[i] = random_float(&seed, round);
        p.d.m.data = got;
        if (in_place) p.c.m.data = got;
        bsmm_gemm_store_row(&p, &row, values);
        bsmm_cpu_mask_features(0);
        p.d.m.data = want;
        if (in_place) p.c.m.data = want;
        bsmm_gemm_store_row(&p, &row, values);
        bsmm_cpu_mask_features(*(const uint32_t *)*state);
        assert_memory_equal(got, want, sizeof got);
    }
}

/* Tests results that lie just above or just below the midpoint between two subnormals of bf16. A
 * result is an accumulator times the factor of its row, rounded once to bf16. An epilogue that
 * rounded the product to fp32 first would get exactly the midpoint, and could then round it to the
 * wrong subnormal. */
static void test_direct_subnormals(void **state) {
    (void)state;
    enum { CODES = 127 };
    for (int shift = 0; shift <= 20; shift += 20) {
        float acc[CODES];
        double columns[CODES], values[CODES];
        uint8_t wide[CODES] = {0};
        uint16_t codes[CODES];
        for (int i = 0; i < CODES; i++) {
            acc[i] = nextafterf(ldexpf((float)i + 0.5f, -shift), i % 2 ? 0 : 1e9f);
            columns[i] = 1;
        }
        bsmm_product p = {.alpha = 1};
        p.d.m = (bsmm_matrix){
            .format.elem = BSMM_ELEM_BF16, .rows = 1, .cols = CODES, .ld = CODES, .data = codes};
        bsmm_gemm_row row = {.cols = CODES, .acc = acc, .factor = ldexp(1, shift - 133)};
        row.column_factors = columns;
        row.column_wide = wide;
        bsmm_gemm_store_row(&p, &row, values);
        for (int i = 0; i < CODES; i++)
            assert_int_equal(codes[i], i % 2 ? i : i + 1);
    }
}

/* Tests that storing a whole tile of accumulators gives the same bytes as storing its rows one by
 * one. With a D in bf16, the function that stores rows stops if it cannot round a row. `done` is
 * the number of rows that it has stored before. */
static void test_direct_tiles(void **state) {
    (void)state;
    enum { ROWS = 7, PITCH = 64 };
    static const double factors[ROWS] = {1, 1, 0.3, 0x1p-20, 0.3, 0.3, -2};
    static float acc[ROWS * PITCH], got[ROWS * PITCH], want[ROWS * PITCH];
    double columns[PITCH], values[PITCH];
    uint8_t wide[PITCH] = {0};
    uint64_t seed = 9;
    for (int round = 0; round < 240; round++) {
        uint32_t elem = elems[round % 3];
        int64_t cols = 1 + round % PITCH, done = 0;
        for (int i = 0; i < ROWS * PITCH; i++)
            acc[i] = random_float(&seed, round % 7 ? 1 : 2);
        for (int i = 0; i < PITCH; i++)
            columns[i] = column_factor(round, i);
        bsmm_product p = {.alpha = 1};
        add_c_and_bias(&p, (uint32_t)round / 15 % 4, round / 2, ROWS, PITCH);
        p.d.m = (bsmm_matrix){.format.elem = elem, .rows = ROWS, .cols = PITCH, .ld = PITCH};
        p.d.m.data = want;
        for (int64_t r = 0; r < ROWS; r++) {
            bsmm_gemm_row row = {.r = r, .cols = cols, .acc = acc + r * PITCH};
            row.factor = factors[r];
            row.column_factors = columns;
            row.column_wide = wide;
            bsmm_gemm_store_row(&p, &row, values);
        }
        p.d.m.data = got;
        if (!bsmm_cpu_epilogue_is_direct(&p)) skip();
        const bsmm_cpu_epilogue_tile tile = {.acc = acc,
                                             .pitch = PITCH,
                                             .factors = factors,
                                             .column_factors = columns,
                                             .rows = ROWS,
                                             .cols = cols};
        done = bsmm_cpu_epilogue_direct(&p, 0, 0, tile);
        if (elem != BSMM_ELEM_BF16) assert_int_equal(done, ROWS);
        size_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
        for (size_t r = 0; r < (size_t)done; r++)
            assert_memory_equal((char *)got + r * PITCH * bytes, (char *)want + r * PITCH * bytes,
                                (size_t)cols * bytes);
    }
}

static int mask(void **state) {
    bsmm_cpu_mask_features(*(const uint32_t *)*state);
    return 0;
}

static int unmask(void **state) {
    (void)state;
    bsmm_cpu_mask_features(~0u);
    return 0;
}

int main(void) {
    static uint32_t all = ~0u, avx2 = BSMM_CPU_AVX2, none = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(test_neighbours, mask, unmask, &all),
        cmocka_unit_test_prestate_setup_teardown(test_neighbours, mask, unmask, &avx2),
        cmocka_unit_test_prestate_setup_teardown(test_neighbours, mask, unmask, &none),
        cmocka_unit_test_prestate_setup_teardown(test_random_doubles, mask, unmask, &all),
        cmocka_unit_test_prestate_setup_teardown(test_added, mask, unmask, &all),
        cmocka_unit_test_prestate_setup_teardown(test_random_doubles, mask, unmask, &avx2),
        cmocka_unit_test_prestate_setup_teardown(test_added, mask, unmask, &avx2),
        cmocka_unit_test_prestate_setup_teardown(test_random_doubles, mask, unmask, &none),
        cmocka_unit_test_prestate_setup_teardown(test_added, mask, unmask, &none),
        cmocka_unit_test_prestate_setup_teardown(test_direct_rows, mask, unmask, &all),
        cmocka_unit_test_prestate_setup_teardown(test_direct_rows, mask, unmask, &avx2),
        cmocka_unit_test_prestate_setup_teardown(test_direct_subnormals, mask, unmask, &all),
        cmocka_unit_test_prestate_setup_teardown(test_direct_subnormals, mask, unmask, &avx2),
        cmocka_unit_test_prestate_setup_teardown(test_direct_tiles, mask, unmask, &all),
        cmocka_unit_test_prestate_setup_teardown(test_direct_tiles, mask, unmask, &avx2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
