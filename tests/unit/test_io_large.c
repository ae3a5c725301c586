/* Tests a file of 64 GiB, which is larger than memory. The library must map it instead of loading
 * it. The file is sparse and has a single weight at its end. */
#include "stored.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t huge = 64ull << 30;

static int make_sparse(const char *path) {
    char header[512] = {0};
    static const float last[] = {1, 2, 3, 4, 5, 6};
    uint64_t length = 256;
    int used = snprintf(header + 8, sizeof header - 8,
                        "{\"huge.weight\":{\"dtype\":\"BF16\",\"shape\":[%llu,65536],"
                        "\"data_offsets\":[0,%llu]},\"last.weight\":{\"dtype\":\"F32\","
                        "\"shape\":[2,3],\"data_offsets\":[%llu,%llu]}}",
                        (unsigned long long)(huge / 131072), (unsigned long long)huge,
                        (unsigned long long)huge, (unsigned long long)huge + 24);
    memset(header + 8 + used, ' ', length - (uint64_t)used);
    memcpy(header, &length, 8);
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(descriptor >= 0);
    int made = ftruncate(descriptor, (off_t)(8 + length + huge + 24)) == 0;
    if (made) {
        assert_int_equal(pwrite(descriptor, header, 8 + length, 0), 8 + length);
        assert_int_equal(pwrite(descriptor, last, 24, (off_t)(8 + length + huge)), 24);
    }
    close(descriptor);
    return made;
}

static long peak_kib(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

static void test_sparse(void **state) {
    (void)state;
    const char *path = temp_path("huge.safetensors");
    if (!make_sparse(path)) {
        print_message("the file system holds no sparse file of 64 GiB: not tested\n");
        skip();
    }
    long before = peak_kib();
    bsmm_file *file;
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    if (bsmm_file_open(path, &file)) fail_msg("%s", bsmm_error_message());
    assert_int_equal(bsmm_file_weight_count(file), 2);
    assert_int_equal(bsmm_file_weight_at(file, 0, &weight), BSMM_OK);
    assert_int_equal((uint64_t)weight.rows * (uint64_t)weight.cols * 2, huge);
    double *values = weight_values(file, 1, 0, false);
    assert_true(values[0] == 1 && values[5] == 6);
    free(values);
    bsmm_file_close(file);
    assert_true(peak_kib() - before < 16 * 1024);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sparse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
