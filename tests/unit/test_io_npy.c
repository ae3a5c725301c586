/* Tests the reader of .npy files. The test covers versions of the format, row and column order,
 * and headers that break a rule. */
#include "io/io.h"
#include "stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Makes a .npy file in memory. It has the given format version and header dictionary, followed by
 * `body` bytes of zeros. */
static uint8_t *make(unsigned version, const char *dictionary, size_t body, size_t *bytes) {
    size_t length = strlen(dictionary), start = version == 1 ? 10 : 12;
    uint8_t *all = calloc(1, start + length + body + 1);
    assert_non_null(all);
    static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
    memcpy(all, magic, sizeof magic);
    all[6] = (uint8_t)version;
    for (size_t i = 0; i < start - 8; i++)
        all[8 + i] = (uint8_t)(length >> (8 * i));
    memcpy(all + start, dictionary, length + 1);
    *bytes = start + length + body;
    return all;
}

typedef struct header_case {
    const char *dictionary;
    size_t body;
    bsmm_status status;
    const char *mentions;
} header_case;

/* clang-format off */
static const header_case broken[] = {
    {"", 0, BSMM_E_FORMAT, "must be '{'"},
    {"{", 0, BSMM_E_FORMAT, "a quoted key"},
    {"{}", 0, BSMM_E_FORMAT, "must have the keys"},
    {"{'descr': '<f4', 'shape': (1,)}", 4, BSMM_E_FORMAT, "must have the keys"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, BSMM_E_FORMAT, "key \"x\""},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, BSMM_E_FORMAT, "each once"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, BSMM_E_FORMAT, "True or False"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", 4, BSMM_E_FORMAT, "a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, BSMM_E_FORMAT, "a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", 4, BSMM_E_FORMAT, "a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", 4, BSMM_E_FORMAT, "a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4, BSMM_E_FORMAT, "at most 8"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 4, BSMM_E_FORMAT, "overflows"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4, BSMM_E_FORMAT, "shape and descr take 8"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 5, BSMM_E_FORMAT, "has 5 bytes after the header"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, BSMM_E_FORMAT, "the end of the header"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", 4, BSMM_E_FORMAT, "',' or '}'"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, BSMM_E_FORMAT, "no structured types"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8, BSMM_E_UNSUPPORTED, "'|O'"},
    {"{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", 2, BSMM_E_UNSUPPORTED, "'<V2'"},
    {"{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", 4, BSMM_E_UNSUPPORTED, "'|f4'"},
    {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", 4, BSMM_E_UNSUPPORTED, "descr"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1, 1)}", 4, BSMM_E_UNSUPPORTED, "fortran_order"},
};
static const header_case good[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, BSMM_OK, "<f4"},
    {"{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f2\"}  \n", 12, BSMM_OK, "<f2"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8, BSMM_OK, "<f8"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 9)}", 0, BSMM_OK, "|u1"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 1)}", 8, BSMM_OK, ">f4"},
};
/* clang-format on */

static void test_broken(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(broken); i++)
        for (unsigned version = 1; version <= 3; version++) {
            size_t bytes;
            bsmm_file *file;
            uint8_t *all = make(version, broken[i].dictionary, broken[i].body, &bytes);
            if (bytes >= 12)
                expect_failure(bsmm_file_from_memory(all, bytes, &file), broken[i].status,
                               broken[i].mentions);
            free(all);
        }
}

static void test_good(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(good); i++)
        for (unsigned version = 1; version <= 3; version++) {
            size_t bytes;
            bsmm_file *file;
            bsmm_tensor t = BSMM_INIT(bsmm_tensor);
            uint8_t *all = make(version, good[i].dictionary, good[i].body, &bytes);
            if (bsmm_file_from_memory(all, bytes, &file)) fail_msg("%s", bsmm_error_message());
            assert_int_equal(bsmm_file_tensor_at(file, 0, &t), BSMM_OK);
            assert_string_equal(t.dtype, good[i].mentions);
            assert_int_equal(t.bytes, good[i].body);
            bsmm_file_close(file);
            free(all);
        }
}

static void test_truncated(void **state) {
    (void)state;
    size_t bytes;
    uint8_t *all = make(2, good[0].dictionary, 4, &bytes);
    for (size_t keep = 6; keep < bytes; keep++) {
        bsmm_file *file;
        uint8_t *exact = malloc(keep);
        assert_non_null(exact);
        memcpy(exact, all, keep);
        assert_int_equal(bsmm_file_from_memory(exact, keep, &file), BSMM_E_FORMAT);
        free(exact);
    }
    all[6] = 4;
    bsmm_file *file;
    expect_failure(bsmm_file_from_memory(all, bytes, &file), BSMM_E_FORMAT,
                   "version: value is 4.0");
    free(all);
}

/* Tests that a column-major (Fortran-ordered) matrix is listed as a weight with the right values,
 * and that a matrix of big-endian numbers is not listed as a weight. */
static void test_weights(void **state) {
    (void)state;
    size_t bytes;
    bsmm_file *file;
    static const float values[] = {1, 2, 3, 4, 5, 6};
    uint8_t *all = make(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", 24, &bytes);
    memcpy(all + bytes - 24, values, 24);
    write_bytes(temp_path("m.x.npy"), all, bytes);
    free(all);
    assert_int_equal(bsmm_file_open(temp_path("m.x.npy"), &file), BSMM_OK);
    assert_string_equal(bsmm_file_kind(file), "npy");
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    assert_int_equal(bsmm_file_weight_at(file, 0, &weight), BSMM_OK);
    assert_string_equal(weight.name, "m.x");
    double *got = weight_values(file, 0, 0, false);
    static const double expected[] = {1, 3, 5, 2, 4, 6};
    assert_memory_equal(got, expected, sizeof expected);
    free(got);
    bsmm_file_close(file);
    all = make(1, good[4].dictionary, 8, &bytes);
    assert_int_equal(bsmm_file_from_memory(all, bytes, &file), BSMM_OK);
    assert_int_equal(bsmm_file_weight_count(file), 0);
    bsmm_file_close(file);
    free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_broken), cmocka_unit_test(test_good),
                                       cmocka_unit_test(test_truncated),
                                       cmocka_unit_test(test_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
