/* Tests the writers of safetensors and .npy files. They must refuse invalid tensors, and they must
 * write the same bytes as the reference implementations. */
#include "operand.h"
#include "stored.h"
#include "written.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_bad_paths(void **state) {
    (void)state;
    bsmm_writer *writer;
    expect_failure(bsmm_writer_create(temp_folder(), "safetensors", &writer), BSMM_E_INVALID,
                   "not a regular file");
    assert_null(writer);
    expect_failure(bsmm_writer_create("/dev/null", "npy", &writer), BSMM_E_INVALID, "regular");
    expect_failure(bsmm_writer_create("", "npy", &writer), BSMM_E_INVALID, "path");
    expect_failure(bsmm_writer_create(NULL, "npy", &writer), BSMM_E_INVALID, "path");
    expect_failure(bsmm_writer_create("x", "zip", &writer), BSMM_E_INVALID,
                   "kind: value is \"zip\"");
    expect_failure(bsmm_writer_create("x", NULL, &writer), BSMM_E_INVALID, "kind");
    expect_failure(bsmm_writer_create("x", "npy", NULL), BSMM_E_INVALID, "writer");
    assert_int_equal(bsmm_writer_create(temp_path("no/such/x"), "safetensors", &writer), BSMM_OK);
    expect_failure(bsmm_writer_begin(writer), BSMM_E_IO, "cannot create a temporary file");
    bsmm_writer_abort(writer);
}

/* Tests that the writer refuses invalid tensors before it creates any file. */
static void test_bad_tensors(void **state) {
    (void)state;
    static const int64_t good[] = {2, 3}, negative[] = {2, -3}, odd[] = {3}, nine[9] = {1};
    static const int64_t huge[] = {INT64_MAX / 8, 8}, large[] = {INT64_MAX / 8};
    bsmm_writer *writer;
    char *path = strdup(make_folder("bad"));
    assert_int_equal(bsmm_writer_create(path, "safetensors", &writer), BSMM_OK);
#define ADD(name, dtype, ndim, shape) bsmm_writer_add_tensor(writer, name, dtype, ndim, shape, NULL)
    assert_int_equal(ADD("t", "U8", 2, good), BSMM_OK);
    expect_failure(ADD("t", "U8", 2, good), BSMM_E_INVALID, "\"t\" was added before");
    expect_failure(ADD("", "U8", 2, good), BSMM_E_INVALID, "name");
    expect_failure(ADD("__metadata__", "U8", 2, good), BSMM_E_INVALID, "reserved");
    expect_failure(ADD("\xff", "U8", 2, good), BSMM_E_INVALID, "UTF-8");
    expect_failure(ADD(NULL, "U8", 2, good), BSMM_E_INVALID, "name");
    expect_failure(ADD("u", "F9", 2, good), BSMM_E_INVALID, "\"F9\"");
    expect_failure(ADD("u", NULL, 2, good), BSMM_E_INVALID, "dtype");
    expect_failure(ADD("u", "U8", 2, NULL), BSMM_E_INVALID, "shape");
    expect_failure(ADD("u", "U8", 2, negative), BSMM_E_INVALID, "u.shape[1]: value is -3");
    expect_failure(ADD("u", "U8", 9, nine), BSMM_E_INVALID, "9 dimensions");
    expect_failure(ADD("u", "F4", 1, odd), BSMM_E_INVALID, "whole bytes");
    expect_failure(ADD("u", "U8", 2, huge), BSMM_E_INVALID, "overflows");
    expect_failure(bsmm_writer_metadata(writer, "bsmm.t", ""), BSMM_E_INVALID, "reserved");
    expect_failure(bsmm_writer_metadata(writer, "k", "\xff"), BSMM_E_INVALID, "value");
    expect_failure(bsmm_writer_metadata(writer, NULL, ""), BSMM_E_INVALID, "key");
    assert_int_equal(bsmm_writer_metadata(writer, "k", "v"), BSMM_OK);
    expect_failure(bsmm_writer_metadata(writer, "k", "w"), BSMM_E_INVALID, "added before");
    expect_failure(bsmm_writer_tensor(writer, 0, NULL, NULL), BSMM_E_INVALID,
                   "must be called first");
    assert_int_equal(ADD("big", "U8", 1, large), BSMM_OK);
    for (char name[] = "big0"; name[3] < '9'; name[3]++)
        assert_int_equal(ADD(name, "U8", 1, large), BSMM_OK);
#undef ADD
    bsmm_status status = bsmm_writer_begin(writer);
    assert_true(status == BSMM_E_INVALID || status == BSMM_E_IO);
    assert_int_equal(entries_in(temp_path("bad")), 1);
    expect_old(path);
    bsmm_writer_abort(writer);
    writer = begin_one(path, 1);
    expect_failure(bsmm_writer_add_tensor(writer, "u", "U8", 2, good, NULL), BSMM_E_INVALID,
                   "nothing more can be added");
    expect_failure(bsmm_writer_tensor(writer, 1, NULL, NULL), BSMM_E_NOT_FOUND, "1 tensors");
    bsmm_writer_abort(writer);
    assert_int_equal(bsmm_writer_create(path, "safetensors", &writer), BSMM_OK);
    expect_failure(bsmm_writer_commit(writer), BSMM_E_INVALID, "must be called first");
    expect_old(path);
    free(path);
}

/* Reads a file that the reference implementation wrote and writes it again. The bytes must be
 * equal. */
static void rewrite(const char *name) {
    char path[512];
    bsmm_file *file;
    bsmm_writer *writer;
    snprintf(path, sizeof path, "%s/%s", BSMM_FIXTURE_DIR, name);
    if (bsmm_file_open(path, &file)) fail_msg("%s", bsmm_error_message());
    assert_int_equal(bsmm_writer_create(temp_path("again"), "safetensors", &writer), BSMM_OK);
    const char *format = bsmm_file_metadata(file, "format");
    if (format) assert_int_equal(bsmm_writer_metadata(writer, "format", format), BSMM_OK);
    uint64_t count = bsmm_file_tensor_count(file), bytes;
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    for (uint64_t i = count; i-- > 0;) { /* The tensors are added in reverse order. */
        assert_int_equal(bsmm_file_tensor_at(file, i, &t), BSMM_OK);
        assert_int_equal(bsmm_writer_add_tensor(writer, t.name, t.dtype, t.ndim, t.shape, NULL),
                         BSMM_OK);
    }
    assert_int_equal(bsmm_writer_begin(writer), BSMM_OK);
    for (uint64_t i = 0; i < count; i++) {
        void *to;
        assert_int_equal(bsmm_file_tensor_at(file, count - 1 - i, &t), BSMM_OK);
        assert_int_equal(bsmm_writer_tensor(writer, i, &to, &bytes), BSMM_OK);
        assert_int_equal(bytes, t.bytes);
        memcpy(to, t.data, bytes);
    }
    assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
    bsmm_file_close(file);
    size_t a_bytes, b_bytes;
    uint8_t *a = read_bytes(path, &a_bytes), *b = read_bytes(temp_path("again"), &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(a, b, a_bytes);
    free(a);
    free(b);
}

/* Tests the largest total size: 31 tensors of 2^59 bytes are too large for the disk, and 32 of them
 * for the number of bytes. */
static void test_total_size(void **state) {
    (void)state;
    static const int64_t shape[] = {INT64_C(1) << 59};
    const char *path = temp_path("total.safetensors");
    for (int count = 31; count <= 32; count++) {
        bsmm_writer *writer;
        assert_int_equal(bsmm_writer_create(path, "safetensors", &writer), BSMM_OK);
        for (int i = 0; i < count; i++) {
            const char name[] = {(char)('A' + i), '\0'};
            assert_int_equal(bsmm_writer_add_tensor(writer, name, "U8", 1, shape, NULL), BSMM_OK);
        }
        const bsmm_status status = bsmm_writer_begin(writer);
        assert_int_not_equal(status, BSMM_OK);
        const char *found = strstr(bsmm_error_message(), "tensors: their total size overflows");
        assert_int_equal(found != NULL, count == 32);
        if (found) assert_int_equal(status, BSMM_E_INVALID);
        bsmm_writer_abort(writer);
    }
}

static void test_reference_bytes(void **state) {
    (void)state;
    rewrite("deepseek_v4/model.safetensors");
    rewrite("modelopt_nvfp4/model.safetensors");
    rewrite("compressed_nvfp4/model.safetensors");
    rewrite("gpt_oss.safetensors");
}

/* Tests that the same tensors and metadata always give the same bytes, whatever the order in which
 * the caller adds them. */
static void test_deterministic(void **state) {
    (void)state;
    static const char *const keys[] = {"b", "a", "c"};
    uint8_t *files[2];
    size_t bytes[2];
    for (int run = 0; run < 2; run++) {
        bsmm_writer *writer;
        bsmm_matrix m = describe(format_named("nvfp4"), 16, 64);
        assert_int_equal(bsmm_writer_create(temp_path("same"), "safetensors", &writer), BSMM_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(bsmm_writer_metadata(writer, keys[run ? 2 - i : i], "v"), BSMM_OK);
        assert_int_equal(bsmm_writer_add_weight(writer, "bsmm", "w", &m, 1, NULL), BSMM_OK);
        assert_int_equal(bsmm_writer_begin(writer), BSMM_OK);
        assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
        files[run] = read_bytes(temp_path("same"), &bytes[run]);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(files[0], files[1], bytes[0]);
    assert_non_null(strstr((const char *)files[0] + 8, "{\"__metadata__\":{\"a\":\"v\",\"b\""));
    free(files[0]);
    free(files[1]);
}

static void write_npy(const char *path, const char *dtype, uint32_t ndim, const int64_t *shape,
                      const void *data) {
    bsmm_writer *writer;
    void *to;
    uint64_t bytes;
    assert_int_equal(bsmm_writer_create(path, "npy", &writer), BSMM_OK);
    assert_int_equal(bsmm_writer_add_tensor(writer, "any", dtype, ndim, shape, NULL), BSMM_OK);
    if (bsmm_writer_begin(writer)) fail_msg("%s", bsmm_error_message());
    assert_int_equal(bsmm_writer_tensor(writer, 0, &to, &bytes), BSMM_OK);
    memcpy(to, data, bytes);
    assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
}

/* Reads .npy files that numpy wrote and writes them again. The bytes must be equal. */
static void test_npy(void **state) {
    (void)state;
    char path[512];
    bsmm_file *file;
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    snprintf(path, sizeof path, "%s/gpt_oss.safetensors.block.0.mlp.mlp1_weight.npy",
             BSMM_FIXTURE_DIR);
    assert_int_equal(bsmm_file_open(path, &file), BSMM_OK);
    assert_int_equal(bsmm_file_tensor_at(file, 0, &t), BSMM_OK);
    write_npy(temp_path("same.npy"), "F32", t.ndim, t.shape, t.data);
    bsmm_file_close(file);
    size_t a_bytes, b_bytes;
    uint8_t *a = read_bytes(path, &a_bytes), *b = read_bytes(temp_path("same.npy"), &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(a, b, a_bytes);
    free(a);
    free(b);
}

static void test_npy_types(void **state) {
    (void)state;
    static const char *const dtypes[] = {"BOOL", "U8",  "I8",  "I16", "U16", "F16", "I32",
                                         "U32",  "F32", "C64", "F64", "I64", "U64"};
    static const int64_t shape[] = {7, 1, 1, 1, 1, 1, 1, 1};
    static const uint8_t data[64] = {1, 2, 3};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        for (uint32_t ndim = 0; ndim <= 8; ndim++) {
            bsmm_file *file;
            bsmm_tensor t = BSMM_INIT(bsmm_tensor);
            write_npy(temp_path("t.npy"), dtypes[i], ndim, shape, data);
            if (bsmm_file_open(temp_path("t.npy"), &file)) fail_msg("%s", bsmm_error_message());
            assert_int_equal(bsmm_file_tensor_at(file, 0, &t), BSMM_OK);
            assert_int_equal(t.ndim, ndim);
            assert_string_equal(t.name, "t");
            assert_memory_equal(t.data, data, t.bytes);
            bsmm_file_close(file);
        }
}

static void test_npy_refusals(void **state) {
    (void)state;
    bsmm_writer *writer;
    int64_t shape[] = {2, 2};
    assert_int_equal(bsmm_writer_create(temp_path("b.npy"), "npy", &writer), BSMM_OK);
    expect_failure(bsmm_writer_begin(writer), BSMM_E_INVALID, "0 tensors");
    assert_int_equal(bsmm_writer_add_tensor(writer, "a", "BF16", 2, shape, NULL), BSMM_OK);
    expect_failure(bsmm_writer_begin(writer), BSMM_E_UNSUPPORTED, "numpy has no BF16; write F32");
    assert_int_equal(bsmm_writer_add_tensor(writer, "b", "F32", 2, shape, NULL), BSMM_OK);
    expect_failure(bsmm_writer_begin(writer), BSMM_E_INVALID, "2 tensors");
    bsmm_writer_abort(writer);
    assert_int_not_equal(access(temp_path("b.npy"), F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_paths),     cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_total_size),    cmocka_unit_test(test_reference_bytes),
        cmocka_unit_test(test_deterministic), cmocka_unit_test(test_npy),
        cmocka_unit_test(test_npy_types),     cmocka_unit_test(test_npy_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
