/* Splits plain English text into tokens by BERT's WordPiece. */
#include "job.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 100 }; /* largest number of characters in a word */

typedef struct entry {
    char *token;
    int64_t id;
} entry;

typedef struct vocabulary {
    char *text; /* content of the vocabulary file; each line ends with a NUL */
    entry *entries;
    size_t count;
} vocabulary;

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

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const entry *)a)->token, ((const entry *)b)->token);
}

static vocabulary read_vocabulary(const char *path) {
    vocabulary v = {.text = read_file(path)};
    size_t lines = 1;
    for (const char *c = v.text; *c; c++)
        lines += *c == '\n';
    v.entries = job_alloc(lines, sizeof *v.entries);
    char *rest = NULL;
    for (char *line = strtok_r(v.text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        v.entries[v.count] = (entry){line, (int64_t)v.count};
        v.count++;
    }
    qsort(v.entries, v.count, sizeof *v.entries, compare_entries);
    return v;
}

/* Returns the id of a token, or -1 if the vocabulary does not have it. */
static int64_t find_token(const vocabulary *v, const char *token) {
    entry key = {.token = (char *)token};
    const entry *found = bsearch(&key, v->entries, v->count, sizeof key, compare_entries);
    return found ? found->id : -1;
}

/* Finds the longest token that is a prefix of `rest`, the part of a word that has no token yet.
 * Returns its id and stores its length in *length. */
static int64_t longest_token(const vocabulary *v, const char *rest, bool first, size_t *length) {
    char token[LONGEST + 3];
    for (*length = strlen(rest); *length > 0; (*length)--) {
        snprintf(token, sizeof token, "%s%.*s", first ? "" : "##", (int)*length, rest);
        int64_t id = find_token(v, token);
        if (id >= 0) return id;
    }
    return -1;
}

/* Appends the tokens of a word to `ids`, or the token [UNK]. Returns the new number of tokens. */
static size_t add_word(const vocabulary *v, const char *word, int64_t *ids, size_t count) {
    size_t start = count, length = 0;
    for (const char *rest = word; *rest && count < JOB_MAX_TOKENS; rest += length) {
        int64_t id = longest_token(v, rest, rest == word, &length);
        if (id < 0) {
            ids[start] = find_token(v, "[UNK]");
            return start + 1;
        }
        ids[count++] = id;
    }
    return count;
}

/* Finds the next word (letters and digits) or punctuation mark, in lower case. Returns NULL at the
 * end of the text. */
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

size_t job_tokenize(const char *vocabulary_path, const char *text_path, int64_t *ids) {
    char word[LONGEST + 1], *text = read_file(text_path);
    vocabulary v = read_vocabulary(vocabulary_path);
    size_t count = 0;
    for (const char *at = text; count < JOB_MAX_TOKENS && (at = next_word(at, word));)
        count = add_word(&v, word, ids, count);
    if (find_token(&v, "[UNK]") < 0) job_fail("%s: has no [UNK]", vocabulary_path);
    free(v.entries);
    free(v.text);
    free(text);
    return count;
}

size_t job_hash_words(const char *text_path, int64_t below, int64_t *ids) {
    char word[LONGEST + 1], *text = read_file(text_path);
    size_t count = 0;
    for (const char *at = text; count < JOB_MAX_TOKENS && (at = next_word(at, word));) {
        uint64_t hash = 14695981039346656037u; /* hash function FNV-1a */
        for (const char *c = word; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        ids[count++] = (int64_t)(hash % (uint64_t)below);
    }
    free(text);
    return count;
}
