/* Parses JSON as Python's json module writes it. In contrast to standard JSON, the text may contain
 * NaN, Infinity and -Infinity, repeated keys (the last one applies), integers of any size, escapes
 * of half a surrogate pair, and a byte order mark at its beginning. Also writes JSON. */
#include "io/json.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the length of the word NaN, Infinity or -Infinity at this place in the text, or 0 if
 * there is none of these words. */
static size_t not_finite(const char *at, size_t left) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) <= left && memcmp(at, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    return 0;
}

/* Returns the kind of the escape \uXXXX that begins at `at`: 1 if it is the first half of a
 * surrogate pair (D800 to DBFF), 2 if it is the second half (DC00 to DFFF), and otherwise 0. */
static int half_of_pair(const char *at, size_t left) {
    if (left < 6 || at[0] != '\\' || at[1] != 'u' || (at[2] != 'd' && at[2] != 'D')) return 0;
    for (size_t i = 3; i < 6; i++)
        if (!isxdigit((unsigned char)at[i])) return 0;
    const int digit = tolower((unsigned char)at[3]);
    return digit >= 'c' ? 2 : digit >= '8' ? 1 : 0;
}

/* Handles the escape that begins at `at`. The JSON library refuses the escape of half a surrogate
 * pair, which Python writes if a string has half a pair. The function replaces such an escape by
 * that of U+FFFD. Returns the number of bytes that the caller must skip: 12 for the two escapes of
 * a whole pair, and otherwise 2 for the backslash and the character after it. */
static size_t replace_half_pair(char *at, size_t left) {
    const int half = half_of_pair(at, left);
    if (half == 1 && half_of_pair(at + 6, left - 6) == 2) return 12;
    for (size_t i = 0; half && i < 4; i++)
        at[2 + i] = "fffd"[i];
    return 2;
}

/* Replaces what the JSON library refuses: a byte order mark by blanks, the words NaN, Infinity and
 * -Infinity outside strings by a 0 and blanks, and half surrogate pairs in strings. The other bytes
 * keep their places, so that positions in error messages stay right. */
static void replace_refused(char *text, size_t bytes) {
    bool in_string = false;
    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) memset(text, ' ', 3);
    for (size_t i = 0; i < bytes; i++) {
        size_t word = in_string ? 0 : not_finite(text + i, bytes - i);
        if (text[i] == '"') in_string = !in_string;
        /* A character after a backslash cannot end the string, so the loop skips it. */
        if (text[i] == '\\' && in_string) i += replace_half_pair(text + i, bytes - i) - 1;
        if (word == 0) continue;
        memset(text + i, ' ', word);
        text[i] = '0';
        i += word - 1;
    }
}

json_t *bsmm_json_of_python(const char *text, size_t bytes, char *why, size_t size) {
    json_error_t error;
    char *copy = malloc(bytes + 1);
    if (!copy) {
        snprintf(why, size, "out of memory");
        return NULL;
    }
    memcpy(copy, text, bytes);
    replace_refused(copy, bytes);
    json_t *root = json_loadb(copy, bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (!root && bsmm_json_ran_out(&error))
        snprintf(why, size, "out of memory");
    else if (!root)
        snprintf(why, size, "byte %d: %.120s", error.position, error.text);
    free(copy);
    return root;
}

bool bsmm_json_ran_out(const json_error_t *error) {
    return !error->text[0];
}

/* json_dumps is not used: if an allocation fails while its text grows, it may leave out a key and
 * still report success. */
char *bsmm_json_text(const json_t *value) {
    const size_t size = json_dumpb(value, NULL, 0, JSON_COMPACT);
    char *text = size ? calloc(size + 1, 1) : NULL;
    if (!text || json_dumpb(value, text, size, JSON_COMPACT) == size) return text;
    free(text);
    return NULL;
}
