#include "common.h"
#include <stdint.h>
#include <string.h>

/* Lists ranges of characters that are invisible or that change how other characters are shown. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x00, 0x1F},     /* These are the C0 control characters. */
    {0x7F, 0x9F},     /* These are DEL and the C1 control characters. */
    {0xAD, 0xAD},     /* U+00AD is the soft hyphen. */
    {0x61C, 0x61C},   /* U+061C is the Arabic letter mark. */
    {0x200B, 0x200F}, /* These are zero-width characters and direction marks. */
    {0x2028,
     /* These are line and paragraph separators, and bidirectional embeddings and overrides. */
     0x202E},
    {0x2060, 0x206F},   /* These are the word joiner and bidirectional isolates. */
    {0xFEFF, 0xFEFF},   /* U+FEFF is the byte order mark. */
    {0xFFF9, 0xFFFB},   /* These are interlinear annotation characters. */
    {0xE0000, 0xE007F}, /* U+E0000 to U+E007F are tag characters. */
};

static bool is_hidden(uint32_t code) {
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i].first && code <= hidden[i].last) return true;
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

char *cli_printable(char *text) {
    char *to = text;
    for (const char *from = text; *from;) {
        uint32_t code;
        size_t length = take((const unsigned char *)from, &code);
        if (length == 0 || is_hidden(code)) {
            *to++ = '?';
            from += length ? length : 1;
            continue;
        }
        memmove(to, from, length);
        to += length;
        from += length;
    }
    *to = '\0';
    return text;
}

bool cli_is_printable(const char *text) {
    uint32_t code;
    for (size_t length; *text; text += length) {
        length = take((const unsigned char *)text, &code);
        if (length == 0 || is_hidden(code)) return false;
    }
    return true;
}
