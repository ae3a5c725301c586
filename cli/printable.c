#include "common.h"
#include <stdint.h>
#include <string.h>

/* Lists ranges of characters that are invisible or that change how other characters are shown:
 * control characters, all of Unicode's format characters (category Cf), and characters that Unicode
 * calls default ignorable or that show as blanks. The ranges rise. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x00, 0x1F},       /* C0 control characters */
    {0x7F, 0x9F},       /* DEL and C1 control characters */
    {0xAD, 0xAD},       /* soft hyphen */
    {0x34F, 0x34F},     /* combining grapheme joiner */
    {0x600, 0x605},     /* Arabic number signs, which enclose the digits after them */
    {0x61C, 0x61C},     /* Arabic letter mark */
    {0x6DD, 0x6DD},     /* Arabic end of ayah */
    {0x70F, 0x70F},     /* Syriac abbreviation mark */
    {0x890, 0x891},     /* Arabic currency marks */
    {0x8E2, 0x8E2},     /* Arabic disputed end of ayah */
    {0x115F, 0x1160},   /* Hangul fillers */
    {0x17B4, 0x17B5},   /* Khmer inherent vowels */
    {0x180B, 0x180F},   /* Mongolian variation selectors and vowel separator */
    {0x200B, 0x200F},   /* zero-width characters and direction marks */
    {0x2028, 0x202E},   /* line separators, bidirectional embeddings and overrides */
    {0x2060, 0x206F},   /* word joiner, invisible operators and bidirectional isolates */
    {0x3164, 0x3164},   /* Hangul filler */
    {0xFE00, 0xFE0F},   /* variation selectors */
    {0xFEFF, 0xFEFF},   /* byte order mark */
    {0xFFA0, 0xFFA0},   /* halfwidth Hangul filler */
    {0xFFF0, 0xFFFB},   /* reserved, and interlinear annotation characters */
    {0x110BD, 0x110BD}, /* Kaithi number sign */
    {0x110CD, 0x110CD}, /* Kaithi number sign above */
    {0x13430, 0x1343F}, /* joiners and segments of hieroglyphs */
    {0x1BCA0, 0x1BCA3}, /* format characters of shorthand */
    {0x1D173, 0x1D17A}, /* beams, ties and phrases of musical notation */
    {0xE0000, 0xE0FFF}, /* tag characters, more variation selectors, and reserved characters */
};

static bool is_hidden(uint32_t code) {
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0] && code >= hidden[i].first; i++)
        if (code <= hidden[i].last) return true;
    return false;
}

/* Decodes the UTF-8 sequence that begins at `at`. Returns its length in bytes, or 0 if the bytes
 * are invalid. */
static size_t take(const unsigned char *at, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xC0 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if (length == 0 || at[0] >= 0xF8) return 0;
    *code = length == 1 ? at[0] : at[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        /* The NUL that ends the text fails this test too, so the loop never reads past the end of
         * the text. */
        if ((at[i] & 0xC0) != 0x80) return 0;
        *code = *code << 6 | (at[i] & 0x3Fu);
    }
    bool surrogate = *code >= 0xD800 && *code <= 0xDFFF;
    return *code < least[length] || *code > 0x10FFFF || surrogate ? 0 : length;
}

/* Returns the number of printable ASCII characters at the beginning of a text. They need no other
 * check, and most texts consist of nothing else. */
static size_t plain_length(const char *text) {
    size_t length = 0;
    while (text[length] >= 0x20 && text[length] < 0x7F)
        length++;
    return length;
}

char *cli_printable(char *text) {
    char *to = text + plain_length(text);
    for (const char *from = to; *from;) {
        uint32_t code;
        size_t length = take((const unsigned char *)from, &code);
        if (length == 0 || is_hidden(code)) {
            *to++ = '?';
            from += length ? length : 1;
            continue;
        }
        while (length--)
            *to++ = *from++;
    }
    *to = '\0';
    return text;
}

bool cli_is_printable(const char *text) {
    uint32_t code;
    text += plain_length(text);
    for (size_t length; *text; text += length) {
        length = take((const unsigned char *)text, &code);
        if (length == 0 || is_hidden(code)) return false;
    }
    return true;
}
