/* Tests which characters the command does not print, because they hide text or control a terminal.
 */
/* The test includes a source file of the command bsmm, because no library contains this code. */
#include "../../cli/printable.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct range {
    uint32_t first, last;
} range;

/* Lists Unicode 15's characters of the category Cf (format characters), as UnicodeData.txt has
 * them. */
static const range formats[] = {
    {0xAD, 0xAD},       {0x600, 0x605},
    {0x61C, 0x61C},     {0x6DD, 0x6DD},
    {0x70F, 0x70F},     {0x890, 0x891},
    {0x8E2, 0x8E2},     {0x180E, 0x180E},
    {0x200B, 0x200F},   {0x202A, 0x202E},
    {0x2060, 0x2064},   {0x2066, 0x206F},
    {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},
    {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
    {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0001, 0xE0001},
    {0xE0020, 0xE007F}, {0},
};

/* Lists control characters, line separators, variation selectors, and characters that show as
 * nothing or as blanks. */
static const range others[] = {
    {0x01, 0x1F},     {0x7F, 0x9F},     {0x34F, 0x34F},     {0x115F, 0x1160},
    {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x2028, 0x2029},   {0x3164, 0x3164},
    {0xFE00, 0xFE0F}, {0xFFA0, 0xFFA0}, {0xE0100, 0xE01EF}, {0},
};

/* Lists characters that are shown, among them the neighbours of hidden ones. */
static const range shown[] = {
    {0x20, 0x7E},
    {0xA1, 0xAC},
    {0xAE, 0x34E},
    {0x350, 0x377},
    {0x606, 0x61B},
    {0x61D, 0x6DC},
    {0x6DE, 0x70D},
    {0x8E3, 0x8FF},
    {0x1161, 0x1248},
    {0x2010, 0x2027},
    {0x2030, 0x205E},
    {0x2070, 0x2071},
    {0x3131, 0x3163},
    {0x4E00, 0x9FFF},
    {0xAC00, 0xD7A3},
    {0xFE10, 0xFE19},
    {0xFF01, 0xFF9F},
    {0xFFFC, 0xFFFD},
    {0x110BE, 0x110C1},
    {0x1D150, 0x1D172},
    {0x1F600, 0x1F64F},
    {0x20000, 0x2A6DF},
    {0},
};

/* Writes the UTF-8 form of a character. */
static void encode(uint32_t code, char text[5]) {
    unsigned char *to = (unsigned char *)text;
    const unsigned length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (unsigned i = length; i-- > 0; code >>= 6)
        to[i] = (unsigned char)(i ? 0x80 | (code & 0x3F) : lead[length] | code);
    to[length] = 0;
}

static void check(const range *ranges, bool is_shown) {
    for (; ranges->last; ranges++)
        for (uint32_t code = ranges->first; code <= ranges->last; code++) {
            char text[5], name[16], expected[16];
            encode(code, text);
            snprintf(name, sizeof name, "a%sb", text);
            snprintf(expected, sizeof expected, "a%sb", is_shown ? text : "?");
            if (cli_is_printable(name) != is_shown) fail_msg("U+%04X", code);
            assert_string_equal(cli_printable(name), expected);
        }
}

static void test_hidden(void **state) {
    (void)state;
    check(formats, false);
    check(others, false);
}

static void test_shown(void **state) {
    (void)state;
    check(shown, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
