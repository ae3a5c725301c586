/* Tests the parts of ggml's types that the fixtures do not reach: all rows of the tables of IQ1,
 * IQ2 and IQ3, and the types that the Python package gguf does not decode. */
#include "io/gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

/* `tests/fixtures/fixture_ggml.py grids` prints these checksums of the tables' elements. */
static void test_tables_of_indexes(void **state) {
    static const struct {
        const bsmm_ggml_grid *grid;
        uint32_t rows, each, checksum;
    } cases[] = {{&bsmm_ggml_grid_iq1, 2048, 8, 0xcb865e9d},
                 {&bsmm_ggml_grid_iq2_xxs, 256, 8, 0x13d80c3d},
                 {&bsmm_ggml_grid_iq2_xs, 512, 8, 0xa5ccbd47},
                 {&bsmm_ggml_grid_iq2_s, 1024, 8, 0x2a520b6b},
                 {&bsmm_ggml_grid_iq3_xxs, 256, 4, 0x627b61d8},
                 {&bsmm_ggml_grid_iq3_s, 512, 4, 0x4f7d8df3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bsmm_ggml_grid *grid = cases[i].grid;
        uLong sum = crc32(0, NULL, 0);
        for (uint32_t row = 0; row < cases[i].rows; row++)
            for (uint32_t j = 0; j < cases[i].each; j++) {
                uint32_t code = (uint32_t)grid->rows[row] >> grid->bits * j;
                float value = grid->levels[code & ((1u << grid->bits) - 1)];
                sum = crc32(sum, (const Bytef *)&value, sizeof value);
            }
        assert_int_equal(sum, cases[i].checksum);
    }
}

/* Tests Q1_0 and Q2_0 with the f16 scale 0x3E00, which is 1.5. */
static void test_bits(void **state) {
    uint8_t block[18] = {0x00, 0x3E, 0x81};
    float values[128];
    (void)state;
    memset(block + 3, 0x5A, sizeof block - 3);
    bsmm_gguf_q1_0(block, values);
    for (uint32_t i = 0; i < 128; i++) {
        uint32_t byte = i < 8 ? 0x81 : 0x5A;
        assert_true(values[i] == (byte >> i % 8 & 1 ? 1.5f : -1.5f));
    }
    block[2] = 0xE4; /* Its codes are 0, 1, 2 and 3. Those of 0x5A are 2, 2, 1 and 1. */
    bsmm_gguf_q2_0(block, values);
    static const float first[8] = {-1.5f, 0, 1.5f, 3.0f, 1.5f, 1.5f, 0, 0};
    for (uint32_t i = 0; i < 64; i++)
        assert_true(values[i] == first[i < 8 ? i : 4 + i % 4]);
}

static void test_bytes(void **state) {
    uint8_t block[292] = {0x00, 0x3E, 0xFF, 0xFF};
    float values[257];
    values[256] = 77; /* Decoding must not write this element. */
    (void)state;
    for (int i = 0; i < 256; i++)
        block[4 + i] = (uint8_t)(i * 5 - 128);
    memset(block + 260, 0x7F, 32);
    bsmm_gguf_q8_1(block, values);
    for (int i = 0; i < 32; i++)
        assert_true(values[i] == 1.5f * (float)(int8_t)(uint8_t)(i * 5 - 128));
    memcpy(block, (const uint8_t[]){0x00, 0x00, 0x20, 0xC1}, 4); /* The f32 scale is -10. */
    bsmm_gguf_q8_k(block, values);
    for (int i = 0; i < 256; i++)
        assert_true(values[i] == -10.0f * (float)(int8_t)(uint8_t)(i * 5 - 128));
    assert_true(values[256] == 77);
}

/* Tests that every type of ggml with blocks of more than one element is decoded, or is a format of
 * the library. */
static void test_every_type(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 64; i++) {
        const bsmm_gguf_type *type = bsmm_gguf_type_of(i);
        if (!type || type->block == 1 || !strcmp(type->name, "MXFP4") ||
            !strcmp(type->name, "NVFP4"))
            continue;
        if (!type->decode) fail_msg("%s is not decoded", type->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables_of_indexes),
                                       cmocka_unit_test(test_bits), cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_every_type)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
