/* Tests calls when memory runs out. The test makes the first allocation of a call fail, then the
 * second one, and so on. Each of these calls must return an error. The call must succeed once no
 * allocation fails. */
#include "allocator.h"
#include "io/family.h"
#include "io/json.h"
#include "operand.h"
#include "stored.h"
#include "written.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Writes a file with one plain tensor and one quantized weight, stored as `family` stores it. */
static bsmm_status write_file(const char *path, const char *kind, const char *family) {
    static const int64_t shape[] = {2, 3};
    const bsmm_matrix matrix = describe(format_named("mxfp4"), 4, 64);
    bsmm_writer *writer = NULL;
    bsmm_status status = bsmm_writer_create(path, kind, &writer);
    if (status == BSMM_OK) status = bsmm_writer_metadata(writer, "key", "value");
    if (status == BSMM_OK) status = bsmm_writer_add_tensor(writer, "t", "F32", 2, shape, NULL);
    if (status == BSMM_OK)
        status = bsmm_writer_add_weight(writer, family, "w.weight", &matrix, 1, NULL);
    if (status == BSMM_OK) status = bsmm_writer_begin(writer);
    if (status == BSMM_OK) return bsmm_writer_commit(writer);
    bsmm_writer_abort(writer);
    return status;
}

static bsmm_status write_safetensors(const char *path) {
    return write_file(path, "safetensors", "bsmm");
}

static bsmm_status write_gguf(const char *path) {
    return write_file(path, "gguf", "gguf");
}

/* Writes two weights in different formats as AMD's Quark stores them. Because the formats differ,
 * the file's config must have an entry of its own for the second weight. */
static bsmm_status write_config(const char *path) {
    const bsmm_matrix first = describe(format_named("mxfp4"), 4, 64),
                      second = describe(format_named("mxfp6_e2m3"), 4, 64);
    bsmm_writer *writer = NULL;
    bsmm_status status = bsmm_writer_create(path, "safetensors", &writer);
    if (status == BSMM_OK)
        status = bsmm_writer_add_weight(writer, "quark", "v.weight", &first, 1, NULL);
    if (status == BSMM_OK)
        status = bsmm_writer_add_weight(writer, "quark", "w.weight", &second, 1, NULL);
    if (status == BSMM_OK) status = bsmm_writer_begin(writer);
    if (status == BSMM_OK) return bsmm_writer_commit(writer);
    bsmm_writer_abort(writer);
    return status;
}

/* A name is so long that each copy of it needs an allocation of its own. The next text that is
 * copied needs a new allocation too, because the copy fills its memory. */
static char long_name[70000];
/* `long_family` is the checkpoint family of the weight with the long name. */
static const char *long_family;

static bsmm_status write_long_name(const char *path) {
    const bsmm_matrix matrix = describe(format_named("mxfp4"), 4, 64);
    bsmm_writer *writer = NULL;
    bsmm_status status = bsmm_writer_create(path, "safetensors", &writer);
    if (status == BSMM_OK)
        status = bsmm_writer_add_weight(writer, long_family, long_name, &matrix, 1, NULL);
    if (status == BSMM_OK) status = bsmm_writer_begin(writer);
    if (status == BSMM_OK) return bsmm_writer_commit(writer);
    bsmm_writer_abort(writer);
    return status;
}

static bsmm_status write_npy(const char *path) {
    static const int64_t shape[] = {2, 3};
    bsmm_writer *writer = NULL;
    bsmm_status status = bsmm_writer_create(path, "npy", &writer);
    if (status == BSMM_OK) status = bsmm_writer_add_tensor(writer, "t", "F32", 2, shape, NULL);
    if (status == BSMM_OK) status = bsmm_writer_begin(writer);
    if (status == BSMM_OK) return bsmm_writer_commit(writer);
    bsmm_writer_abort(writer);
    return status;
}

/* Holds the GGUF file whose metadata copy_metadata copies. */
static bsmm_file *copied;

static bsmm_status copy_metadata(const char *path) {
    bsmm_writer *writer = NULL;
    bsmm_status status = bsmm_writer_create(path, "gguf", &writer);
    if (status == BSMM_OK) status = bsmm_writer_copy_metadata(writer, copied);
    if (status == BSMM_OK) status = bsmm_writer_begin(writer);
    if (status == BSMM_OK) return bsmm_writer_commit(writer);
    bsmm_writer_abort(writer);
    return status;
}

/* Opens a file and describes its weights. */
static bsmm_status open_file(const char *path) {
    bsmm_file *file = NULL;
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_status status = bsmm_file_open(path, &file);
    for (uint64_t i = 0; status == BSMM_OK && i < bsmm_file_weight_count(file); i++)
        status = bsmm_file_weight_at(file, i, &weight);
    bsmm_file_close(file);
    return status;
}

/* Holds the bytes of a file that open_bytes opens. */
static uint8_t *bytes;
static size_t byte_count;

static bsmm_status open_bytes(const char *name) {
    (void)name;
    bsmm_file *file;
    const bsmm_status status = bsmm_file_from_memory(bytes, byte_count, &file);
    bsmm_file_close(file);
    return status;
}

static bsmm_status plan(const char *formats) {
    (void)formats;
    const bsmm_matrix a = describe(format_named("bf16"), 4, 64),
                      b = describe(format_named("mxfp4"), 8, 64),
                      d = describe(format_named("f32"), 4, 8);
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .threads = 1};
    bsmm_plan *made = NULL;
    const bsmm_status status = bsmm_plan_create(&desc, &made);
    bsmm_plan_destroy(made);
    return status;
}

/* Returns true if a function of the C library may have reported that memory ran out. The library
 * then returns an input or output error. */
static bool is_shortage_of_system(bsmm_status status) {
    return status == BSMM_E_IO && strstr(bsmm_error_message(), "Cannot allocate memory");
}

/* Returns true if a call may have failed because memory ran out in the JSON library. The library
 * reports some failed allocations as a syntax error ("... near 'word'"). */
static bool is_shortage_of_parser(bsmm_status status) {
    return status == BSMM_E_FORMAT && strstr(bsmm_error_message(), " near '");
}

/* Fails unless a file has these bytes. */
static void expect_bytes(const char *path, const uint8_t *expected, size_t count) {
    size_t found_count;
    uint8_t *found = read_bytes(path, &found_count);
    assert_int_equal(found_count, count);
    assert_memory_equal(found, expected, count);
    free(found);
}

/* Runs a call repeatedly. In run number n, the n-th allocation fails. The last run is the first one
 * that makes fewer than n allocations. If the call writes the file `argument`, `whole` holds the
 * bytes of the file after success. Otherwise `whole` is NULL. */
static void repeat(const char *name, bsmm_status (*call)(const char *), const char *argument,
                   const uint8_t *whole, size_t whole_count) {
    for (int n = 1;; n++) {
        start_counting(n);
        const bsmm_status status = call(argument);
        const int count = stop_counting();
        if (count < n && status != BSMM_OK) fail_msg("%s: %s", name, bsmm_error_message());
        if (count < n) return;
        if (status == BSMM_OK && whole)
            expect_bytes(argument, whole, whole_count);
        else if (status != BSMM_E_MEMORY && !is_shortage_of_system(status) &&
                 !is_shortage_of_parser(status))
            fail_msg("%s: allocation %d fails: status %d: %s", name, n, status,
                     bsmm_error_message());
    }
}

static void check(const char *name, bsmm_status (*call)(const char *), const char *argument) {
    if (call(argument) != BSMM_OK) fail_msg("%s: %s", name, bsmm_error_message());
    repeat(name, call, argument, NULL, 0);
}

/* Checks a call that writes a file. It may succeed although an allocation fails, because the writer
 * then creates the file in another way. The file must then be complete. */
static void check_writing(const char *name, bsmm_status (*call)(const char *), const char *path) {
    size_t count;
    if (call(path) != BSMM_OK) fail_msg("%s: %s", name, bsmm_error_message());
    uint8_t *whole = read_bytes(path, &count);
    repeat(name, call, path, whole, count);
    free(whole);
}

static const char *fixture(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", BSMM_FIXTURE_DIR, name);
    return path;
}

/* Makes a checkpoint of two shards and returns the path of its index. All names are short, because
 * the JSON library drops characters of longer names if memory runs out. */
static const char *make_shards(void) {
    static const char index[] =
        "{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}";
    const char *const names[] = {"a", "b"};
    for (size_t i = 0; i < 2; i++) {
        char file[16];
        size_t count;
        const stored tensor = {
            .name = names[i], .dtype = "U8", .ndim = 1, .shape = {1}, .bytes = 1};
        uint8_t *shard = safetensors_bytes(&tensor, 1, NULL, &count);
        snprintf(file, sizeof file, "%s.safetensors", names[i]);
        write_bytes(temp_path(file), shard, count);
        free(shard);
    }
    write_bytes(temp_path("model.safetensors.index.json"), index, sizeof index - 1);
    return temp_path("model.safetensors.index.json");
}

/* Makes a file whose header lists the tensors in another order than their bytes have. The names
 * contain an escape sequence of JSON. The fast reader of headers does not support these, so the
 * general JSON parser reads the header. */
static const char *make_unordered(void) {
    static const char header[] =
        "{\"\\u0062\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
        "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    size_t count;
    uint8_t *file = framed_bytes(header, "ab", 2, &count);
    write_bytes(temp_path("unordered.safetensors"), file, count);
    free(file);
    return temp_path("unordered.safetensors");
}

/* Checks a call that opens the bytes of a file. */
static void check_bytes(const char *path) {
    bytes = read_bytes(path, &byte_count);
    check(path, open_bytes, "");
    free(bytes);
}

/* Sets long_name to a name with this ending. */
static void set_long_name(const char *ending) {
    memset(long_name, 'w', sizeof long_name - 1);
    snprintf(long_name + sizeof long_name - 1 - strlen(ending), strlen(ending) + 1, "%s", ending);
}

static void test_long_name(void **state) {
    (void)state;
    static const char *const families[] = {"compressed-tensors", "gpt-oss", "bsmm"};
    if (!can_count()) skip();
    set_long_name(".weight");
    for (size_t i = 0; i < BSMM_COUNT(families); i++) {
        long_family = families[i];
        check_writing(long_family, write_long_name, temp_path("l.safetensors"));
        /* The metadata of "bsmm" contain the long name. The JSON library drops characters of a long
         * text if memory runs out, so such a file may be opened with a wrong name. */
        if (strcmp(long_family, "bsmm") != 0)
            check(long_family, open_file, temp_path("l.safetensors"));
    }
}

/* Tests that a weight's declaration is not read if the first allocation of the JSON library fails.
 * Later failures are not tested, because the library ends the program after some of them. */
static void test_declaration(void **state) {
    (void)state;
    bsmm_matrix matrix;
    int64_t batch;
    if (!can_count()) skip();
    start_counting(1);
    const bsmm_status status = bsmm_declaration_read("{}", "w", &matrix, &batch);
    stop_counting();
    expect_failure(status, BSMM_E_MEMORY, "out of memory");
}

/* Tests a config.json that cannot be read because memory runs out for its copy or in the JSON
 * library. */
static void test_config(void **state) {
    (void)state;
    if (!can_count()) skip();
    for (int n = 1; n <= 2; n++) {
        char why[64] = "";
        start_counting(n);
        const struct json_t *root = bsmm_json_of_python("{}", 2, why, sizeof why);
        stop_counting();
        assert_null(root);
        assert_string_equal(why, "out of memory");
    }
}

enum { GGUF_UINT32 = 4, GGUF_UNKNOWN = 99 };

static void put_number(FILE *to, uint64_t value, size_t count) {
    for (size_t i = 0; i < count; i++)
        putc((int)(value >> 8 * i & 255), to);
}

static void put_text(FILE *to, const char *text) {
    put_number(to, strlen(text), 8);
    fputs(text, to);
}

static void put_key(FILE *to, const char *key, uint32_t value) {
    put_text(to, key);
    put_number(to, GGUF_UINT32, 4);
    put_number(to, value, 4);
}

/* Writes part `part` of a GGUF model of `parts` parts. It has two tensors of a type that the
 * library does not know, and their names are long. */
static const char *make_gguf_part(unsigned part, unsigned parts) {
    char name[32];
    snprintf(name, sizeof name, "m-%05u-of-%05u.gguf", part + 1, parts);
    const char *path = temp_path(name);
    FILE *to = fopen(path, "wb");
    assert_non_null(to);
    fputs("GGUF", to);
    put_number(to, 3, 4);
    put_number(to, 2, 8);
    put_number(to, 2, 8);
    put_key(to, "split.count", parts);
    put_key(to, "split.no", part);
    for (unsigned i = 0; i < 2; i++) {
        long_name[0] = (char)('a' + 2 * part + i);
        put_text(to, long_name);
        put_number(to, 1, 4);
        put_number(to, 1, 8);
        put_number(to, GGUF_UNKNOWN, 4);
        put_number(to, 32 * i, 8);
    }
    put_number(to, 0, 8);
    for (unsigned i = 0; i < 64; i++)
        put_number(to, 0, 1);
    assert_int_equal(fclose(to), 0);
    return path;
}

/* Tests the names of the tensors' types. The memory that the parts of the model had while the file
 * was opened is overwritten when it is freed (see main). */
static void expect_unknown_types(const char *path) {
    bsmm_file *file;
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    assert_int_equal(bsmm_file_open(path, &file), BSMM_OK);
    assert_int_equal(bsmm_file_tensor_count(file), 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(bsmm_file_tensor_at(file, i, &tensor), BSMM_OK);
        assert_string_equal(tensor.dtype, "type 99");
    }
    bsmm_file_close(file);
}

static void test_long_names_of_gguf(void **state) {
    (void)state;
    if (!can_count()) skip();
    set_long_name("");
    check("one part", open_file, make_gguf_part(0, 1));
    make_gguf_part(1, 2);
    const char *const first = make_gguf_part(0, 2);
    check("two parts", open_file, first);
    expect_unknown_types(first);
}

/* Writes a safetensors file with these tensors and returns its path. */
static const char *make_file(const char *name, const stored *tensors, size_t count) {
    size_t total;
    const char *path = temp_path(name);
    uint8_t *all = safetensors_bytes(tensors, count, NULL, &total);
    write_bytes(path, all, total);
    free(all);
    return path;
}

/* Tests a weight whose global scale must be copied, because its address is no multiple of 4. The
 * address is one of four in turn, of which three are unaligned. The long name is the last text
 * before the scale that the reader copies. */
static void test_copied_global_scale(void **state) {
    (void)state;
    static const float global = 1;
    if (!can_count()) skip();
    set_long_name("");
    for (int64_t before = 1; before <= 4; before++) {
        const stored tensors[] = {
            {.name = "v", .dtype = "U8", .ndim = 1, .shape = {before}, .bytes = (size_t)before},
            {.name = "w.weight", .dtype = "U8", .ndim = 2, .shape = {1, 8}, .bytes = 8},
            {.name = "w.weight_scale", .dtype = "F8_E4M3", .ndim = 2, .shape = {1, 1}, .bytes = 1},
            {.name = "w.weight_scale_2", .dtype = "F32", .data = &global, .bytes = 4},
            {.name = long_name, .dtype = "U8", .ndim = 1, .shape = {1}, .bytes = 1},
        };
        check("global scale", open_file, make_file("g.safetensors", tensors, BSMM_COUNT(tensors)));
    }
}

/* Tests a name with an escape sequence and the name of a second shard, each after a long name. */
static void test_after_long_name(void **state) {
    (void)state;
    static const char format[] =
        "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}";
    static const char index[] =
        "{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}";
    static char header[sizeof long_name + sizeof format];
    const stored tensors[] = {
        {.name = "a", .dtype = "U8", .ndim = 1, .shape = {1}, .bytes = 1},
        {.name = long_name, .dtype = "U8", .ndim = 1, .shape = {1}, .bytes = 1},
        {.name = "b", .dtype = "U8", .ndim = 1, .shape = {1}, .bytes = 1},
    };
    size_t count;
    if (!can_count()) skip();
    set_long_name("");
    snprintf(header, sizeof header, format, long_name);
    uint8_t *escaped = framed_bytes(header, "ab", 2, &count);
    write_bytes(temp_path("e.safetensors"), escaped, count);
    free(escaped);
    check("escaped name", open_file, temp_path("e.safetensors"));
    make_file("a.safetensors", tensors, 2);
    make_file("b.safetensors", tensors + 2, 1);
    write_bytes(temp_path("model.safetensors.index.json"), index, sizeof index - 1);
    check("shard", open_file, temp_path("model.safetensors.index.json"));
}

static void test_short_memory(void **state) {
    (void)state;
    static const char *const fixtures[] = {
        "every_dtype.safetensors", "plain.gguf",       "gpt_oss_hf", "deepseek",
        "modelopt_nvfp4",          "compressed_nvfp4",
    };
    if (!can_count()) {
        print_message("skipped: this allocator is not glibc's\n");
        skip();
    }
    check_writing("write safetensors", write_safetensors, temp_path("x.safetensors"));
    check_writing("write gguf", write_gguf, temp_path("x.gguf"));
    check_writing("write config", write_config, temp_path("y.safetensors"));
    check_writing("write npy", write_npy, temp_path("z.npy"));
    if (bsmm_file_open(fixture("plain.gguf"), &copied)) fail_msg("%s", bsmm_error_message());
    check_writing("copy metadata", copy_metadata, temp_path("z.gguf"));
    bsmm_file_close(copied);
    check("open unordered", open_file, make_unordered());
    check("open shards", open_file, make_shards());
    for (size_t i = 0; i < BSMM_COUNT(fixtures); i++)
        check(fixtures[i], open_file, fixture(fixtures[i]));
    check_bytes(fixture("plain.gguf"));
    check_bytes(fixture("npy/batch.npy"));
    check_bytes(make_unordered());
    check("plan", plan, "");
}

int main(void) {
    overwrite_freed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_memory),       cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_declaration),        cmocka_unit_test(test_config),
        cmocka_unit_test(test_long_names_of_gguf), cmocka_unit_test(test_copied_global_scale),
        cmocka_unit_test(test_after_long_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
