/* Tests the speed-of-light estimate, i.e. the shortest time that a product can take on a device.
 * Compares it with numbers that AMD published. */
#include "sol/sol.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct shape {
    int64_t m, n, k;
} shape;

static bsmm_matrix matrix_of(const char *format, int64_t rows, int64_t cols) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    assert_int_equal(bsmm_format_from_name(format, &matrix.format), BSMM_OK);
    matrix.rows = rows;
    matrix.cols = cols;
    return matrix;
}

static bsmm_sol_estimate estimate(const char *device, const char *a_format, const char *b_format,
                                  const char *d_format, shape s) {
    bsmm_matrix a = matrix_of(a_format, s.m, s.k), b = matrix_of(b_format, s.n, s.k);
    bsmm_matrix d = matrix_of(d_format, s.m, s.n);
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    bsmm_sol_estimate result = BSMM_INIT(bsmm_sol_estimate);
    desc.a = &a, desc.b = &b, desc.d = &d;
    assert_int_equal(bsmm_estimate_sol(device, &desc, &result), BSMM_OK);
    return result;
}

static void assert_near(double value, double expected, double relative) {
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%.9g is not within %g of %.9g", value, relative, expected);
}

/* Tests peak rates that are computed from the cycles of an instruction. They must be the peak rates
 * that AMD published for MI325X. */
static void test_cycle_formula(void **state) {
    (void)state;
    assert_near(BSMM_CYCLE_PEAK(32, 32, 8, 1216, 2100, 32), 1307.4e12, 5e-5);
    const bsmm_sol_device *mi325x = bsmm_sol_device_row("mi325x");
    assert_near(mi325x->info.f32, 163.4e12, 5e-4);
    assert_near(mi325x->info.f16, 1307.4e12, 5e-5);
    assert_near(mi325x->info.f8, 2614.9e12, 5e-5);
    /* The shapes are those of two instructions that take 16 cycles each. The first instruction
     * gives the peak rate for f16, and the second gives the peak rate for f8. */
    assert_near(BSMM_CYCLE_PEAK(16, 16, 16, 1216, 2100, 16), mi325x->info.f16, 1e-12);
    assert_near(BSMM_CYCLE_PEAK(16, 16, 32, 1216, 2100, 16), mi325x->info.f8, 1e-12);
}

/* Tests that the peak rates of MI355X are those in AMD's published table. */
static void test_cdna4_peaks(void **state) {
    (void)state;
    const bsmm_sol_device *mi355x = bsmm_sol_device_row("mi355x");
    assert_near(mi355x->info.f32, 157.3e12, 5e-4);
    assert_near(mi355x->info.f16, 2.5e15, 1e-2);
    assert_near(mi355x->info.f8, 5.0e15, 1e-2);
    assert_near(mi355x->info.f6, 10.0e15, 1e-2);
    assert_near(mi355x->info.f4, 10.0e15, 1e-2);
}

/* Tests that the shortest possible times of the six products of AMD's FP8 groupwise challenge on
 * MI300X are the times in us that AMD published. Memory bandwidth limits the two products with K =
 * 256. */
static void test_challenge_times(void **state) {
    (void)state;
    static const struct {
        shape shape;
        double microseconds;
        const char *limit;
    } published[] = {
        {{1024, 1536, 7168}, 8.6331019, "compute"},  {{1024, 4608, 7168}, 25.8936898, "compute"},
        {{6144, 1536, 7168}, 51.7775517, "compute"}, {{6144, 4608, 7168}, 155.2989590, "compute"},
        {{1024, 7168, 256}, 3.1671426, "memory"},    {{6144, 7168, 256}, 17.2712935, "memory"},
    };
    static const char *const suffixes[] = {"", "_fnuz"};
    for (size_t i = 0; i < BSMM_COUNT(published); i++)
        for (size_t j = 0; j < BSMM_COUNT(suffixes); j++) {
            char a[32], b[32];
            snprintf(a, sizeof a, "fp8_group128%s", suffixes[j]);
            snprintf(b, sizeof b, "fp8_block128%s", suffixes[j]);
            bsmm_sol_estimate e = estimate("mi300x", a, b, "bf16", published[i].shape);
            assert_near(e.seconds * 1e6, published[i].microseconds, 0.01);
            assert_string_equal(e.limit, published[i].limit);
            assert_string_equal(e.unit, "f8");
        }
    bsmm_sol_estimate e =
        estimate("mi300x", "fp8_group128", "fp8_block128", "bf16", (shape){1024, 7168, 256});
    assert_near(e.seconds * 1e6, 3.1671426, 1e-6);
}

static void test_units(void **state) {
    (void)state;
    static const struct {
        const char *device, *a, *b, *unit;
    } cases[] = {
        {"b200", "nvfp4", "nvfp4", "f4"},
        {"b200", "mxfp4", "mxfp4", "f4"},
        {"b200", "mxfp8", "mxfp4", "f8"},
        {"b200", "mxfp8", "mxfp8", "f8"},
        {"b200", "mxfp4", "nvfp4", "f16"},
        {"b200", "bf16", "nvfp4", "f16"},
        {"b200", "bf16", "f16", "f32"},
        {"b200", "f32", "mxfp4", "f32"},
        {"b200", "mxfp6_e2m3", "mxfp4", "f6"},
        {"mi355x", "mxfp4", "mxfp4", "f4"},
        {"mi355x", "mxfp6_e3m2", "mxfp4", "f6"},
        {"mi355x", "mxfp8", "mxfp4", "f8"},
        {"mi355x", "nvfp4", "nvfp4", "f16"},
        {"mi300x", "mxfp4", "mxfp4", "f8"},
        {"mi300x", "mxfp8", "mxfp8", "f16"},
        {"mi300x", "bf16", "mxfp4", "f16"},
        {"h100", "mxfp8", "mxfp4", "f16"},
        {"h100", "mxfp6_e3m2", "mxfp4", "f8"},
        {"h100", "fp8_group128", "fp8_block128", "f8"},
        {"h100", "fp8_group128_fnuz", "fp8_block128_fnuz", "f16"},
        {"h200", "e4m3", "e5m2", "f8"},
        {"h200", "nvfp4", "nvfp4", "f16"},
        {"zen4-2c", "nvfp4", "nvfp4", "f4"},
        {"zen4-2c", "mxfp6_e2m3", "mxfp4", "f6"},
        {"zen4-2c", "mxfp6_e3m2", "mxfp4", "f16"},
        {"zen4-2c", "mxfp8", "mxfp8", "f16"},
        {"zen4-2c", "f16", "mxfp4", "f32"},
        {"zen4-2c", "bf16", "mxfp4", "f16"},
        {"h200", "f16", "mxfp4", "f16"},
        {"zen4-2c", "bf16", "e4m3", "f16"},
        {"zen4-2c", "e5m2", "e4m3fnuz", "f16"},
        {"mi300x", "e4m3", "bf16", "f16"},
        {"h100", "bf16", "e2m1", "f16"},
        {"h100", "bf16", "e2m3", "f16"},
        {"rtx5090", "mxfp6_e2m3", "mxfp4", "f8"},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        bsmm_sol_estimate e =
            estimate(cases[i].device, cases[i].a, cases[i].b, "f16", (shape){256, 256, 256});
        if (strcmp(e.unit, cases[i].unit) != 0)
            fail_msg("%s, %s x %s: unit is %s, expected %s", cases[i].device, cases[i].a,
                     cases[i].b, e.unit, cases[i].unit);
    }
}

/* Tests every pair of presets on every device. There must be an estimate, and it must never
 * decrease if M, N or K grows. */
static void test_every_device_and_preset(void **state) {
    (void)state;
    bsmm_device_info device = BSMM_INIT(bsmm_device_info);
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    for (uint32_t i = 0; bsmm_device_at(i, &device) == BSMM_OK; i++) {
        assert_true(device.f32 > 0 && device.bandwidth > 0);
        assert_true(strlen(device.source) > 0 && strlen(device.title) > 0);
        for (uint32_t j = 0; bsmm_preset_at(j, &preset) == BSMM_OK; j++) {
            double last = 0;
            for (int64_t size = 128; size <= 8192; size *= 2) {
                bsmm_sol_estimate e = estimate(device.name, preset.name, preset.name, "bf16",
                                               (shape){64, size, size});
                double longer = fmax(e.compute_seconds, e.memory_seconds);
                assert_true(e.seconds == longer && e.seconds > last);
                last = e.seconds;
            }
        }
    }
}

static void test_known_devices(void **state) {
    (void)state;
    static const char *const names[] = {"mi300x", "mi325x",  "mi355x",  "h100",   "h200",
                                        "b200",   "rtx5090", "zen4-2c", "zen5-2c"};
    for (size_t i = 0; i < BSMM_COUNT(names); i++)
        assert_non_null(bsmm_sol_device_row(names[i]));
    bsmm_device_info info = BSMM_INIT(bsmm_device_info);
    assert_int_equal(bsmm_device_at(1000, &info), BSMM_E_NOT_FOUND);
}

/* Tests that the speed-of-light estimate counts each byte of the operands, the scales and the
 * result once. */
static void test_bytes_count_once(void **state) {
    (void)state;
    bsmm_matrix a = matrix_of("mxfp4", 64, 128), b = matrix_of("bf16", 32, 128);
    bsmm_matrix c = matrix_of("f32", 64, 32), d = matrix_of("f16", 64, 32);
    float beta = 0;
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    bsmm_sol_estimate e = BSMM_INIT(bsmm_sol_estimate);
    desc.a = &a, desc.b = &b, desc.c = &c, desc.d = &d, desc.beta = &beta;
    int bytes = 64 * 128 / 2 + 64 * 128 / 32 + 32 * 128 * 2 + 64 * 32 * 2;
    assert_int_equal(bsmm_estimate_sol("h200", &desc, &e), BSMM_OK);
    assert_true(e.bytes == bytes);
    assert_true(e.operations == 2.0 * 64 * 32 * 128);
    beta = 1;
    desc.bias_elem = BSMM_ELEM_BF16;
    assert_int_equal(bsmm_estimate_sol("h200", &desc, &e), BSMM_OK);
    assert_true(e.bytes == bytes + 64 * 32 * 4 + 32 * 2);
}

static double bytes_of(const bsmm_matmul_desc *desc) {
    bsmm_sol_estimate e = BSMM_INIT(bsmm_sol_estimate);
    assert_int_equal(bsmm_estimate_sol("h100", desc, &e), BSMM_OK);
    return e.bytes;
}

/* Tests which bytes the estimate does not count, because no kernel moves them. These are gaps
 * between rows, between rows of scales and between the matrices of groups, and rows that masked
 * groups are not expected to have. */
static void test_gaps_do_not_count(void **state) {
    (void)state;
    bsmm_matrix a = matrix_of("mxfp8", 64, 128), b = matrix_of("mxfp4", 32, 128);
    bsmm_matrix d = matrix_of("bf16", 64, 32);
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = &a, desc.b = &b, desc.d = &d;
    const double of_a = 64 * (128 + 4), of_b = 32 * (64 + 4), of_d = 64 * 32 * 2;
    a.ld = 1024, a.scale_ld = 64, b.ld = 512, d.ld = 4096;
    assert_near(bytes_of(&desc), of_a + of_b + of_d, 1e-12);
    bsmm_group group = BSMM_INIT(bsmm_group);
    group.kind = BSMM_GROUP_MASKED, group.count = 3;
    group.a_step = 1 << 20, group.d_step = 1 << 20, group.b_step = BSMM_GROUP_SHARED;
    desc.group = &group;
    assert_near(bytes_of(&desc), 3 * (of_a + of_d) + of_b, 1e-12);
    group.expected_rows = 16;
    assert_near(bytes_of(&desc), 3 * (of_a + of_d) / 4 + of_b, 1e-12);
}

static void test_bad_input(void **state) {
    (void)state;
    bsmm_matrix a = matrix_of("mxfp4", 64, 128), b = matrix_of("mxfp4", 32, 96);
    bsmm_matrix d = matrix_of("f16", 64, 32);
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    bsmm_sol_estimate e = BSMM_INIT(bsmm_sol_estimate);
    desc.a = &a, desc.b = &b, desc.d = &d;
    assert_int_equal(bsmm_estimate_sol("h300", &desc, &e), BSMM_E_NOT_FOUND);
    assert_non_null(strstr(bsmm_error_message(), "h300"));
    assert_int_equal(bsmm_estimate_sol(NULL, &desc, &e), BSMM_E_INVALID);
    assert_int_equal(bsmm_estimate_sol("h200", NULL, &e), BSMM_E_INVALID);
    assert_int_equal(bsmm_estimate_sol("h200", &desc, &e), BSMM_E_INVALID);
    assert_string_equal(bsmm_error_message(), "b.cols: value is 96; must equal a.cols (128)");
    b.cols = 128;
    d.rows = 63;
    assert_int_equal(bsmm_estimate_sol("h200", &desc, &e), BSMM_E_INVALID);
    d.rows = 64;
    desc.bias_elem = 99;
    assert_int_equal(bsmm_estimate_sol("h200", &desc, &e), BSMM_E_INVALID);
    desc.bias_elem = 0;
    assert_int_equal(bsmm_estimate_sol("h200", &desc, NULL), BSMM_E_INVALID);
}

static void test_empty_product_takes_no_time(void **state) {
    (void)state;
    assert_true(estimate("b200", "mxfp4", "mxfp4", "f16", (shape){0, 0, 0}).seconds == 0);
}

static void test_local_device(void **state) {
    (void)state;
    bsmm_local_device cpu = BSMM_INIT(bsmm_local_device);
    assert_int_equal(bsmm_local_device_at(0, &cpu), BSMM_OK);
    assert_string_equal(cpu.name, "cpu");
    assert_true(cpu.cores >= 1 && strlen(cpu.title) > 0);
    uint32_t count = 1; /* The list begins with the cpu. GPUs may follow. */
    while (bsmm_local_device_at(count, &cpu) == BSMM_OK)
        count++;
    assert_int_equal(bsmm_local_device_at(count, &cpu), BSMM_E_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycle_formula),
        cmocka_unit_test(test_cdna4_peaks),
        cmocka_unit_test(test_challenge_times),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_every_device_and_preset),
        cmocka_unit_test(test_known_devices),
        cmocka_unit_test(test_bytes_count_once),
        cmocka_unit_test(test_gaps_do_not_count),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_empty_product_takes_no_time),
        cmocka_unit_test(test_local_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
