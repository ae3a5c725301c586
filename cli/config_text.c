/* Finds, inserts, replaces and removes members of a model's config.json in the file's text, so that
 * all other bytes of the file stay as they are. */
#include "common.h"
#include "folder_config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Returns the end of the JSON string that begins at `at`. */
static const char *skip_string(const char *at) {
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

/* Returns the end of the JSON value that begins at `at`. */
static const char *skip_value(const char *at) {
    int depth = 0;
    while (*at) {
        if (*at == '"') {
            at = skip_string(at);
        } else {
            depth += *at == '{' || *at == '[';
            if (depth == 0 && strchr(",]}", *at)) return at;
            depth -= *at == '}' || *at == ']';
            at++;
        }
        if (depth == 0 && strchr("\"}]", at[-1])) return at;
    }
    return at;
}

/* Describes a member of a JSON object by its text, from the key to the end of the value, with the
 * comma before or after it. `value` points to its value, and `next` to the text after the value. */
typedef struct member {
    const char *begin, *end, *value, *next;
} member;

/* Finds the member `key` of the JSON object that begins at `at`. If there is no such member, both
 * pointers of the result point to the closing brace. Returns false if the text is not an object. */
static bool find_member(const char *at, const char *key, member *found) {
    const char *comma = NULL;
    if (*(at = skip_blanks(at)) != '{') return false;
    for (at = skip_blanks(at + 1); *at == '"';) {
        const char *begin = at, *name = at + 1;
        at = skip_string(at);
        const bool same =
            (size_t)(at - name) == strlen(key) + 1 && !strncmp(name, key, strlen(key));
        if (*(at = skip_blanks(at)) != ':') return false;
        const char *value = skip_blanks(at + 1), *next = skip_value(value);
        at = skip_blanks(next);
        const bool more = *at == ',';
        if (same) {
            *found = (member){comma ? comma : begin, comma ? at : at + more, value, next};
            return true;
        }
        comma = more ? at : NULL;
        at = more ? skip_blanks(at + 1) : at;
    }
    *found = (member){.begin = at, .end = at};
    return *at == '}';
}

/* Removes every member `key` from the text of a JSON object. A key may occur twice, and readers
 * take the last one. Returns false if the text is not an object. */
static bool remove_members(char *text, const char *key) {
    member found;
    while (find_member(text, key, &found)) {
        if (found.begin == found.end) return true;
        memmove(text + (found.begin - text), found.end, strlen(found.end) + 1);
    }
    return false;
}

char *cli_config_member(const char *text, const char *key) {
    char *rest = strcpy(cli_alloc(strlen(text) + 1, 1), text), *value = NULL;
    member found;
    while (find_member(rest, key, &found) && found.value) {
        free(value);
        value = cli_alloc((size_t)(found.next - found.value) + 1, 1);
        memcpy(value, found.value, (size_t)(found.next - found.value));
        memmove(rest + (found.begin - rest), found.end, strlen(found.end) + 1);
    }
    free(rest);
    return value;
}

char *cli_config_replace(const char *text, const char *key, const char *value) {
    char *rest = strcpy(cli_alloc(strlen(text) + 1, 1), text), *out = NULL;
    size_t size;
    FILE *stream = remove_members(rest, key) ? open_memstream(&out, &size) : NULL;
    if (stream) {
        /* The new member becomes the first member of the object, so that only a comma after it may
         * be needed. */
        const char *first = skip_blanks(rest) + 1;
        fprintf(stream, "%.*s", (int)(first - rest), rest);
        if (value) fprintf(stream, "\n  \"%s\": ", key);
        for (const char *at = value; at && *at; at++)
            fputs(*at == '\n' ? "\n  " : (char[]){*at, 0}, stream);
        if (value) fputs(*skip_blanks(first) != '}' ? "," : "\n", stream);
        fputs(first, stream);
    }
    free(rest);
    return stream && !fclose(stream) ? out : NULL;
}

/* Returns the length of the word NaN, Infinity or -Infinity at `at`, or 0 if there is no such
 * word. */
static size_t length_of_word(const char *at) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0) return strlen(words[i]);
    return 0;
}

char *cli_config_quote_words(const char *text) {
    /* Each word has at least three characters and gets two more. */
    char *quoted = cli_alloc(2 * strlen(text) + 1, 1), *to = quoted;
    while (*text) {
        const size_t word = length_of_word(text);
        const size_t bytes = word ? word : *text == '"' ? (size_t)(skip_string(text) - text) : 1;
        if (word) *to++ = '"';
        memcpy(to, text, bytes);
        to += bytes;
        text += bytes;
        if (word) *to++ = '"';
    }
    *to = '\0';
    return quoted;
}
