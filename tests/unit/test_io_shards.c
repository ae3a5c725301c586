/* Tests models that consist of several safetensors files (shards) and an index file. The reader
 * must refuse an index that contradicts the files. */
#include "io/io.h"
#include "stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define INDEX "model.safetensors.index.json"

static const char *in(const char *folder, const char *name) {
    char joined[128];
    snprintf(joined, sizeof joined, "%s/%s", folder, name);
    return temp_path(joined);
}

static void write_shard(const char *path, const stored *tensors, size_t count,
                        const char *metadata) {
    size_t bytes;
    uint8_t *all = safetensors_bytes(tensors, count, metadata, &bytes);
    write_bytes(path, all, bytes);
    free(all);
}

/* Makes a folder with two shards and an index file with the given text. */
static const char *make_model(const char *folder, const char *index) {
    static const float a[] = {1, 2, 3, 4}, b[] = {5, 6};
    const stored first[] = {
        {.name = "a.weight", .dtype = "F32", .ndim = 2, .shape = {2, 2}, .data = a, .bytes = 16},
        {.name = "stale", .dtype = "U8", .ndim = 1, .shape = {1}, .bytes = 1}};
    const stored second[] = {
        {.name = "b.weight", .dtype = "F32", .ndim = 2, .shape = {1, 2}, .data = b, .bytes = 8},
        {.name = "stale", .dtype = "U8", .ndim = 1, .shape = {2}, .bytes = 2}};
    mkdir(temp_path(folder), 0755);
    write_shard(in(folder, "1.safetensors"), first, 2, "{\"format\":\"pt\",\"which\":\"1\"}");
    write_shard(in(folder, "2.safetensors"), second, 2, "{\"format\":\"pt\",\"which\":\"2\"}");
    write_text(in(folder, INDEX), index);
    return temp_path(folder);
}

#define GOOD                                                                                       \
    "{\"metadata\":{\"total_size\":24},\"weight_map\":{\"b.weight\":\"2.safetensors\","            \
    "\"a.weight\":\"1.safetensors\",\"stale\":\"2.safetensors\"}}"

/* Checks that the list of files begins with the index, and that the shards follow in the order of
 * their names. */
static void check_parts(const bsmm_file *file) {
    static const char *const names[] = {INDEX, "1.safetensors", "2.safetensors"};
    bsmm_file_part part = BSMM_INIT(bsmm_file_part);
    for (uint64_t i = 0; i < 3; i++) {
        size_t bytes;
        assert_int_equal(bsmm_file_part_at(file, i, &part), BSMM_OK);
        const char *slash = strrchr(part.path, '/');
        assert_string_equal(slash + 1, names[i]);
        uint8_t *all = read_bytes(part.path, &bytes);
        assert_int_equal(part.bytes, bytes);
        assert_memory_equal(part.data, all, bytes);
        free(all);
    }
    expect_failure(bsmm_file_part_at(file, 3, &part), BSMM_E_NOT_FOUND, "3 parts");
    expect_failure(bsmm_file_part_at(NULL, 0, &part), BSMM_E_INVALID, "file");
}

static void check_good(const char *path) {
    bsmm_file *file;
    uint64_t index;
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    if (bsmm_file_open(path, &file)) fail_msg("%s", bsmm_error_message());
    assert_string_equal(bsmm_file_kind(file), "safetensors");
    assert_int_equal(bsmm_file_tensor_count(file), 3);
    assert_int_equal(bsmm_file_weight_count(file), 2);
    check_parts(file);
    assert_string_equal(bsmm_file_metadata(file, "which"), "1");
    assert_int_equal(bsmm_file_tensor_find(file, "stale", &t), BSMM_OK);
    /* The tensor must come from the shard that the index names. */
    assert_int_equal(t.bytes, 2);
    assert_int_equal(bsmm_file_weight_find(file, "b", &index), BSMM_OK);
    double *values = weight_values(file, index, 0, false);
    assert_true(values[0] == 5 && values[1] == 6);
    free(values);
    bsmm_file_close(file);
}

static void test_open(void **state) {
    (void)state;
    check_good(make_model("good", GOOD));
    check_good(in("good", INDEX));
}

/* Tests that a tensor that the index does not list is not lost. If two shards have an unlisted
 * tensor of the same name, the model is refused, because nothing says which of the two tensors is
 * right. */
static void test_unlisted(void **state) {
    static const char *const indexes[] = {
        "{\"weight_map\":{\"a.weight\":\"1.safetensors\",\"stale\":\"2.safetensors\"}}",
        "{\"weight_map\":{\"a.weight\":\"1.safetensors\",\"b.weight\":\"2.safetensors\"}}"};
    bsmm_file *file;
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    (void)state;
    assert_int_equal(bsmm_file_open(make_model("unlisted", indexes[0]), &file), BSMM_OK);
    assert_int_equal(bsmm_file_tensor_count(file), 3);
    assert_int_equal(bsmm_file_tensor_find(file, "b.weight", &t), BSMM_OK);
    bsmm_file_close(file);
    expect_failure(bsmm_file_open(make_model("unlisted", indexes[1]), &file), BSMM_E_FORMAT,
                   "stale: two tensors have this name");
}

typedef struct broken {
    const char *index;
    bsmm_status status;
    const char *mentions;
} broken;

/* clang-format off */
static const broken cases[] = {
    {"{", BSMM_E_FORMAT, "index: byte 1"},
    {"{}", BSMM_E_FORMAT, "weight_map: must be an object"},
    {"{\"weight_map\":[]}", BSMM_E_FORMAT, "weight_map: must be an object"},
    {"{\"weight_map\":{\"a.weight\":7}}", BSMM_E_FORMAT, "weight_map.a.weight"},
    {"{\"weight_map\":{\"a.weight\":\"\"}}", BSMM_E_FORMAT, "must be the name of a file"},
    {"{\"weight_map\":{\"a.weight\":\"..\"}}", BSMM_E_FORMAT, "must be the name of a file"},
    {"{\"weight_map\":{\"a.weight\":\"../good/1.safetensors\"}}", BSMM_E_FORMAT, "must be the name of a file"},
    {"{\"weight_map\":{\"a.weight\":\"/etc/passwd\"}}", BSMM_E_FORMAT, "must be the name of a file"},
    {"{\"weight_map\":{\"a.weight\":\"3.safetensors\"}}", BSMM_E_IO, "3.safetensors: cannot open"},
    {"{\"weight_map\":{\"a.weight\":\"2.safetensors\"}}", BSMM_E_FORMAT, "weight_map.a.weight: 2.safetensors has no tensor of this name"},
    {"{\"weight_map\":{\"c\":\"1.safetensors\"}}", BSMM_E_FORMAT, "weight_map.c"},
    {"{\"weight_map\":{\"a.weight\":\"" INDEX "\"}}", BSMM_E_FORMAT, "header length"},
    {"{\"weight_map\":{\"a.weight\":\"1.safetensors\",\"a.weight\":\"1.safetensors\"}}", BSMM_E_FORMAT, "duplicate"},
};
/* clang-format on */

static void test_broken_indexes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bsmm_file *file;
        const char *folder = make_model("broken", cases[i].index);
        expect_failure(bsmm_file_open(folder, &file), cases[i].status, cases[i].mentions);
        assert_null(file);
    }
}

static void test_empty_index(void **state) {
    (void)state;
    bsmm_file *file;
    assert_int_equal(bsmm_file_open(make_model("none", "{\"weight_map\":{}}"), &file), BSMM_OK);
    assert_int_equal(bsmm_file_tensor_count(file), 0);
    bsmm_file_close(file);
}

/* Tests an index that begins with white space, and one that is not a file. */
static void test_other_indexes(void **state) {
    (void)state;
    static const char *const texts[] = {" {\"weight_map\":{}}", "\t\r\n{\"weight_map\":{}}"};
    for (size_t i = 0; i < 2; i++) {
        bsmm_file *file;
        assert_int_equal(bsmm_file_open(make_model("space", texts[i]), &file), BSMM_OK);
        assert_int_equal(bsmm_file_tensor_count(file), 0);
        bsmm_file_close(file);
        expect_failure(bsmm_file_from_memory((const uint8_t *)texts[i], strlen(texts[i]), &file),
                       BSMM_E_UNSUPPORTED, "index: its shards are files; open it by its path");
    }
}

static void test_folders(void **state) {
    (void)state;
    bsmm_file *file;
    stored one = {.name = "x", .dtype = "U8", .ndim = 1, .shape = {1}, .bytes = 1};
    mkdir(temp_path("plain"), 0755);
    expect_failure(bsmm_file_open(temp_path("plain"), &file), BSMM_E_NOT_FOUND, "the folder holds");
    write_shard(in("plain", "any.safetensors"), &one, 1, NULL);
    assert_int_equal(bsmm_file_open(temp_path("plain"), &file), BSMM_OK);
    bsmm_file_close(file);
    write_shard(in("plain", "other.safetensors"), &one, 1, NULL);
    expect_failure(bsmm_file_open(temp_path("plain"), &file), BSMM_E_NOT_FOUND, "not exactly one");
    write_shard(in("plain", "model.safetensors"), &one, 1, NULL);
    assert_int_equal(bsmm_file_open(temp_path("plain"), &file), BSMM_OK);
    bsmm_file_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),           cmocka_unit_test(test_unlisted),
        cmocka_unit_test(test_broken_indexes), cmocka_unit_test(test_empty_index),
        cmocka_unit_test(test_other_indexes),  cmocka_unit_test(test_folders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
