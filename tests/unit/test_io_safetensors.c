/* Tests the safetensors reader. It must accept valid files, and it must refuse every broken header
 * with a message that names the position of the error. */
#include "io/io.h"
#include "stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct broken {
    const char *header;
    size_t body;
    bsmm_status status;
    const char *mentions;
} broken;

#define U8_2_3 "\"a\":{\"dtype\":\"U8\",\"shape\":[2,3],\"data_offsets\":[0,6]}"

/* clang-format off */
static const broken cases[] = {
    /* These files are not JSON, or not an object of tensors. */
    {"", 0, BSMM_E_FORMAT, "must be '{'"},
    {" {}", 0, BSMM_E_FORMAT, "must be '{'"},
    {"[]", 0, BSMM_E_FORMAT, "must be '{'"},
    {"{", 0, BSMM_E_FORMAT, "byte 9 of the file"},
    {"{}}", 0, BSMM_E_FORMAT, "end of file expected"},
    {"{\"a\":1}", 0, BSMM_E_FORMAT, "header.a.dtype"},
    {"{\"a\":[]}", 0, BSMM_E_FORMAT, "header.a.dtype"},
    {"{" U8_2_3 "," U8_2_3 "}", 6, BSMM_E_FORMAT, "a: two tensors have this name"},
    {"{\"\xff\":{}}", 0, BSMM_E_FORMAT, "byte 0xff"},
    {"{\"\xed\xa0\x80\":{}}", 0, BSMM_E_FORMAT, "byte 0xed"},
    {"{\"a\\u0000b\":{}}", 0, BSMM_E_FORMAT, "\\u0000"},
    /* In these headers, a word is missing or is no string. */
    {"{1:{}}", 0, BSMM_E_FORMAT, "byte 10 of the file: a string expected"},
    {"{null:{}}", 0, BSMM_E_FORMAT, "byte 13 of the file: a string expected"},
    {"{:{}}", 0, BSMM_E_FORMAT, "byte 9 of the file: a string expected"},
    {"{" U8_2_3 ",}", 6, BSMM_E_FORMAT, ": a string expected"},
    {"{\"a\"}", 0, BSMM_E_FORMAT, "byte 12 of the file: ':' expected"},
    {"{\"a\",1}", 0, BSMM_E_FORMAT, "byte 12 of the file: ':' expected"},
    {"{\"a\":}", 0, BSMM_E_FORMAT, "byte 13 of the file: a value expected"},
    {"{\"__metadata__\":}", 0, BSMM_E_FORMAT, "byte 24 of the file: a value expected"},
    {"{\"__metadata__\":{}]", 0, BSMM_E_FORMAT, "byte 26 of the file: ',' or '}' expected"},
    {"{" U8_2_3 " 1}", 6, BSMM_E_FORMAT, "',' or '}' expected"},
    {"{\"a\":{1}}", 0, BSMM_E_FORMAT, "string or '}' expected"},
    /* The metadata in these headers are wrong. */
    {"{\"__metadata__\":[]}", 0, BSMM_E_FORMAT, "__metadata__: must be an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, BSMM_E_FORMAT, "__metadata__.k: must be a string"},
    {"{\"__metadata__\":{\"k\":null}}", 0, BSMM_E_FORMAT, "__metadata__.k: must be a string"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, BSMM_E_FORMAT, "no second __metadata__"},
    /* The dtype in these headers is wrong. */
    {"{\"a\":{\"shape\":[],\"data_offsets\":[0,1]}}", 1, BSMM_E_FORMAT, "header.a.dtype"},
    {"{\"a\":{\"dtype\":8,\"shape\":[],\"data_offsets\":[0,1]}}", 1, BSMM_E_FORMAT, "header.a.dtype: must be a string"},
    {"{\"a\":{\"dtype\":\"F7\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, BSMM_E_FORMAT, "\"F7\"; is not a known type"},
    {"{\"a\":{\"dtype\":\"u8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, BSMM_E_FORMAT, "\"u8\""},
    /* The shape in these headers is wrong. */
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, BSMM_E_FORMAT, "header.a.shape: must be an array"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, BSMM_E_FORMAT, "header.a.shape: must be an array"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,\"1\"],\"data_offsets\":[0,1]}}", 1, BSMM_E_FORMAT, "shape[1]: must be an integer"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1, BSMM_E_FORMAT, "shape[0]: must be an integer"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2,-3],\"data_offsets\":[0,6]}}", 6, BSMM_E_FORMAT, "shape[1]: value is -3"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,6]}}", 6, BSMM_E_FORMAT, "too big integer"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, BSMM_E_FORMAT, "overflows"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]}}", 0, BSMM_E_FORMAT, "overflows"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, BSMM_E_FORMAT, "must be whole bytes"},
    {"{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, BSMM_E_FORMAT, "18 bits"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, BSMM_E_UNSUPPORTED, "9 dimensions"},
    /* The data_offsets in these headers are wrong. */
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6]}}", 6, BSMM_E_FORMAT, "data_offsets: must be an array of two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0]}}", 6, BSMM_E_FORMAT, "array of two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,6,6]}}", 6, BSMM_E_FORMAT, "array of two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,\"6\"]}}", 6, BSMM_E_FORMAT, "array of two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[\"0\",6]}}", 6, BSMM_E_FORMAT, "array of two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":{}}}", 6, BSMM_E_FORMAT, "array of two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[-1,5]}}", 6, BSMM_E_FORMAT, "[-1, 5]"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[6,0]}}", 6, BSMM_E_FORMAT, "[6, 0]"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,7]}}", 6, BSMM_E_FORMAT, "[0, 7]"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,9223372036854775807]}}", 6, BSMM_E_FORMAT, "within the 6 bytes"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,6]}}", 6, BSMM_E_FORMAT, "span 6 bytes; shape and dtype take 5"},
    {"{\"a\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,6]}}", 6, BSMM_E_FORMAT, "take 12"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[1,6]}}", 6, BSMM_E_FORMAT, "begin at 1; the tensor before ends at 0"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[3,6]}}", 6, BSMM_E_FORMAT, "header.b.data_offsets: begin at 3; the tensor before ends at 4"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,6]},\"b\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,6]}}", 6, BSMM_E_FORMAT, "header.b.data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[3,6]}}", 6, BSMM_E_FORMAT, "no overlap, no gap"},
    {"{" U8_2_3 "}", 7, BSMM_E_FORMAT, "has 7 bytes after the header; the tensors take 6"},
    {"{}", 1, BSMM_E_FORMAT, "the tensors take 0"},
};
/* clang-format on */

static void check(const uint8_t *bytes, size_t count, bsmm_status status, const char *mentions) {
    bsmm_file *file = NULL;
    expect_failure(bsmm_file_from_memory(bytes, count, &file), status, mentions);
    assert_null(file);
}

static void test_broken_headers(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        size_t count;
        uint8_t *bytes = framed_bytes(cases[i].header, NULL, cases[i].body, &count);
        check(bytes, count, cases[i].status, cases[i].mentions);
        free(bytes);
    }
}

static void test_lengths(void **state) {
    (void)state;
    uint8_t bytes[16] = {0};
    check(bytes, 0, BSMM_E_FORMAT, "the file has 0 bytes");
    check(bytes, 7, BSMM_E_FORMAT, "the file has 7 bytes");
    check(bytes, 8, BSMM_E_FORMAT, "must be '{'");
    bytes[0] = 9;
    check(bytes, 16, BSMM_E_FORMAT, "header length: value is 9; the file has only 8 bytes");
    /* This header size is 100000001 bytes, one more than the limit. */
    static const uint8_t above[8] = {0x01, 0xe1, 0xf5, 0x05};
    memcpy(bytes, above, sizeof above);
    check(bytes, 16, BSMM_E_FORMAT, "must be at most 100000000");
    memset(bytes, 0xff, 8);
    check(bytes, 16, BSMM_E_FORMAT, "value is 18446744073709551615");
}

/* Tests that the reader refuses a valid file that is truncated at any byte. */
static void test_truncated(void **state) {
    (void)state;
    size_t count;
    uint8_t *bytes = framed_bytes("{" U8_2_3 "}", "abcdef", 6, &count);
    for (size_t keep = 0; keep < count; keep++) {
        bsmm_file *file;
        uint8_t *exact = malloc(keep + 1);
        assert_non_null(exact);
        memcpy(exact, bytes, keep);
        assert_int_equal(bsmm_file_from_memory(exact, keep, &file), BSMM_E_FORMAT);
        free(exact);
    }
    free(bytes);
}

/* Tests JSON with more nested arrays than the JSON library allows. The reader must return an error
 * instead of overflowing the stack. */
static void test_deep_json(void **state) {
    (void)state;
    enum { DEPTH = 200000 };
    char *header = malloc(DEPTH + 8);
    assert_non_null(header);
    strcpy(header, "{\"a\":");
    memset(header + 5, '[', DEPTH);
    header[5 + DEPTH] = 0;
    size_t count;
    uint8_t *bytes = framed_bytes(header, NULL, 0, &count);
    check(bytes, count, BSMM_E_FORMAT, "depth");
    free(bytes);
    free(header);
}

static bsmm_tensor find(const bsmm_file *file, const char *name) {
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    if (bsmm_file_tensor_find(file, name, &t)) fail_msg("%s", bsmm_error_message());
    return t;
}

static void test_accepted(void **state) {
    (void)state;
    static const stored tensors[] = {
        {.name = "one", .dtype = "U8", .ndim = 2, .shape = {2, 3}, .data = "abcdef", .bytes = 6},
        {.name = "none", .dtype = "F32", .ndim = 2, .shape = {0, 7}, .bytes = 0},
        {.name = "nothing", .dtype = "BF16", .ndim = 1, .shape = {0}, .bytes = 0},
        {.name = "scalar \xc3\xa9", .dtype = "F64", .ndim = 0, .bytes = 8},
        {.name = "packed", .dtype = "F6_E3M2", .ndim = 2, .shape = {2, 4}, .bytes = 6},
    };
    bsmm_file *file =
        open_stored(tensors, BSMM_COUNT(tensors), "{\"format\":\"pt\",\"empty\":\"\"}");
    assert_string_equal(bsmm_file_kind(file), "safetensors");
    assert_int_equal(bsmm_file_tensor_count(file), 5);
    assert_string_equal(bsmm_file_metadata(file, "format"), "pt");
    assert_string_equal(bsmm_file_metadata(file, "empty"), "");
    assert_null(bsmm_file_metadata(file, "absent"));
    const char *key, *value;
    assert_int_equal(bsmm_file_metadata_at(file, 1, &key, &value), BSMM_OK);
    assert_string_equal(key, "format");
    assert_string_equal(value, "pt");
    expect_failure(bsmm_file_metadata_at(file, 2, &key, &value), BSMM_E_NOT_FOUND, "2 metadata");
    expect_failure(bsmm_file_metadata_at(file, 0, NULL, &value), BSMM_E_INVALID, "NULL");
    bsmm_tensor t = find(file, "one");
    assert_memory_equal(t.data, "abcdef", 6);
    assert_int_equal(t.elem, BSMM_ELEM_NONE);
    assert_int_equal(find(file, "scalar \xc3\xa9").ndim, 0);
    t = find(file, "packed");
    assert_int_equal(t.elem, BSMM_ELEM_E3M2);
    assert_int_equal(t.bytes, 6);
    assert_int_equal(find(file, "none").bytes, 0);
    expect_failure(bsmm_file_tensor_find(file, "two", &t), BSMM_E_NOT_FOUND, "\"two\"");
    expect_failure(bsmm_file_tensor_at(file, 5, &t), BSMM_E_NOT_FOUND, "5 tensors");
    bsmm_file_close(file);
}

/* Tests that the reader lists tensors in the order in which their data lie in the file, even if the
 * header lists them in another order. */
static void test_order(void **state) {
    (void)state;
    const char *header = "{\"z\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                         "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
                         "\"m\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}   ";
    size_t count;
    uint8_t *bytes = framed_bytes(header, "zmb", 3, &count);
    bsmm_file *file;
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    assert_int_equal(bsmm_file_from_memory(bytes, count, &file), BSMM_OK);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(bsmm_file_tensor_at(file, i, &t), BSMM_OK);
        assert_int_equal(t.name[0], "zmb"[i]);
        assert_int_equal(*(const char *)t.data, "zmb"[i]);
    }
    bsmm_file_close(file);
    free(bytes);
}

static void test_empty_file(void **state) {
    (void)state;
    bsmm_file *file = open_stored(NULL, 0, NULL);
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    assert_int_equal(bsmm_file_tensor_count(file), 0);
    assert_int_equal(bsmm_file_weight_count(file), 0);
    expect_failure(bsmm_file_weight_at(file, 0, &weight), BSMM_E_NOT_FOUND, "0 weights");
    bsmm_file_close(file);
    bsmm_file_close(NULL);
}

static void test_paths(void **state) {
    (void)state;
    bsmm_file *file;
    write_bytes(temp_path("empty.safetensors"), "", 0);
    expect_failure(bsmm_file_open(temp_path("empty.safetensors"), &file), BSMM_E_FORMAT,
                   "empty.safetensors: header: the file has 0 bytes");
    expect_failure(bsmm_file_open(temp_path("absent"), &file), BSMM_E_IO, "cannot open");
    expect_failure(bsmm_file_open("/dev/null", &file), BSMM_E_IO, "not a regular file");
    expect_failure(bsmm_file_open("", &file), BSMM_E_IO, "cannot open");
    expect_failure(bsmm_file_open(NULL, &file), BSMM_E_INVALID, "path");
    expect_failure(bsmm_file_open("x", NULL), BSMM_E_INVALID, "file");
    assert_null(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_headers), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_truncated),      cmocka_unit_test(test_deep_json),
        cmocka_unit_test(test_accepted),       cmocka_unit_test(test_order),
        cmocka_unit_test(test_empty_file),     cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
