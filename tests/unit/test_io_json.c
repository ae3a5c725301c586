/* Tests how JSON that Python wrote is read (src/io/json.c): the words NaN and Infinity, byte order
 * marks, and escapes of surrogate pairs and of half pairs. */
#include "io/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#define REPLACED "\xef\xbf\xbd" /* U+FFFD */

static void test_strings(void **state) {
    (void)state;
    /* Each case is the text between the quotes and the string that must be read. */
    static const char *const cases[][2] = {
        {"\\ud83d\\udc00", "\xf0\x9f\x90\x80"},
        {"\\uD83D\\uDC00", "\xf0\x9f\x90\x80"},
        {"\\ud800\\udc00", "\xf0\x90\x80\x80"},
        {"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"},
        {"\\ud800", REPLACED},
        {"\\udbff", REPLACED},
        {"\\udc00", REPLACED},
        {"\\udfff", REPLACED},
        {"\\udc00\\ud800", REPLACED REPLACED},
        {"\\ud800\\ud83d\\udc00", REPLACED "\xf0\x9f\x90\x80"},
        {"\\ud800x\\udc00", REPLACED "x" REPLACED},
        {"\\ud7ff\\ue000", "\xed\x9f\xbf\xee\x80\x80"},
        {"\\\\ud800", "\\ud800"},
        {"a \\\" NaN", "a \" NaN"},
        {"-Infinity", "-Infinity"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64], why[160];
        const int bytes = snprintf(text, sizeof text, "[\"%s\"]", cases[i][0]);
        json_t *root = bsmm_json_of_python(text, (size_t)bytes, why, sizeof why);
        if (!root) fail_msg("%s: %s", text, why);
        assert_string_equal(json_string_value(json_array_get(root, 0)), cases[i][1]);
        json_decref(root);
    }
}

static void test_numbers(void **state) {
    (void)state;
    static const char text[] = "\xef\xbb\xbf[NaN, Infinity, -Infinity, 7]";
    char why[160];
    json_t *root = bsmm_json_of_python(text, sizeof text - 1, why, sizeof why);
    if (!root) fail_msg("%s", why);
    assert_int_equal(json_array_size(root), 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(json_number_value(json_array_get(root, i)) == (i == 3 ? 7 : 0));
    json_decref(root);
}

/* Tests the error messages for bad JSON. A message must give a position in the original text: the
 * end of the bad token. */
static void test_failures(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"[NaN, Nan]", "byte 9"},
                                           {"[Infinity, Inf]", "byte 14"},
                                           {"[\"\\ud8\"]", "byte"},
                                           {"", "byte"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char why[160] = "";
        assert_null(bsmm_json_of_python(cases[i][0], strlen(cases[i][0]), why, sizeof why));
        if (!strstr(why, cases[i][1])) fail_msg("%s: %s", cases[i][0], why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
