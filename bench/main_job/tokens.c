/* Splits plain English text into words. */
#include "job.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 100 }; /* LONGEST is the largest number of characters in a word. */

static char *read_file(const char *path) {
    size_t size = 0, room = 1 << 16;
    char *text = job_alloc(room + 1, 1);
    FILE *file = fopen(path, "rb");
    if (!file) job_fail("%s: cannot be opened", path);
    for (size_t got; (got = fread(text + size, 1, room - size, file)) > 0;) {
        size += got;
        if (size < room) continue;
        char *grown = realloc(text, 2 * room + 1);
        if (!grown) job_fail("no memory for %s", path);
        text = grown;
        room *= 2;
    }
    fclose(file);
    text[size] = '\0';
    return text;
}

/* Skips white space and copies the next word of `text` to `word`, in lower case. A word is a
 * sequence of at most LONGEST letters and digits, or any other single character. Returns the
 * address after the word, or NULL if `text` has no more words. */
static const char *next_word(const char *text, char word[LONGEST + 1]) {
    size_t length = 0;
    while (isspace((unsigned char)*text))
        text++;
    if (!*text) return NULL;
    do
        word[length++] = (char)tolower((unsigned char)*text++);
    while (isalnum((unsigned char)word[0]) && isalnum((unsigned char)*text) && length < LONGEST);
    word[length] = '\0';
    return text;
}

size_t job_hash_words(const char *text_path, int64_t below, int64_t *ids) {
    char word[LONGEST + 1], *text = read_file(text_path);
    size_t count = 0;
    for (const char *at = text; count < JOB_MAX_TOKENS && (at = next_word(at, word));) {
        uint64_t hash = 14695981039346656037u; /* The hash function is FNV-1a. */
        for (const char *c = word; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        ids[count++] = (int64_t)(hash % (uint64_t)below);
    }
    free(text);
    return count;
}
