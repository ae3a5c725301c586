/* Tests the writer of GGUF files. The test covers blocks of mxfp4 and nvfp4, input that must be
 * refused, and metadata. */
#include "operand.h"
#include "stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bsmm_writer *create(void) {
    bsmm_writer *writer;
    assert_int_equal(bsmm_writer_create(temp_path("w.gguf"), "gguf", &writer), BSMM_OK);
    return writer;
}

/* Adds a weight of one row to the writer, begins the file, and writes the row's codes and scales to
 * the file. */
static bsmm_status pack_row(bsmm_writer *writer, const char *format, int64_t cols, void *codes,
                            void *scales) {
    uint64_t index;
    bsmm_matrix m = describe(format_named(format), 1, cols);
    assert_int_equal(bsmm_writer_add_weight(writer, NULL, "a.weight", &m, 1, &index), BSMM_OK);
    assert_int_equal(bsmm_writer_begin(writer), BSMM_OK);
    assert_int_equal(bsmm_writer_weight(writer, index, 0, &m), BSMM_OK);
    assert_true(!m.data && !m.scales && m.data_bytes == (uint64_t)cols / 2);
    m.data = codes;
    m.scales = scales;
    return bsmm_writer_weight_pack(writer, index, 0, &m);
}

/* Fills bytes with the 4-bit codes 0, 1, 2, ..., 15, 0, ... */
static void count_up(uint8_t *codes, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        codes[i] = (uint8_t)((2 * i & 15) | ((2 * i + 1) & 15) << 4);
}

static void expect_block(bsmm_writer *writer, const uint8_t *expected, uint64_t size) {
    void *data;
    uint64_t bytes;
    assert_int_equal(bsmm_writer_tensor(writer, 0, &data, &bytes), BSMM_OK);
    assert_int_equal(bytes, size);
    assert_memory_equal(data, expected, size);
    assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
}

static void test_mxfp4_block(void **state) {
    (void)state;
    uint8_t codes[16], scale = 130, expected[17] = {130};
    bsmm_writer *writer = create();
    count_up(codes, sizeof codes);
    assert_int_equal(pack_row(writer, "mxfp4", 32, codes, &scale), BSMM_OK);
    for (unsigned k = 0; k < 16; k++)
        expected[1 + k] = (uint8_t)(k | k << 4);
    expect_block(writer, expected, sizeof expected);
}

static void test_nvfp4_block(void **state) {
    (void)state;
    uint8_t codes[32], scales[4] = {1, 0, 0x7E, 0x38}, expected[36] = {1, 0, 0x7E, 0x38};
    bsmm_writer *writer = create();
    count_up(codes, sizeof codes);
    assert_int_equal(pack_row(writer, "nvfp4", 64, codes, scales), BSMM_OK);
    for (unsigned k = 0; k < 32; k++)
        expected[4 + k] = (uint8_t)(k % 8 | (8 + k % 8) << 4);
    expect_block(writer, expected, sizeof expected);
}

/* Tests NaN scales and negative scales, which ggml cannot represent. */
static void test_scales_are_refused(void **state) {
    (void)state;
    uint8_t codes[32] = {0}, nan = 255, scales[4] = {0, 0x80, 0, 0};
    bsmm_writer *writer = create();
    expect_failure(pack_row(writer, "mxfp4", 32, codes, &nan), BSMM_E_FORMAT, "0xFF");
    bsmm_writer_abort(writer);
    writer = create();
    expect_failure(pack_row(writer, "nvfp4", 64, codes, scales), BSMM_E_FORMAT,
                   "column 16 is 0x80");
    bsmm_writer_abort(writer);
    scales[1] = 0x7F;
    writer = create();
    expect_failure(pack_row(writer, "nvfp4", 64, codes, scales), BSMM_E_FORMAT, "0x7F");
    bsmm_writer_abort(writer);
}

/* Tests that the writer refuses a matrix with a scale that ggml cannot represent, even if only the
 * last block has such a scale. A refused matrix must not change any byte of the file. */
static void test_refused_matrices_write_nothing(void **state) {
    (void)state;
    uint8_t codes[64], scales[2] = {130, 255}, signs[8] = {1, 1, 1, 1, 1, 1, 1, 0x80};
    const uint8_t zeros[72] = {0};
    bsmm_writer *writer = create();
    count_up(codes, sizeof codes);
    expect_failure(pack_row(writer, "mxfp4", 64, codes, scales), BSMM_E_FORMAT, "column 32 is");
    expect_block(writer, zeros, 34);
    writer = create();
    expect_failure(pack_row(writer, "nvfp4", 128, codes, signs), BSMM_E_FORMAT, "column 112 is");
    expect_block(writer, zeros, 72);
}

/* Tests that the writer refuses texts with which the reader would refuse the file. */
static void test_keys(void **state) {
    (void)state;
    bsmm_writer *writer = create();
    expect_failure(bsmm_writer_metadata(writer, "general.alignment", "32"), BSMM_E_INVALID,
                   "is a number");
    expect_failure(bsmm_writer_metadata(writer, "", "32"), BSMM_E_INVALID, "must not be empty");
    bsmm_writer_abort(writer);
}

static void test_refusals(void **state) {
    (void)state;
    static const int64_t shape[] = {1, 1, 1, 1, 32};
    char name[65] = "";
    memset(name, 'n', 64);
    bsmm_writer *writer = create(), *other;
    bsmm_matrix m = describe(format_named("nvfp4"), 4, 32),
                f = describe(format_named("f32"), 4, 32);
    expect_failure(bsmm_writer_add_weight(writer, NULL, "a.weight", &m, 1, NULL),
                   BSMM_E_UNSUPPORTED, "whole blocks of ggml");
    expect_failure(bsmm_writer_add_weight(writer, "bsmm", "a.weight", &m, 1, NULL),
                   BSMM_E_UNSUPPORTED, "GGUF files do not have it");
    expect_failure(bsmm_writer_add_tensor(writer, "a", "U8", 1, shape, NULL), BSMM_E_INVALID,
                   "type of ggml");
    expect_failure(bsmm_writer_add_tensor(writer, "a", "F32", 5, shape, NULL), BSMM_E_UNSUPPORTED,
                   "5 dimensions");
    expect_failure(bsmm_writer_add_tensor(writer, "a", "Q8_0", 1, shape, NULL), BSMM_E_INVALID,
                   "multiple of 32");
    expect_failure(bsmm_writer_add_tensor(writer, name, "F32", 1, shape, NULL), BSMM_E_UNSUPPORTED,
                   "64 bytes");
    expect_failure(bsmm_writer_copy_metadata(writer, NULL), BSMM_E_INVALID, "NULL");
    uint64_t index;
    assert_int_equal(bsmm_writer_add_weight(writer, NULL, "f", &f, 1, &index), BSMM_OK);
    assert_int_equal(bsmm_writer_begin(writer), BSMM_OK);
    assert_int_equal(bsmm_writer_weight(writer, index, 0, &f), BSMM_OK);
    expect_failure(bsmm_writer_weight_pack(writer, index, 0, &f), BSMM_E_INVALID, "is mapped");
    bsmm_writer_abort(writer);
    uint8_t codes[16] = {0}, scales[2] = {0};
    writer = create();
    expect_failure(pack_row(writer, "mxfp4", 32, NULL, scales), BSMM_E_INVALID, "src.data");
    bsmm_writer_abort(writer);
    writer = create();
    expect_failure(pack_row(writer, "mxfp4", 32, codes, NULL), BSMM_E_INVALID, "src.scales");
    bsmm_writer_abort(writer);
    expect_failure(bsmm_writer_create("x", "zip", &other), BSMM_E_INVALID, "npy or gguf");
}

/* Tests that the writer refuses to add a key that it has already copied from another file. The test
 * tries every key of that file. */
/* Tests sizes of tensors at their limits. */
static void test_sizes(void **state) {
    (void)state;
    static const int64_t most = (INT64_C(1) << 61) - 1, over = INT64_C(1) << 61, negative = -1;
    static const int64_t wide[] = {INT64_C(1) << 62, 4}, rows[] = {-1, 32};
    bsmm_writer *writer = create();
#define ADD(dtype, ndim, shape) bsmm_writer_add_tensor(writer, "t", dtype, ndim, shape, NULL)
    expect_failure(ADD("F32", 1, &over), BSMM_E_INVALID, "t.shape: the size in bytes overflows");
    expect_failure(ADD("F64", 1, &over), BSMM_E_INVALID, "t.shape: the size in bytes overflows");
    expect_failure(ADD("F32", 2, wide), BSMM_E_INVALID, "t.shape: an extent is negative or the");
    expect_failure(ADD("F32", 1, &negative), BSMM_E_INVALID, "t.shape: an extent is negative or");
    expect_failure(ADD("Q8_0", 2, rows), BSMM_E_INVALID, "t.shape: an extent is negative or the");
    assert_int_equal(ADD("F32", 1, &most), BSMM_OK);
#undef ADD
    bsmm_writer_abort(writer);
}

/* Tests that the copy of a file's metadata must come first, and that there is only one copy. */
static void test_copy_after_metadata(void **state) {
    (void)state;
    bsmm_file *file;
    if (bsmm_file_open(BSMM_FIXTURE_DIR "/mxfp4.gguf", &file)) fail_msg("%s", bsmm_error_message());
    for (int copied = 0; copied < 2; copied++) {
        bsmm_writer *writer = create();
        const bsmm_status status = copied ? bsmm_writer_copy_metadata(writer, file)
                                          : bsmm_writer_metadata(writer, "key", "value");
        assert_int_equal(status, BSMM_OK);
        expect_failure(bsmm_writer_copy_metadata(writer, file), BSMM_E_INVALID,
                       "writer: has metadata already; the copy must come first");
        bsmm_writer_abort(writer);
    }
    bsmm_file_close(file);
}

static void test_copied_keys(void **state) {
    (void)state;
    bsmm_file *file;
    const char *key, *value;
    uint64_t count = 0;
    if (bsmm_file_open(BSMM_FIXTURE_DIR "/mxfp4.gguf", &file)) fail_msg("%s", bsmm_error_message());
    bsmm_writer *writer = create();
    assert_int_equal(bsmm_writer_copy_metadata(writer, file), BSMM_OK);
    for (; bsmm_file_metadata_at(file, count, &key, &value) == BSMM_OK; count++)
        expect_failure(bsmm_writer_metadata(writer, key, "other"), BSMM_E_INVALID, "added before");
    assert_true(count >= 2);
    assert_int_equal(bsmm_writer_metadata(writer, "new", "other"), BSMM_OK);
    bsmm_writer_abort(writer);
    bsmm_file_close(file);
}

/* Tests that the reader finds the texts that the caller has added, and that tensors begin at
 * multiples of 32 bytes. */
static void test_texts(void **state) {
    (void)state;
    static const int64_t shape[] = {3};
    bsmm_writer *writer = create();
    bsmm_file *file;
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    assert_int_equal(bsmm_writer_metadata(writer, "key", "value"), BSMM_OK);
    expect_failure(bsmm_writer_metadata(writer, "key", "other"), BSMM_E_INVALID, "unique");
    assert_int_equal(bsmm_writer_add_tensor(writer, "a", "F32", 1, shape, NULL), BSMM_OK);
    assert_int_equal(bsmm_writer_add_tensor(writer, "b", "I8", 1, shape, NULL), BSMM_OK);
    assert_int_equal(bsmm_writer_begin(writer), BSMM_OK);
    assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
    assert_int_equal(bsmm_file_open(temp_path("w.gguf"), &file), BSMM_OK);
    assert_string_equal(bsmm_file_metadata(file, "key"), "value");
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(bsmm_file_tensor_at(file, i, &tensor), BSMM_OK);
        assert_int_equal((uintptr_t)tensor.data % 32, 0);
    }
    bsmm_writer_abort(NULL);
    bsmm_file_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mxfp4_block),
                                       cmocka_unit_test(test_nvfp4_block),
                                       cmocka_unit_test(test_scales_are_refused),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_refused_matrices_write_nothing),
                                       cmocka_unit_test(test_keys),
                                       cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_copy_after_metadata),
                                       cmocka_unit_test(test_copied_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
