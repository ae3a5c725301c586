/* Tests broken weights of known checkpoint families. Reading such a weight must return
 * BSMM_E_FORMAT and name the mistake. The library must still list the weight's name, and must still
 * read the other weights of the file. */
#include "stored.h"

#include "format/format.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const float zero = 0, one = 1, minus = -1, nan_bits = NAN, infinite = INFINITY;

typedef struct hazard {
    const char *family, *mentions;
    stored tensors[3];
} hazard;

#define T(label, type, count, ...)                                                                 \
    { .name = label, .dtype = type, .ndim = count, .shape = __VA_ARGS__ }
#define G(label, value)                                                                            \
    { .name = label, .dtype = "F32", .ndim = 0, .data = &(value) }

/* clang-format off */
static const hazard hazards[] = {
    /* These files have invalid global scales. */
    {"modelopt", "x.weight_scale_2: global scale is 0",
     {T("x.weight", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2}), G("x.weight_scale_2", zero)}},
    {"modelopt", "global scale is nan",
     {T("x.weight", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2}), G("x.weight_scale_2", nan_bits)}},
    {"modelopt", "global scale is inf",
     {T("x.weight", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2}), G("x.weight_scale_2", infinite)}},
    {"modelopt", "global scale is -1",
     {T("x.weight", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2}), G("x.weight_scale_2", minus)}},
    {"compressed-tensors", "x.weight_global_scale: global scale is 0",
     {T("x.weight_packed", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2}), G("x.weight_global_scale", zero)}},
    {"modelopt", "the global scale tensor .weight_scale_2 is missing",
     {T("x.weight", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2})}},
    {"modelopt", "x.weight_scale_2.dtype: value is F16",
     {T("x.weight", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2}), T("x.weight_scale_2", "F16", 0, {0})}},
    {"modelopt", "x.weight_scale_2.shape: value is [2]",
     {T("x.weight", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2}), T("x.weight_scale_2", "F32", 1, {2})}},
    {"modelopt", "x.weight_scale_2.shape: value is [0]",
     {T("x.weight", "U8", 2, {4, 16}), T("x.weight_scale", "F8_E4M3", 2, {4, 2}), T("x.weight_scale_2", "F32", 1, {0})}},
    /* The scales in these files are swizzled, but no metadata says so. */
    {"modelopt", "x.weight_scale.shape: value is [512]; one-dimensional scales are swizzled",
     {T("x.weight", "U8", 2, {4, 64}), T("x.weight_scale", "U8", 1, {512})}},
    {"compressed-tensors", "one-dimensional scales are swizzled",
     {T("x.weight", "F8_E4M3", 2, {4, 64}), T("x.weight_scale", "U8", 1, {512})}},
    {"bsmm", "one-dimensional scales are swizzled",
     {T("x.weight", "F4", 2, {4, 64}), T("x.weight_scale", "F8_E8M0", 1, {512})}},
    {"modelopt", "x.weight_scale.shape: value is [128, 4]",
     {T("x.weight", "U8", 2, {4, 32}), T("x.weight_scale", "U8", 2, {128, 4})}},
    /* These files have blocks of 32 x 32, which the reader does not support. */
    {"compressed-tensors", "blocks of 32x32 are not read",
     {T("x.weight", "F8_E4M3", 2, {64, 96}), T("x.weight_scale", "U8", 2, {2, 3})}},
    {"deepseek-v4", "blocks of 32x32 are not read",
     {T("x.weight", "F8_E4M3", 2, {256, 256}), T("x.scale", "F8_E8M0", 2, {8, 8})}},
    {"modelopt", "blocks of 32x32 are not read",
     {T("x.weight", "U8", 2, {64, 32}), T("x.weight_scale", "U8", 2, {2, 2})}},
    /* These files lack scales. */
    {"compressed-tensors", "x.weight: the scale tensor is missing",
     {T("x.weight_packed", "U8", 2, {4, 16})}},
    {"gpt-oss", "x: the scale tensor is missing", {T("x.blocks", "U8", 4, {1, 4, 2, 16})}},
    {"gpt-oss-hf", "x: the scale tensor is missing", {T("x_blocks", "U8", 4, {1, 4, 2, 16})}},
    /* These files have scales of a wrong shape or type. */
    {"deepseek", "x.weight_scale_inv.shape: value is [2, 3]; must be [2, 2] for 128x128 blocks",
     {T("x.weight", "F8_E4M3", 2, {129, 256}), T("x.weight_scale_inv", "F32", 2, {2, 3})}},
    {"deepseek", "x.weight_scale_inv.dtype: value is BF16; must be F32",
     {T("x.weight", "F8_E4M3", 2, {129, 256}), T("x.weight_scale_inv", "BF16", 2, {2, 2})}},
    {"compressed-tensors", "x.weight_scale.dtype: value is BF16; must be U8",
     {T("x.weight", "F8_E4M3", 2, {4, 64}), T("x.weight_scale", "BF16", 0, {0})}},
    {"compressed-tensors", "x.weight_scale.shape: value is [2, 1]; must be [1, 1] for 128x128",
     {T("x.weight", "F8_E4M3", 2, {4, 64}), T("x.weight_scale", "F32", 2, {2, 1})}},
    {"compressed-tensors", "x.weight_scale.shape: value is [3, 48]; must be [3, 3] for 1x32",
     {T("x.weight_packed", "U8", 2, {3, 48}), T("x.weight_scale", "U8", 2, {3, 48})}},
    {"gpt-oss", "x.blocks.shape: value is [1, 4, 2, 15]; must be [..., rows, blocks, 16]",
     {T("x.blocks", "U8", 4, {1, 4, 2, 15}), T("x.scales", "U8", 3, {1, 4, 2})}},
    {"gpt-oss", "x.scales.shape: value is [2, 4, 2]",
     {T("x.blocks", "U8", 4, {1, 4, 2, 16}), T("x.scales", "U8", 3, {2, 4, 2})}},
    {"modelopt", "x.weight.shape: value is [64]",
     {T("x.weight", "U8", 1, {64}), T("x.weight_scale", "U8", 1, {2})}},
    {"modelopt", "x.weight.shape: value is [0, 4, 16]",
     {T("x.weight", "U8", 3, {0, 4, 16}), T("x.weight_scale", "U8", 3, {0, 4, 1})}},
    {"modelopt", "6-bit elements, but no quantization_config names their format",
     {T("x.weight", "U8", 2, {4, 48}), T("x.weight_scale", "U8", 2, {4, 2})}},
};
/* clang-format on */

static size_t bytes_of(const stored *t) {
    static const struct {
        const char *dtype;
        size_t bits;
    } types[] = {{"F32", 32}, {"F16", 16}, {"BF16", 16}, {"F4", 4}};
    size_t bits = 8;
    for (size_t i = 0; i < BSMM_COUNT(types); i++)
        if (strcmp(types[i].dtype, t->dtype) == 0) bits = types[i].bits;
    for (uint32_t i = 0; i < t->ndim; i++)
        bits *= (size_t)t->shape[i];
    return bits / 8;
}

/* Opens a file with the broken weight of `h` and one valid weight. Reading the broken weight must
 * fail with the message of `h`, and the valid weight must still be readable. */
static void check(const hazard *h) {
    stored tensors[5];
    size_t count = 0;
    uint64_t index;
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    tensors[count++] = (stored)T("good.weight", "BF16", 2, {2, 2});
    for (size_t i = 0; i < 3 && h->tensors[i].name; i++)
        tensors[count++] = h->tensors[i];
    for (size_t i = 0; i < count; i++)
        tensors[i].bytes = bytes_of(&tensors[i]);
    bsmm_file *file = open_stored(tensors, count, NULL);
    if (bsmm_file_weight_count(file) != 2) fail_msg("%s: not one weight", h->mentions);
    assert_int_equal(bsmm_file_weight_find(file, "good", &index), BSMM_OK);
    free(weight_values(file, index, 0, false));
    index = 1 - index;
    expect_failure(bsmm_file_weight_at(file, index, &weight), BSMM_E_FORMAT, h->mentions);
    assert_string_equal(weight.family, h->family);
    assert_int_equal(weight.name[0], 'x');
    expect_failure(bsmm_weight_matrix(file, index, 0, &matrix), BSMM_E_FORMAT, h->mentions);
    assert_null(matrix.data);
    bsmm_file_close(file);
}

static void test_hazards(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(hazards); i++)
        check(&hazards[i]);
}

/* Tests an 8-bit weight without scales. It is valid if no weight of the file has scales, and broken
 * if another weight has. */
static void test_lone_fp8(void **state) {
    (void)state;
    stored tensors[] = {T("a.weight", "F8_E4M3", 2, {4, 8}), T("b.weight", "F8_E4M3", 2, {4, 8}),
                        T("b.weight_scale_inv", "F32", 2, {1, 1}),
                        T("norm.weight", "F8_E4M3", 1, {8})};
    for (size_t i = 0; i < 4; i++)
        tensors[i].bytes = bytes_of(&tensors[i]);
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_file *file = open_stored(tensors, 4, NULL);
    assert_int_equal(bsmm_file_weight_count(file), 2);
    expect_failure(bsmm_file_weight_at(file, 0, &weight), BSMM_E_FORMAT,
                   "a.weight: the scale tensor is missing");
    assert_int_equal(bsmm_file_weight_at(file, 1, &weight), BSMM_OK);
    bsmm_file_close(file);
    file = open_stored(tensors, 1, NULL);
    assert_int_equal(bsmm_file_weight_at(file, 0, &weight), BSMM_OK);
    assert_string_equal(weight.family, "plain");
    bsmm_file_close(file);
}

/* Tests which tensors of a file are listed as weights. An input_scale is optional. Biases, tensors
 * of one dimension and the scales of a weight are not listed. */
static void test_what_is_a_weight(void **state) {
    (void)state;
    stored tensors[] = {T("x.weight", "U8", 2, {4, 16}),
                        T("x.weight_scale", "F8_E4M3", 2, {4, 2}),
                        G("x.weight_scale_2", one),
                        G("x.input_scale", one),
                        T("x.bias", "BF16", 1, {4}),
                        T("norm.weight", "F32", 1, {4}),
                        T("norm.scale", "BF16", 2, {2, 2}),
                        T("embed.weight", "BF16", 3, {2, 3, 4}),
                        T("ids", "I64", 2, {2, 2}),
                        T("empty", "F32", 3, {0, 2, 2}),
                        T("router.weight_scale_inv", "F32", 1, {1})};
    for (size_t i = 0; i < BSMM_COUNT(tensors); i++)
        tensors[i].bytes = strcmp(tensors[i].dtype, "I64") ? bytes_of(&tensors[i]) : 32;
    bsmm_file *file = open_stored(tensors, BSMM_COUNT(tensors), NULL);
    static const char *const names[] = {"x.weight", "norm.scale", "embed.weight"};
    assert_int_equal(bsmm_file_weight_count(file), 3);
    for (uint64_t i = 0; i < 3; i++) {
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        assert_int_equal(bsmm_file_weight_at(file, i, &weight), BSMM_OK);
        assert_string_equal(weight.name, names[i]);
        assert_int_equal(weight.batch, i == 2 ? 2 : 1);
    }
    bsmm_file_close(file);
}

/* Tests scales at an unaligned address. The library must copy them, because it cannot use them in
 * place. */
static void test_unaligned(void **state) {
    (void)state;
    static const float scales[] = {2, 4}, values[] = {1, 0.5f};
    static const uint8_t codes[] = {0x38, 0x38, 0x38};
    stored tensors[] = {T("odd", "U8", 1, {1}),
                        T("x.weight", "F8_E4M3", 2, {1, 129}),
                        T("pad", "U8", 1, {3}),
                        T("x.weight_scale_inv", "F32", 2, {1, 2}),
                        T("y.weight", "F32", 2, {1, 2}),
                        T("z.weight", "F4", 2, {1, 16}),
                        T("z.weight_scale", "F8_E4M3", 2, {1, 1}),
                        G("z.weight_scale_2", values[1])};
    for (size_t i = 0; i < BSMM_COUNT(tensors); i++)
        tensors[i].bytes = bytes_of(&tensors[i]);
    uint8_t ones[129];
    memset(ones, 0x38, sizeof ones);
    tensors[1].data = ones;
    tensors[3].data = scales;
    tensors[4].data = values;
    tensors[6].data = codes;
    size_t bytes, found = 0;
    uint8_t *all = safetensors_bytes(tensors, BSMM_COUNT(tensors), NULL, &bytes);
    /* Each of the four files has a header that is one byte longer than the header of the file
     * before. The scales therefore have each address modulo 4 once. */
    for (int shift = 0; shift < 4; shift++) {
        char name[32], metadata[32];
        snprintf(metadata, sizeof metadata, "{\"k\":\"%.*s\"}", shift, "aaaa");
        snprintf(name, sizeof name, "shift%d.safetensors", shift);
        free(all);
        all = safetensors_bytes(tensors, BSMM_COUNT(tensors), metadata, &bytes);
        write_bytes(temp_path(name), all, bytes);
        bsmm_file *file;
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
        assert_int_equal(bsmm_file_open(temp_path(name), &file), BSMM_OK);
        for (uint64_t i = 0; i < 3; i++) {
            assert_int_equal(bsmm_file_weight_at(file, i, &weight), BSMM_OK);
            assert_int_equal(bsmm_weight_matrix(file, i, 0, &matrix), BSMM_OK);
            assert_int_equal(matrix.data != NULL, weight.mapped);
            if (i < 2) found += !weight.mapped;
        }
        assert_int_equal((uintptr_t)matrix.global_scale % 4, 0);
        assert_true(*matrix.global_scale == 0.5f);
        double *x = weight_values(file, 0, 0, false), *y = weight_values(file, 1, 0, false);
        assert_true(x[0] == 2 && x[127] == 2 && x[128] == 4 && y[0] == 1 && y[1] == 0.5);
        free(x);
        free(y);
        bsmm_file_close(file);
    }
    free(all);
    /* In three of the four files, the scales of both weights (x and y) are unaligned, so 6 scale
     * tensors are copied. */
    assert_int_equal(found, 6);
}

/* Tests Quark's scale exponent of -128, which e8m0 cannot represent. The error must name the
 * block. */
static void test_quark_exponent(void **state) {
    (void)state;
    static const char config[] =
        "{\"quantization_config\":\"{\\\"quant_method\\\":\\\"quark\\\",\\\"global_quant_"
        "config\\\":"
        "{\\\"weight\\\":{\\\"dtype\\\":\\\"mx\\\",\\\"mx_element_dtype\\\":\\\"fp4\\\"}}}\"}";
    uint8_t blocks[2][2][17] = {{{0}}}, codes[2 * 32], scales[4];
    blocks[1][0][0] = 0x80;
    stored tensor = T("x.weight", "U8", 2, {2, 34});
    tensor.bytes = sizeof blocks;
    tensor.data = blocks;
    bsmm_file *file = open_stored(&tensor, 1, config);
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    assert_int_equal(bsmm_file_weight_at(file, 0, &weight), BSMM_OK);
    assert_string_equal(weight.family, "quark-legacy");
    assert_int_equal(bsmm_weight_matrix(file, 0, 0, &matrix), BSMM_OK);
    matrix.data = codes;
    matrix.scales = scales;
    expect_failure(bsmm_weight_unpack(file, 0, 0, &matrix), BSMM_E_FORMAT,
                   "exponent of row 1, column 0 is -128");
    bsmm_file_close(file);
}

static void test_arguments(void **state) {
    (void)state;
    stored tensor = T("x", "F32", 2, {1, 1});
    tensor.bytes = 4;
    bsmm_file *file = open_stored(&tensor, 1, NULL);
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    uint64_t index;
    expect_failure(bsmm_file_weight_at(file, 1, &weight), BSMM_E_NOT_FOUND, "1 weights");
    expect_failure(bsmm_file_weight_at(NULL, 0, &weight), BSMM_E_INVALID, "file");
    expect_failure(bsmm_file_weight_at(file, 0, NULL), BSMM_E_INVALID, "out");
    expect_failure(bsmm_file_weight_find(file, "y", &index), BSMM_E_NOT_FOUND, "\"y\"");
    expect_failure(bsmm_file_weight_find(file, NULL, &index), BSMM_E_INVALID, "name");
    expect_failure(bsmm_weight_matrix(file, 0, 1, &matrix), BSMM_E_INVALID, "slice: value is 1");
    expect_failure(bsmm_weight_matrix(file, 0, -1, &matrix), BSMM_E_INVALID, "slice");
    matrix.struct_size = 4;
    expect_failure(bsmm_weight_matrix(file, 0, 0, &matrix), BSMM_E_INVALID, "struct_size");
    bsmm_file_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hazards),          cmocka_unit_test(test_lone_fp8),
        cmocka_unit_test(test_what_is_a_weight), cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_quark_exponent),   cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
