/* Parses JSON as Python's json module writes it. In contrast to standard JSON, the text may contain
 * NaN, Infinity and -Infinity, repeated keys (the last one applies) and integers of any size. */
#include "io/json.h"

#include <jansson.h>
#include <stdbool.h>
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

/* Replaces the words NaN, Infinity and -Infinity by a 0 and blanks, except inside strings, because
 * the JSON library refuses these words. The other bytes keep their places, so that positions in
 * error messages stay right. */
static void replace_not_finite(char *text, size_t bytes) {
    bool in_string = false;
    for (size_t i = 0; i < bytes; i++) {
        size_t word = in_string ? 0 : not_finite(text + i, bytes - i);
        if (text[i] == '"') in_string = !in_string;
        /* A character after a backslash cannot end the string, so the loop skips it. */
        if (text[i] == '\\' && in_string) i++;
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
    replace_not_finite(copy, bytes);
    json_t *root = json_loadb(copy, bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (!root) snprintf(why, size, "byte %d: %.120s", error.position, error.text);
    free(copy);
    return root;
}
