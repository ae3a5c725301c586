/* Tests the table of AMD's matrix instructions. Each element must be in the register, lane and
 * bits of AMD's register layouts. The cycles of the instructions must give the peak rate of each
 * device. */
#include <bsmm.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const printed[] = {
    "v_mfma_f32_32x32x2_f32",  "v_mfma_f32_16x16x4_f32",      "v_mfma_f32_32x32x8_f16",
    "v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x16_fp8_fp8", "v_mfma_f32_16x16x32_fp8_fp8",
};

static bsmm_mfma_place place_of(const char *name, const char *type, uint32_t operand, uint32_t row,
                                uint32_t col) {
    bsmm_mfma_place place = BSMM_INIT(bsmm_mfma_place);
    if (bsmm_mfma_find_place(name, type, operand, 0, row, col, &place))
        fail_msg("%s", bsmm_error_message());
    return place;
}

/* Compares a cell of AMD's files with the library. A cell such as "v1{16}.[15:8]" means register
 * 1, lane 16, bits 15 to 8. Cells of 32-bit elements have no bits. */
static void check_cell(const char *name, uint32_t operand, uint32_t row, uint32_t col,
                       const char *cell) {
    unsigned reg, lane, high = 31, low = 0;
    assert_true(sscanf(cell, "v%u{%u}.[%u:%u]", &reg, &lane, &high, &low) >= 2);
    bsmm_mfma_place place = place_of(name, NULL, operand, row, col);
    if (place.reg != reg || place.lane != lane || place.low_bit != low ||
        place.bits != high - low + 1)
        fail_msg("%s: operand %u, (%u, %u) is v%u{%u} bit %u, not %s", name, operand, row, col,
                 place.reg, place.lane, place.low_bit, cell);
}

/* Checks every element in a file of AMD's matrix instruction calculator. Returns the number of
 * elements. */
static uint32_t check_file(const char *name, uint32_t operand) {
    char path[512], *line = NULL, *rest;
    size_t size = 0;
    uint32_t count = 0;
    snprintf(path, sizeof path, "%s/mfma/cdna3_%s_%c_reglayout.csv", BSMM_GOLDEN_DIR, name,
             "ABCD"[operand]);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s cannot be opened", path);
    for (uint32_t n = 0; getline(&line, &size, file) > 0; n++) {
        if (n < 4)
            /* Skips the first lines of the CSV file, which name the architecture, the instruction,
             * the block of the matrix and the columns. */
            continue;
        char *cell = strtok_r(line, ",\n", &rest);
        const uint32_t row = (uint32_t)strtoul(cell, NULL, 10);
        for (uint32_t col = 0; (cell = strtok_r(NULL, ",\n", &rest)); col++, count++)
            check_cell(name, operand, row, col, cell);
    }
    fclose(file);
    free(line);
    return count;
}

static bsmm_mfma_info find(const char *name, uint32_t cdna) {
    bsmm_mfma_info info = BSMM_INIT(bsmm_mfma_info);
    for (uint32_t i = 0; !bsmm_mfma_at(i, &info); i++)
        if (!strcmp(info.name, name) && info.cdna == cdna) return info;
    fail_msg("%s is not in the table of CDNA %u", name, cdna);
    return info;
}

static void test_amds_layouts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        const bsmm_mfma_info info = find(printed[i], 3);
        assert_int_equal(check_file(printed[i], BSMM_MFMA_A), info.m * info.k);
        assert_int_equal(check_file(printed[i], BSMM_MFMA_B), info.k * info.n);
        assert_int_equal(check_file(printed[i], BSMM_MFMA_C), info.m * info.n);
        assert_int_equal(check_file(printed[i], BSMM_MFMA_D), info.m * info.n);
    }
}

/* Checks for every instruction that each bit in the registers of each lane belongs to exactly one
 * element. */
static void check_bijection(const bsmm_mfma_info *info, const char *type, uint32_t operand,
                            uint32_t rows, uint32_t cols) {
    static uint8_t taken[64][64 * 32];
    uint32_t bits = 0;
    memset(taken, 0, sizeof taken);
    for (uint32_t block = 0; block < info->blocks; block++)
        for (uint32_t i = 0; i < rows * cols; i++) {
            bsmm_mfma_place p = BSMM_INIT(bsmm_mfma_place);
            assert_int_equal(
                bsmm_mfma_find_place(info->name, type, operand, block, i / cols, i % cols, &p),
                BSMM_OK);
            bits = p.bits;
            assert_true(p.lane < 64);
            for (uint32_t b = 0; b < p.bits; b++)
                assert_int_equal(taken[p.lane][p.reg * 32 + p.low_bit + b]++, 0);
        }
    const uint32_t held = rows * cols * info->blocks * bits / 64;
    for (uint32_t lane = 0; lane < 64; lane++)
        for (uint32_t b = 0; b < held; b++)
            assert_int_equal(taken[lane][b], 1);
}

static void test_every_bit_is_taken_once(void **state) {
    (void)state;
    bsmm_mfma_info info = BSMM_INIT(bsmm_mfma_info);
    for (uint32_t i = 0; !bsmm_mfma_at(i, &info); i++) {
        char types[64], *rest;
        snprintf(types, sizeof types, "%s", info.a);
        for (char *type = strtok_r(types, " ", &rest); type; type = strtok_r(NULL, " ", &rest)) {
            check_bijection(&info, type, BSMM_MFMA_A, info.m, info.k);
            if (!strcmp(info.a, info.b)) check_bijection(&info, type, BSMM_MFMA_B, info.k, info.n);
        }
        check_bijection(&info, NULL, BSMM_MFMA_D, info.m, info.n);
    }
    assert_true(info.cdna == 4);
}

/* Tests in which lanes and registers scaled matrix instructions have their operands, by examples
 * from AMD's article on gfx950. A lane holds 32 elements along k of one row. If they have 8 bits,
 * these are two groups of 16 consecutive elements. If they have fewer bits, these are 32
 * consecutive elements. */
static void test_scaled_operands(void **state) {
    (void)state;
    const char *wide = "v_mfma_scale_f32_32x32x64_f8f6f4",
               *deep = "v_mfma_scale_f32_16x16x128_f8f6f4";
    /* Element (3, 32) is in lane 3. */
    bsmm_mfma_place p = place_of(wide, "e4m3", BSMM_MFMA_A, 3, 32);
    assert_true(p.lane == 3 && p.reg == 4 && p.low_bit == 0 && p.bits == 8);
    p = place_of(wide, "e2m1", BSMM_MFMA_A, 3, 33);
    assert_true(p.lane == 35 && p.reg == 0 && p.low_bit == 4 && p.bits == 4);
    /* This element occupies bits 30 to 35 of a lane, so it is in two registers. */
    p = place_of(deep, "e2m3", BSMM_MFMA_B, 5, 2);
    assert_true(p.lane == 2 && p.reg == 0 && p.low_bit == 30 && p.bits == 6);
    p = place_of(deep, NULL, BSMM_MFMA_SCALE_A, 7, 3);
    assert_true(p.lane == 55 && p.reg == 0 && p.bits == 8);
    p = place_of(deep, NULL, BSMM_MFMA_SCALE_B, 3, 7);
    assert_true(p.lane == 55 && p.reg == 0 && p.bits == 8);
}

/* Returns the highest rate that any matrix instruction for a type has on a device. The test demands
 * that this is the device's peak. The rate of an m x n x k instruction is 2 m n k * matrix cores *
 * clock / cycles. */
static double best_peak(const bsmm_device_info *device, const char *type) {
    bsmm_mfma_info info = BSMM_INIT(bsmm_mfma_info);
    double best = 0;
    for (uint32_t i = 0; !bsmm_mfma_at(i, &info); i++) {
        if (info.cdna != device->cdna || strcmp(info.d, "f32") || !strstr(info.a, type)) continue;
        const double peak =
            info.cu_operations / 4.0 * device->matrix_cores * device->megahertz * 1e6;
        if (peak > best) best = peak;
    }
    return best;
}

static void assert_near(double value, double expected) {
    if (!(value > expected * 0.999999 && value < expected * 1.000001))
        fail_msg("%.9g is not %.9g", value, expected);
}

static void test_peaks_of_devices(void **state) {
    (void)state;
    bsmm_device_info device = BSMM_INIT(bsmm_device_info);
    uint32_t generations = 0;
    for (uint32_t i = 0; !bsmm_device_at(i, &device); i++) {
        if (!device.cdna) continue;
        generations |= 1u << device.cdna;
        assert_near(best_peak(&device, "f16"), device.f16);
        if (device.f8 > 0 && device.cdna == 3)
            assert_near(best_peak(&device, "e4m3fnuz"), device.f8);
        if (device.f4 > 0) assert_near(best_peak(&device, "e2m1"), device.f4);
    }
    assert_int_equal(generations, 2 + 4 + 8 + 16);
}

static void refuse(const char *name, const char *type, uint32_t operand, uint32_t row,
                   const char *field) {
    bsmm_mfma_place place = BSMM_INIT(bsmm_mfma_place);
    assert_int_not_equal(bsmm_mfma_find_place(name, type, operand, 0, row, 0, &place), BSMM_OK);
    assert_int_equal(strncmp(bsmm_error_message(), field, strlen(field)), 0);
}

static void test_refusals(void **state) {
    (void)state;
    refuse("v_mfma", NULL, BSMM_MFMA_A, 0, "name: value is \"v_mfma\"");
    refuse(NULL, NULL, BSMM_MFMA_A, 0, "name: ");
    refuse(printed[0], "e2m1", BSMM_MFMA_A, 0, "type: value is \"e2m1\"");
    refuse("v_mfma_f32_32x32x64_f8f6f4", "e4m3fnuz", BSMM_MFMA_A, 0, "type: ");
    refuse(printed[0], NULL, BSMM_MFMA_SCALE_A, 0, "operand: value is 4");
    refuse(printed[0], NULL, 6, 0, "operand: value is 6");
    refuse(printed[0], NULL, BSMM_MFMA_A, 32, "row: value is 32; must be below 32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amds_layouts),    cmocka_unit_test(test_every_bit_is_taken_once),
        cmocka_unit_test(test_scaled_operands), cmocka_unit_test(test_peaks_of_devices),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
