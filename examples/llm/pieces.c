/* Splits a text into pieces as SmolLM's tokenizer does. Each digit is a piece. Between digits, the
 * pieces are the matches of GPT-2's regular expression
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * The source is tokenizer.json of SmolLM2-135M-Instruct, with the pre-tokenizers Digits and
 * ByteLevel. */
#include "llm.h"
#include "unicode.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 0x110000 };
static uint8_t kinds[POINTS];
static pthread_once_t kinds_once = PTHREAD_ONCE_INIT;

/* In unicode_runs each kind of characters has ten digits. A kind's value here is its digit 0. */
enum { END = 0, LETTER = 'a', NUMBER = 'A', SPACE = 'K', OTHER = '0' };

/* Returns the kind of character that a digit of unicode_runs stands for. */
static int kind_of(char digit) {
    return digit >= LETTER ? LETTER : digit >= SPACE ? SPACE : digit >= NUMBER ? NUMBER : OTHER;
}

static void fill_kinds(void) {
    uint8_t *to = kinds;
    for (size_t i = 0; i < sizeof unicode_runs / sizeof unicode_runs[0]; i++)
        for (const char *at = unicode_runs[i]; *at;) {
            const int kind = kind_of(*at);
            size_t count = 0;
            for (; *at && kind_of(*at) == kind; at++)
                count = 10 * count + (size_t)(*at - kind);
            to = (uint8_t *)memset(to, kind, count) + count;
        }
}

/* Describes a character of a text. A byte that is not valid UTF-8 is a character of kind OTHER. */
typedef struct character {
    int kind; /* `kind` is END after the end of the text. */
    size_t bytes;
} character;

/* Decodes the character at the start of a text. Returns its code point, or -1 if the bytes are not
 * UTF-8. */
static int32_t decode(const uint8_t *text, size_t bytes, size_t *length) {
    static const struct {
        uint8_t mask, mark;
        int32_t least;
    } forms[] = {{0x80, 0, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    for (size_t extra = 0; extra < 4; extra++) {
        if ((text[0] & forms[extra].mask) != forms[extra].mark || extra >= bytes) continue;
        int32_t point = text[0] & ~forms[extra].mask & 0xFF;
        for (size_t i = 1; i <= extra; i++) {
            if ((text[i] & 0xC0) != 0x80) return -1;
            point = point << 6 | (text[i] & 0x3F);
        }
        *length = extra + 1;
        return point >= forms[extra].least && point < POINTS ? point : -1;
    }
    return -1;
}

static character character_at(const char *text, size_t bytes, size_t at) {
    if (at >= bytes) return (character){END, 0};
    size_t length = 1;
    int32_t point = decode((const uint8_t *)text + at, bytes - at, &length);
    return point < 0 ? (character){OTHER, 1} : (character){kinds[point], length};
}

/* Returns the end of a run of characters of one kind that begins at `at`. *last receives the start
 * of the run's last character. */
static size_t run_end(const char *text, size_t bytes, size_t at, int kind, size_t *last) {
    for (character c; (c = character_at(text, bytes, at)).kind == kind; at += c.bytes)
        *last = at;
    return at;
}

static size_t contraction_length(const char *text, size_t bytes) {
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t length = strlen(endings[i]);
        if (bytes >= length && memcmp(text, endings[i], length) == 0) return length;
    }
    return 0;
}

size_t llm_first_piece(const char *text, size_t bytes) {
    pthread_once(&kinds_once, fill_kinds);
    character first = character_at(text, bytes, 0);
    if (first.kind == NUMBER) return first.bytes;
    size_t length = contraction_length(text, bytes), last = 0;
    if (length) return length;
    size_t start = text[0] == ' ';
    int kind = character_at(text, bytes, start).kind;
    if (kind == LETTER || kind == OTHER) return run_end(text, bytes, start, kind, &last);
    /* The last space before a word is in the word's piece. Spaces before a digit are one piece. */
    size_t end = run_end(text, bytes, 0, SPACE, &last);
    int next = character_at(text, bytes, end).kind;
    return next == END || next == NUMBER || last == 0 ? end : last;
}
