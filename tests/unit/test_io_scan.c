/* Tests the scanner of safetensors headers (io/scan.h) and the check of UTF-8 (io/text.c) at the
 * limits of what they accept. */
#include "io/io.h"
#include "io/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct text_case {
    const char *text;
    bool is_accepted;
} text_case;

static bsmm_scan scan_of(const char *text) {
    return (bsmm_scan){text, text + strlen(text)};
}

static void test_utf8(void **state) {
    (void)state;
    static const text_case cases[] = {
        /* These are the first and the last character of each length, and the neighbours of the
         * surrogates. */
        {"", true},
        {"\x01\x7f", true},
        {"\xc2\x80", true},
        {"\xdf\xbf", true},
        {"\xe0\xa0\x80", true},
        {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true},
        {"\xef\xbf\xbf", true},
        {"\xf0\x90\x80\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"a\xc3\xa9"
         "b\xe2\x82\xac"
         "c\xf0\x9f\x90\x80",
         true},
        /* These bytes begin no character. */
        {"\x80", false},
        {"\xbf", false},
        {"\xc0\x80", false},
        {"\xc1\xbf", false},
        {"\xf5\x80\x80\x80", false},
        {"\xff", false},
        /* These are overlong forms, surrogates, and the character after U+10FFFF. */
        {"\xe0\x9f\xbf", false},
        {"\xed\xa0\x80", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xf4\x90\x80\x80", false},
        /* These texts end too early, or have bytes that continue no character. */
        {"\xc2", false},
        {"\xe1\x80", false},
        {"\xf1\x80\x80", false},
        {"\xc2\x7f", false},
        {"\xc2\xc0", false},
        {"\xe1\x80\x7f", false},
        {"\xf1\x80\x80\xc0", false},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++)
        if (bsmm_text_is_utf8(cases[i].text, strlen(cases[i].text)) != cases[i].is_accepted)
            fail_msg("case %zu", i);
    assert_false(bsmm_text_is_utf8("a\0b", 3));
    assert_false(bsmm_text_is_utf8("ab\xc3\xa9", 3));
    assert_true(bsmm_text_ends("a.gguf", ".gguf") && bsmm_text_ends("x", ""));
    assert_true(bsmm_text_ends(".gguf", ".gguf"));
    assert_false(bsmm_text_ends("gguf", ".gguf") || bsmm_text_ends("a.gguf", ".ggu"));
}

static void test_count(void **state) {
    (void)state;
    static const text_case cases[] = {
        {"0", true},
        {" \t\r\n7", true},
        {"10]", true},
        {"999999999999999999", true},
        {"1000000000000000000", false},
        {"00", false},
        {"01", false},
        {"1.5", false},
        {"1e3", false},
        {"1E3", false},
        {"-1", false},
        {"/", false},
        {":", false},
        {"", false},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        uint64_t value;
        bsmm_scan scan = scan_of(cases[i].text);
        if (bsmm_scan_count(&scan, &value) != cases[i].is_accepted) fail_msg("case %zu", i);
    }
    uint64_t value;
    bsmm_scan scan = scan_of("90210]");
    assert_true(bsmm_scan_count(&scan, &value) && bsmm_scan_take(&scan, ']'));
    assert_int_equal(value, 90210);
    assert_false(bsmm_scan_take(&scan, ']'));
}

static void test_string(void **state) {
    (void)state;
    static const text_case cases[] = {
        {"\"\"", true},      {" \"a b\"", true},   {"\"\xc3\xa9\"", true},
        {"\"", false},       {"\"a", false},       {"a", false},
        {"", false},         {"\"a\\nb\"", false}, {"\"a\x1f\"", false},
        {"\"a\tb\"", false},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        bsmm_span text;
        bsmm_scan scan = scan_of(cases[i].text);
        const char *begin = scan.at;
        if (bsmm_scan_string(&scan, &text) != cases[i].is_accepted) fail_msg("case %zu", i);
        if (cases[i].is_accepted) assert_ptr_equal(scan.at, scan.end);
        if (!cases[i].is_accepted && *begin != ' ') assert_ptr_equal(scan.at, begin);
    }
    bsmm_span text;
    bsmm_scan scan = scan_of("  \"abc\",");
    assert_true(bsmm_scan_string(&scan, &text) && bsmm_scan_take(&scan, ','));
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.at, "abc", 3);
}

/* Each case is a text and the value that it begins with. */
static void test_value(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"12, 3", "12"},
        {" \n7]", "7"},
        {"true}", "true"},
        {"\"a,]\\\"}\" :1", "\"a,]\\\"}\""},
        {"[1, [2, \"]\"], {}], 3", "[1, [2, \"]\"], {}]"},
        {"{\"a\": {\"b\": [1]}} x", "{\"a\": {\"b\": [1]}}"},
        {"[1", "[1"},
        {", 1", ""},
        {": 1", ""},
        {"} 1", ""},
        {"] 1", ""},
        {"", ""},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        bsmm_span value;
        bsmm_scan scan = scan_of(cases[i][0]);
        size_t length = strlen(cases[i][1]);
        if (bsmm_scan_value(&scan, &value) != (length > 0)) fail_msg("case %zu", i);
        if (value.length != length) fail_msg("case %zu: %zu bytes", i, value.length);
        assert_memory_equal(value.at, cases[i][1], length);
        assert_ptr_equal(scan.at, value.at + length);
    }
}

/* The scanner must not use the bytes after the end of its text. */
static void test_end(void **state) {
    (void)state;
    static const char text[] = "12345   ]\"ab\"6.7";
    uint64_t value;
    bsmm_span span;
    bsmm_scan scan = {text, text + 2};
    assert_true(bsmm_scan_count(&scan, &value));
    assert_int_equal(value, 12);
    scan = (bsmm_scan){text + 13, text + 14};
    assert_true(bsmm_scan_count(&scan, &value));
    scan = (bsmm_scan){text + 5, text + 7};
    bsmm_scan_space(&scan);
    assert_ptr_equal(scan.at, scan.end);
    assert_false(bsmm_scan_take(&scan, ' '));
    for (size_t length = 1; length < 4; length++) {
        scan = (bsmm_scan){text + 9, text + 9 + length};
        assert_false(bsmm_scan_string(&scan, &span));
    }
    assert_true(bsmm_scan_value(&scan, &span));
    assert_int_equal(span.length, 3);
    scan = (bsmm_scan){text + 5, text + 9};
    assert_true(bsmm_scan_take(&scan, ']'));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),  cmocka_unit_test(test_count), cmocka_unit_test(test_string),
        cmocka_unit_test(test_value), cmocka_unit_test(test_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
