/* Tests the reader of GGUF files. The test builds a valid file byte by byte, checks the size of
 * every tensor type, and reads files that break a rule. */
#include "io/gguf.h"
#include "stored.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct builder {
    uint8_t bytes[4096];
    size_t count;
} builder;

static void put(builder *b, const void *bytes, size_t count) {
    assert_true(b->count + count <= sizeof b->bytes);
    memcpy(b->bytes + b->count, bytes, count);
    b->count += count;
}
static void put_u32(builder *b, uint32_t value) {
    put(b, &value, 4);
}
static void put_u64(builder *b, uint64_t value) {
    put(b, &value, 8);
}
static void put_text(builder *b, const char *text) {
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}
static void begin(builder *b, uint32_t version, uint64_t tensors, uint64_t pairs) {
    b->count = 0;
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, tensors);
    put_u64(b, pairs);
}
/* Writes a tensor's description. The first dimension is the contiguous one, as GGUF requires. */
static void put_info(builder *b, const char *name, uint32_t ndim, const uint64_t *dims,
                     uint32_t type, uint64_t offset) {
    put_text(b, name);
    put_u32(b, ndim);
    for (uint32_t i = 0; i < ndim; i++)
        put_u64(b, dims[i]);
    put_u32(b, type);
    put_u64(b, offset);
}
static void pad(builder *b, size_t alignment, size_t more) {
    static const uint8_t zeros[512];
    put(b, zeros, (alignment - b->count % alignment) % alignment);
    put(b, zeros, more);
}

static bsmm_status parse(const builder *b) {
    /* The copy is a separate allocation, so that sanitizers find accesses past its end. */
    uint8_t *exact = malloc(b->count + 1);
    bsmm_file *file;
    assert_non_null(exact);
    memcpy(exact, b->bytes, b->count);
    bsmm_status status = bsmm_file_from_memory(exact, b->count, &file);
    assert_int_equal(file == NULL, status != BSMM_OK);
    bsmm_file_close(file);
    free(exact);
    return status;
}
static void expect_broken(const builder *b, bsmm_status status, const char *mentions) {
    expect_failure(parse(b), status, mentions);
}

/* Makes a valid file with one mxfp4 matrix of 2 x 64 and three nvfp4 matrices. The blocks have
 * known bytes, and a separate tensor has the global scales. */
static void make_good(builder *b) {
    static const uint64_t mx[] = {64, 2}, nv[] = {64, 1, 3}, sidecar[] = {3};
    static const float globals[] = {0.5f, 1.0f, 2.0f};
    begin(b, 3, 3, 4);
    put_text(b, "general.alignment"), put_u32(b, 4), put_u32(b, 64);
    put_text(b, "general.name"), put_u32(b, 8), put_text(b, "tiny");
    put_text(b, "tokens"), put_u32(b, 9), put_u32(b, 8), put_u64(b, 2);
    put_text(b, "a"), put_text(b, "\xff");
    put_text(b, "flag"), put_u32(b, 7), put(b, "\1", 1);
    put_info(b, "mx.weight", 2, mx, 39, 0);
    put_info(b, "nv.weight", 3, nv, 40, 128);
    put_info(b, "nv.scale", 1, sidecar, 0, 256);
    pad(b, 64, 0);
    /* Each mxfp4 block is a scale, followed by 16 bytes. The low halves of the bytes are the codes
     * 0 to 15, and the high halves are the codes 15 to 0. */
    for (unsigned block = 0; block < 4; block++) {
        uint8_t bytes[17] = {(uint8_t)(127 + block)};
        for (unsigned i = 0; i < 16; i++)
            bytes[1 + i] = (uint8_t)(i | (15 - i) << 4);
        put(b, bytes, sizeof bytes);
    }
    pad(b, 64, 0);
    /* Each nvfp4 matrix is one block of 64 elements, i.e. 4 scales and 32 bytes of codes. */
    for (unsigned matrix = 0; matrix < 3; matrix++) {
        uint8_t bytes[36] = {0x38, 0x40, 0x7F, 0x01};
        for (unsigned i = 0; i < 32; i++)
            bytes[4 + i] = (uint8_t)(2 | (10 + matrix) << 4);
        put(b, bytes, sizeof bytes);
    }
    pad(b, 64, 0);
    put(b, globals, sizeof globals);
}

static double e2m1(unsigned code) {
    static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

static void check_mxfp4(const bsmm_file *file, uint64_t index) {
    double *got = weight_values(file, index, 0, true);
    for (unsigned i = 0; i < 128; i++) {
        unsigned block = i / 32, k = i % 32;
        assert_true(got[i] == e2m1(k < 16 ? k : 31 - k) * ldexp(1, (int)block));
    }
    free(got);
}

static void check_nvfp4(const bsmm_file *file, uint64_t index) {
    static const double scales[] = {1, 2, 0, 0x1p-9}, globals[] = {0.5, 1, 2};
    for (unsigned slice = 0; slice < 3; slice++) {
        double *got = weight_values(file, index, slice, false);
        for (unsigned i = 0; i < 64; i++) {
            unsigned code = i % 16 < 8 ? 2 : 10 + slice;
            assert_true(got[i] == e2m1(code) * scales[i / 16] * globals[slice]);
        }
        free(got);
    }
}

static void test_good(void **state) {
    (void)state;
    builder b;
    bsmm_file *file;
    uint64_t index;
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    bsmm_weight w = BSMM_INIT(bsmm_weight);
    make_good(&b);
    write_bytes(temp_path("good.gguf"), b.bytes, b.count);
    if (bsmm_file_open(temp_path("good.gguf"), &file)) fail_msg("%s", bsmm_error_message());
    assert_string_equal(bsmm_file_kind(file), "gguf");
    assert_string_equal(bsmm_file_metadata(file, "general.name"), "tiny");
    assert_null(bsmm_file_metadata(file, "flag"));
    const char *key, *value;
    assert_int_equal(bsmm_file_metadata_at(file, 0, &key, &value), BSMM_OK);
    assert_string_equal(key, "flag");
    assert_null(value);
    assert_int_equal(bsmm_file_tensor_find(file, "nv.weight", &t), BSMM_OK);
    assert_int_equal(t.ndim, 3);
    assert_true(t.shape[0] == 3 && t.shape[1] == 1 && t.shape[2] == 64);
    assert_int_equal(bsmm_file_weight_count(file), 2);
    assert_int_equal(bsmm_file_weight_find(file, "mx", &index), BSMM_OK);
    check_mxfp4(file, index);
    assert_int_equal(bsmm_file_weight_find(file, "nv", &index), BSMM_OK);
    assert_int_equal(bsmm_file_weight_at(file, index, &w), BSMM_OK);
    assert_string_equal(w.family, "gguf");
    assert_int_equal(w.batch, 3);
    assert_int_equal(w.mapped, 0);
    check_nvfp4(file, index);
    bsmm_file_close(file);
}

/* Tests a scale with its sign bit set. UE4M3 has no sign bit, so this scale is invalid and the
 * message must name the block. */
static void test_signed_scale(void **state) {
    (void)state;
    builder b;
    bsmm_file *file;
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    uint8_t data[64], scales[16];
    make_good(&b);
    /* The second matrix's scales begin 36 bytes after the first matrix's scales. */
    uint8_t *first = b.bytes + b.count - 12 - 128;
    assert_int_equal(first[0], 0x38);
    first[36 + 1] = 0xB8;
    write_bytes(temp_path("signed.gguf"), b.bytes, b.count);
    assert_int_equal(bsmm_file_open(temp_path("signed.gguf"), &file), BSMM_OK);
    assert_int_equal(bsmm_weight_matrix(file, 1, 1, &m), BSMM_OK);
    assert_null(m.data);
    m.data = data;
    m.scales = scales;
    expect_failure(bsmm_weight_unpack(file, 1, 1, &m), BSMM_E_FORMAT,
                   "scale 1 of row 0, column 0 is 0xB8");
    m.rows = 2;
    m.data_bytes = m.scale_bytes = 0;
    expect_failure(bsmm_weight_unpack(file, 1, 1, &m), BSMM_E_INVALID, "dst");
    bsmm_file_close(file);
}

/* Tests that the reader refuses a truncated file. Only the padding after the last tensor may be
 * missing. */
static void test_truncated(void **state) {
    (void)state;
    builder b, cut;
    make_good(&b);
    for (size_t keep = 4; keep < b.count; keep++) {
        cut = b;
        cut.count = keep;
        assert_int_equal(parse(&cut), BSMM_E_FORMAT);
    }
}

static void test_headers(void **state) {
    (void)state;
    builder b;
    begin(&b, 1, 0, 0), expect_broken(&b, BSMM_E_UNSUPPORTED, "version: value is 1");
    begin(&b, 4, 0, 0), expect_broken(&b, BSMM_E_UNSUPPORTED, "version: value is 4");
    begin(&b, 0x03000000, 0, 0), expect_broken(&b, BSMM_E_UNSUPPORTED, "big-endian");
    begin(&b, 3, UINT64_MAX, 0), expect_broken(&b, BSMM_E_FORMAT, "tensor count");
    begin(&b, 3, 0, UINT64_MAX), expect_broken(&b, BSMM_E_FORMAT, "key: needs 8 bytes");
}

static void start_value(builder *b, const char *key, uint32_t type) {
    begin(b, 3, 0, 1);
    put_text(b, key);
    put_u32(b, type);
}

static void test_pairs(void **state) {
    (void)state;
    builder b;
    begin(&b, 3, 0, 1), put_u64(&b, UINT64_MAX);
    expect_broken(&b, BSMM_E_FORMAT, "key: needs 18446744073709551615 bytes");
    start_value(&b, "", 4), expect_broken(&b, BSMM_E_FORMAT, "not empty");
    start_value(&b, "\xc0\x80", 4), expect_broken(&b, BSMM_E_FORMAT, "must be UTF-8");
    start_value(&b, "k", 13), expect_broken(&b, BSMM_E_FORMAT, "k: type is 13");
    start_value(&b, "k", 8), put_u64(&b, 1), expect_broken(&b, BSMM_E_FORMAT, "k: needs 1 bytes");
    start_value(&b, "k", 9), put_u32(&b, 9), put_u64(&b, 1);
    expect_broken(&b, BSMM_E_FORMAT, "no array of arrays");
    start_value(&b, "k", 9), put_u32(&b, 12), put_u64(&b, UINT64_MAX / 4);
    expect_broken(&b, BSMM_E_FORMAT, "the size overflows");
    start_value(&b, "k", 9), put_u32(&b, 8), put_u64(&b, UINT64_MAX);
    expect_broken(&b, BSMM_E_FORMAT, "k: needs 8 bytes");
    start_value(&b, "general.alignment", 4), put_u32(&b, 0);
    expect_broken(&b, BSMM_E_FORMAT, "general.alignment: value is 0");
    start_value(&b, "general.alignment", 4), put_u32(&b, 48);
    expect_broken(&b, BSMM_E_FORMAT, "must be a power of 2");
    start_value(&b, "general.alignment", 10), put_u64(&b, 32);
    expect_broken(&b, BSMM_E_FORMAT, "general.alignment");
    begin(&b, 3, 0, 2);
    for (int i = 0; i < 2; i++)
        put_text(&b, "k"), put_u32(&b, 7), put(&b, "\1", 1);
    expect_broken(&b, BSMM_E_FORMAT, "k: two metadata values");
}

static void one_tensor(builder *b, const char *name, uint32_t ndim, const uint64_t *dims,
                       uint32_t type, uint64_t offset, size_t body) {
    begin(b, 3, 1, 0);
    put_info(b, name, ndim, dims, type, offset);
    pad(b, 32, body);
}

static void test_infos(void **state) {
    (void)state;
    builder b;
    static const uint64_t flat[] = {8}, big[] = {1ull << 32, 1ull << 32}, huge[] = {UINT64_MAX};
    static const uint64_t odd[] = {33}, many[] = {1, 1, 1, 1, 1}, wide[] = {1ull << 61};
    one_tensor(&b, "t", 1, flat, 0, 0, 31), expect_broken(&b, BSMM_E_FORMAT, "t: 32 bytes at");
    one_tensor(&b, "t", 1, flat, 0, 32, 32), expect_broken(&b, BSMM_E_FORMAT, "offset 32");
    one_tensor(&b, "t", 1, flat, 0, 8, 64), expect_broken(&b, BSMM_E_FORMAT, "multiple of general");
    one_tensor(&b, "t", 1, flat, 0, UINT64_MAX - 31, 64),
        expect_broken(&b, BSMM_E_FORMAT, "at offset");
    one_tensor(&b, "t", 1, odd, 39, 0, 64), expect_broken(&b, BSMM_E_FORMAT, "a multiple of 32");
    one_tensor(&b, "t", 2, big, 0, 0, 64), expect_broken(&b, BSMM_E_FORMAT, "overflows");
    one_tensor(&b, "t", 1, huge, 0, 0, 64), expect_broken(&b, BSMM_E_FORMAT, "overflows");
    one_tensor(&b, "t", 1, wide, 28, 0, 64),
        expect_broken(&b, BSMM_E_FORMAT, "size in bytes overflows");
    one_tensor(&b, "t", 5, many, 0, 0, 64), expect_broken(&b, BSMM_E_FORMAT, "5 dimensions");
    one_tensor(&b, "", 1, flat, 0, 0, 64), expect_broken(&b, BSMM_E_FORMAT, "tensor name");
    begin(&b, 3, 2, 0);
    put_info(&b, "t", 1, flat, 0, 0), put_info(&b, "t", 1, flat, 0, 32), pad(&b, 32, 64);
    expect_broken(&b, BSMM_E_FORMAT, "t: two tensors");
    begin(&b, 3, 2, 0);
    put_info(&b, "t", 1, flat, 0, 0), put_info(&b, "u", 1, flat, 0, 0), pad(&b, 32, 64);
    expect_broken(&b, BSMM_E_FORMAT, "u: offset is 0; the tensor before ends at 32");
}

/* Tests that the reader knows the size of every tensor type of ggml: it lists each tensor, and
 * refuses one that is a byte shorter. */
static void test_types(void **state) {
    (void)state;
    builder b;
    size_t known = 0;
    for (uint32_t type = 0; type < 64; type++) {
        const bsmm_gguf_type *row = bsmm_gguf_type_of(type);
        if (!row) continue;
        known++;
        uint64_t dims[] = {row->block, 1};
        bsmm_file *file;
        bsmm_tensor t = BSMM_INIT(bsmm_tensor);
        one_tensor(&b, "t", 2, dims, type, 0, row->bytes);
        write_bytes(temp_path("type.gguf"), b.bytes, b.count);
        assert_int_equal(bsmm_file_open(temp_path("type.gguf"), &file), BSMM_OK);
        assert_int_equal(bsmm_file_tensor_at(file, 0, &t), BSMM_OK);
        assert_string_equal(t.dtype, row->name);
        assert_int_equal(t.bytes, row->bytes);
        assert_true(t.elem == BSMM_ELEM_NONE || bsmm_file_weight_count(file) == 1);
        bsmm_file_close(file);
        b.count--;
        expect_broken(&b, BSMM_E_FORMAT, "at offset 0");
    }
    assert_int_equal(known, 35);
}

/* Tests that the reader lists a tensor of unknown type. The listing must give the number of the
 * type, and all bytes up to the next tensor. */
static void test_unknown_types(void **state) {
    (void)state;
    static const uint64_t dims[] = {40, 3}, one[] = {8};
    static const uint64_t bytes[] = {96, 32, 32};
    static const char *const dtypes[] = {"type 500", "F32", "type 4"};
    builder b;
    bsmm_file *file;
    begin(&b, 3, 3, 0);
    put_info(&b, "last", 2, dims, 4, 128);
    put_info(&b, "first", 2, dims, 500, 0);
    put_info(&b, "known", 1, one, 0, 96);
    pad(&b, 32, 160);
    write_bytes(temp_path("unknown.gguf"), b.bytes, b.count);
    if (bsmm_file_open(temp_path("unknown.gguf"), &file)) fail_msg("%s", bsmm_error_message());
    static const char *const names[] = {"first", "known", "last"};
    for (int i = 0; i < 3; i++) {
        bsmm_tensor t = BSMM_INIT(bsmm_tensor);
        assert_int_equal(bsmm_file_tensor_find(file, names[i], &t), BSMM_OK);
        assert_string_equal(t.dtype, dtypes[i]);
        assert_int_equal(t.bytes, bytes[i]);
    }
    assert_int_equal(bsmm_file_weight_count(file), 0);
    bsmm_file_close(file);
    one_tensor(&b, "t", 1, one, 500, 96, 64), expect_broken(&b, BSMM_E_FORMAT, "offset 96");
    one_tensor(&b, "t", 1, one, 500, UINT64_MAX - 31, 64),
        expect_broken(&b, BSMM_E_FORMAT, "at offset");
    begin(&b, 3, 2, 0);
    put_info(&b, "t", 1, one, 500, 0), put_info(&b, "u", 1, one, 500, 0), pad(&b, 32, 64);
    /* Both tensors begin at the same offset, so the parser treats the first one as empty and
       accepts the file. */
    assert_int_equal(parse(&b), BSMM_OK);
}

static bsmm_value value_of(const bsmm_file *file, const char *key) {
    bsmm_value value = BSMM_INIT(bsmm_value);
    assert_int_equal(bsmm_file_value(file, key, &value), BSMM_OK);
    return value;
}

static void put_number(builder *b, const char *key, uint32_t type, const void *bytes,
                       size_t count) {
    put_text(b, key), put_u32(b, type), put(b, bytes, count);
}

/* Tests a metadata value of each GGUF type. */
static void test_values_have_types(void **state) {
    (void)state;
    builder b = {0};
    const int8_t i8 = -3;
    const int16_t i16 = -300;
    const int64_t i64 = INT64_MIN;
    const uint64_t u64 = UINT64_MAX;
    const float f32 = 0.1f;
    const double f64 = -1e300;
    begin(&b, 3, 0, 9);
    put_number(&b, "i8", 1, &i8, 1), put_number(&b, "i16", 3, &i16, 2);
    put_number(&b, "i64", 11, &i64, 8), put_number(&b, "u64", 10, &u64, 8);
    put_number(&b, "f32", 6, &f32, 4), put_number(&b, "f64", 12, &f64, 8);
    put_number(&b, "on", 7, "\1", 1);
    put_text(&b, "words"), put_u32(&b, 9), put_u32(&b, 8), put_u64(&b, 3);
    put_text(&b, "a"), put_text(&b, ""), put_text(&b, "\xff\xfe");
    put_text(&b, "shape"), put_u32(&b, 9), put_u32(&b, 5), put_u64(&b, 2);
    put_u32(&b, 7), put_u32(&b, (uint32_t)-7);
    pad(&b, 32, 0);
    bsmm_file *file;
    assert_int_equal(bsmm_file_from_memory(b.bytes, b.count, &file), BSMM_OK);
    assert_int_equal(value_of(file, "i8").integer, -3);
    assert_int_equal(value_of(file, "i8").bits, 8);
    assert_int_equal(value_of(file, "i16").integer, -300);
    assert_true(value_of(file, "i64").integer == INT64_MIN);
    assert_true(value_of(file, "u64").natural == UINT64_MAX);
    assert_int_equal(value_of(file, "u64").type, BSMM_VALUE_UNSIGNED);
    assert_true(value_of(file, "f32").real == (double)0.1f);
    assert_true(value_of(file, "f64").real == -1e300);
    assert_int_equal(value_of(file, "on").type, BSMM_VALUE_BOOL);
    assert_int_equal(value_of(file, "on").natural, 1);
    bsmm_value words = value_of(file, "words"), items[3] = {BSMM_INIT(bsmm_value)};
    assert_int_equal(words.type, BSMM_VALUE_ARRAY);
    assert_int_equal(words.item_type, BSMM_VALUE_STRING);
    assert_int_equal(words.count, 3);
    assert_int_equal(bsmm_file_value_items(file, "words", 0, 3, items), BSMM_OK);
    assert_int_equal(items[1].count, 0);
    assert_int_equal(items[2].count, 2);
    assert_memory_equal(items[2].text, "\xff\xfe", 2);
    assert_int_equal(bsmm_file_value_items(file, "words", 2, 1, items), BSMM_OK);
    assert_memory_equal(items[0].text, "\xff\xfe", 2);
    assert_int_equal(bsmm_file_value_items(file, "words", 2, 2, items), BSMM_E_NOT_FOUND);
    expect_failure(bsmm_file_value(NULL, "words", items), BSMM_E_INVALID, "file, key: one is NULL");
    expect_failure(bsmm_file_value(file, NULL, items), BSMM_E_INVALID, "file, key: one is NULL");
    expect_failure(bsmm_file_value(file, "other", items), BSMM_E_NOT_FOUND, "has no such metadata");
    assert_int_equal(bsmm_file_value_items(file, "words", UINT64_MAX, 2, items), BSMM_E_NOT_FOUND);
    assert_int_equal(bsmm_file_value_items(file, "shape", 0, 2, items), BSMM_OK);
    assert_int_equal(items[1].integer, -7);
    assert_int_equal(items[1].bits, 32);
    assert_int_equal(bsmm_file_value_items(file, "on", 0, 1, items), BSMM_E_INVALID);
    assert_int_equal(bsmm_file_value(file, "none", items), BSMM_E_NOT_FOUND);
    assert_non_null(strstr(bsmm_error_message(), "none"));
    bsmm_file_close(file);
}

/* Tests which stored values count as whole numbers: integers of at least 0. */
static void test_whole_numbers(void **state) {
    (void)state;
    enum { OTHERWISE = 99 };
    static const struct {
        uint32_t type;
        uint64_t bits, expected;
    } cases[] = {
        {0, 200, 200},                /* uint8 */
        {1, 7, 7},                    /* int8 */
        {1, 0x80, OTHERWISE},         /* int8 of -128 */
        {5, 7, 7},                    /* int32 */
        {5, 0, 0},                    /* int32 */
        {5, UINT32_MAX, OTHERWISE},   /* int32 of -1 */
        {6, 0x40000000, OTHERWISE},   /* float of 2 */
        {7, 1, OTHERWISE},            /* bool */
        {8, 7, OTHERWISE},            /* string */
        {10, 1ull << 40, 1ull << 40}, /* uint64 */
        {11, 1ull << 40, 1ull << 40}, /* int64 */
        {12, 0, OTHERWISE},           /* double of 0 */
        {13, 7, OTHERWISE},           /* no type */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bsmm_stored_value value = {
            .at = (const uint8_t *)&cases[i].bits, .count = 1, .type = cases[i].type};
        uint64_t got = bsmm_gguf_whole_number(&value, OTHERWISE);
        if (got != cases[i].expected) fail_msg("case %zu: got %llu", i, (unsigned long long)got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),          cmocka_unit_test(test_values_have_types),
        cmocka_unit_test(test_signed_scale),  cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_headers),       cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_infos),         cmocka_unit_test(test_types),
        cmocka_unit_test(test_unknown_types), cmocka_unit_test(test_whole_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
