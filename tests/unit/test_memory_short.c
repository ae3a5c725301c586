/* Tests calls when memory runs out. The test makes the first allocation of a call fail, then the
 * second one, and so on. Each of these calls must return an error. The call must succeed once no
 * allocation fails. */
#include "allocator.h"
#include "io/io.h"
#include "operand.h"
#include "stored.h"
#include "written.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Writes a file with a tensor and a weight. */
static bsmm_status write_file(const char *path, const char *kind) {
    static const int64_t shape[] = {2, 3};
    const bsmm_matrix matrix = describe(format_named("mxfp4"), 4, 64);
    bsmm_writer *writer = NULL;
    bsmm_status status = bsmm_writer_create(path, kind, &writer);
    if (status == BSMM_OK) status = bsmm_writer_metadata(writer, "key", "value");
    if (status == BSMM_OK) status = bsmm_writer_add_tensor(writer, "t", "F32", 2, shape, NULL);
    if (status == BSMM_OK)
        status = bsmm_writer_add_weight(writer, NULL, "w.weight", &matrix, 1, NULL);
    if (status == BSMM_OK) status = bsmm_writer_begin(writer);
    if (status == BSMM_OK) return bsmm_writer_commit(writer);
    bsmm_writer_abort(writer);
    return status;
}

static bsmm_status write_safetensors(const char *path) {
    return write_file(path, "safetensors");
}

static bsmm_status write_gguf(const char *path) {
    return write_file(path, "gguf");
}

static bsmm_status open_file(const char *path) {
    bsmm_file *file = NULL;
    const bsmm_status status = bsmm_file_open(path, &file);
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

/* Repeats a call until no allocation fails. Each time, a later allocation of the call fails. */
static void check(const char *name, bsmm_status (*call)(const char *), const char *argument) {
    if (call(argument) != BSMM_OK) fail_msg("%s: %s", name, bsmm_error_message());
    for (int n = 1;; n++) {
        start_counting(n);
        const bsmm_status status = call(argument);
        const int count = stop_counting();
        if (count < n) {
            if (status != BSMM_OK) fail_msg("%s: %s", name, bsmm_error_message());
            return;
        }
        if (status != BSMM_E_MEMORY && !is_shortage_of_system(status))
            fail_msg("%s: allocation %d fails: status %d: %s", name, n, status,
                     bsmm_error_message());
    }
}

static const char *fixture(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", BSMM_FIXTURE_DIR, name);
    return path;
}

static void test_short_memory(void **state) {
    (void)state;
    static const char *const fixtures[] = {
        "every_dtype.safetensors", "plain.gguf",      "gpt_oss_hf", "deepseek",
        "modelopt_nvfp4",          "compressed_nvfp4"};
    if (!can_count()) {
        print_message("skipped: this allocator is not glibc's\n");
        skip();
    }
    check("write safetensors", write_safetensors, temp_path("x.safetensors"));
    check("write gguf", write_gguf, temp_path("x.gguf"));
    for (size_t i = 0; i < BSMM_COUNT(fixtures); i++)
        check(fixtures[i], open_file, fixture(fixtures[i]));
    bytes = read_bytes(fixture("plain.gguf"), &byte_count);
    check("open from memory", open_bytes, "");
    free(bytes);
    check("plan", plan, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_short_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
