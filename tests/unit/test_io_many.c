/* Tests a file header with a million tensors without elements. The library must open the file
 * within a second of processor time and 300 MB of memory, list the tensors in order, and find them
 * by name. */
#include "stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#if defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define SANITIZED 1
#    endif
#endif
#if defined(SANITIZED) || defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
static const bool is_measured = false;
#else
static const bool is_measured = true;
#endif

enum { MANY = 1000000 };

/* Writes a file of many empty tensors. The names end with numbers, so their numerical order is not
 * the alphabetical one. `last` replaces the description of the last tensor. */
static const char *write_many(const char *name, const char *shape, const char *last) {
    static const char unused[8];
    const char *path = temp_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(unused, 1, sizeof unused, file);
    for (int i = 0; i < MANY - 1; i++)
        fprintf(file, "%c\"t%d\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[0,0]}",
                i ? ',' : '{', i, shape);
    fprintf(file, ",%s}", last);
    uint64_t length = (uint64_t)ftell(file) - sizeof unused;
    rewind(file);
    fwrite(&length, 1, sizeof length, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static long peak_mib(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss / 1024;
}

static bsmm_file *open_measured(const char *path) {
    bsmm_file *file;
    clock_t begin = clock();
    if (bsmm_file_open(path, &file)) fail_msg("%s", bsmm_error_message());
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    print_message("%.2f s, %ld MiB at most\n", seconds, peak_mib());
    if (is_measured && seconds > 1) fail_msg("took %.2f s; at most 1", seconds);
    if (is_measured && peak_mib() > 300) fail_msg("took %ld MiB; at most 300", peak_mib());
    return file;
}

static void check_listing(const bsmm_file *file) {
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    char name[32];
    assert_int_equal(bsmm_file_tensor_count(file), MANY);
    for (int i = 0; i < MANY; i += 99999) {
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(bsmm_file_tensor_at(file, (uint64_t)i, &t), BSMM_OK);
        assert_string_equal(t.name, name);
        assert_int_equal(bsmm_file_tensor_find(file, name, &t), BSMM_OK);
        assert_string_equal(t.name, name);
    }
    assert_int_equal(bsmm_file_tensor_find(file, "t", &t), BSMM_E_NOT_FOUND);
}

#define LAST(name) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}"

static void test_tensors(void **state) {
    (void)state;
    bsmm_file *file = open_measured(write_many("vectors", "[0]", LAST("t999999")));
    check_listing(file);
    assert_int_equal(bsmm_file_weight_count(file), 0);
    bsmm_file_close(file);
}

static void test_weights(void **state) {
    (void)state;
    bsmm_file *file = open_measured(write_many("matrices", "[0, 4]", LAST("t999999")));
    check_listing(file);
    assert_int_equal(bsmm_file_weight_count(file), MANY - 1);
    bsmm_file_close(file);
}

/* Tests that an error in the description of the last tensor is found. */
static void test_last(void **state) {
    (void)state;
    bsmm_file *file;
    expect_failure(bsmm_file_open(write_many("twice", "[0]", LAST("t7")), &file), BSMM_E_FORMAT,
                   "t7: two tensors have this name");
    expect_failure(bsmm_file_open(write_many("open", "[0]", "\"t\":{\"dtype\":[}"), &file),
                   BSMM_E_FORMAT, "header: byte ");
    expect_failure(bsmm_file_open(write_many("comma", "[0]", ""), &file), BSMM_E_FORMAT,
                   "a string expected");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors),
                                       cmocka_unit_test(test_weights), cmocka_unit_test(test_last)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
