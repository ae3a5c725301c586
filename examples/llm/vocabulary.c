/* Reads the vocabulary of a byte-level BPE tokenizer from the metadata of a GGUF file. */
#include "llm.h"

#include <stdlib.h>
#include <string.h>

/* These are values of tokenizer.ggml.token_type in the GGUF file. */
enum { CONTROL_TOKEN = 3, USER_TOKEN = 4 };

static uint32_t character_of(uint32_t byte) {
    uint32_t moved = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool stays = (b > 32 && b < 127) || (b > 160 && b != 173);
        if (b == byte) return stays ? b : moved;
        moved += !stays;
    }
    return 0;
}

int32_t llm_byte_of(uint32_t point) {
    for (uint32_t b = 0; b < 256; b++)
        if (character_of(b) == point) return (int32_t)b;
    return -1;
}

/* Writes character_of(byte) in UTF-8 and returns its number of bytes. */
static size_t spell(uint32_t byte, char *to) {
    uint32_t c = character_of(byte);
    if (c < 128) return (size_t)(to[0] = (char)c, 1);
    to[0] = (char)(0xC0 | c >> 6);
    to[1] = (char)(0x80 | (c & 0x3F));
    return 2;
}

static size_t hash(const void *data, size_t bytes) {
    const uint8_t *at = data;
    uint64_t h = 14695981039346656037u; /* The hash function is FNV-1a. */
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ at[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 29);
}

/* Returns the hash table slot of a token's name, or a free slot if the table lacks the name. */
static int32_t *slot_of(const llm_tokenizer *t, const char *name, size_t bytes) {
    size_t i = hash(name, bytes) & (t->slots - 1);
    while (t->ids[i] >= 0 && (t->names[t->ids[i]].count != bytes ||
                              memcmp(t->names[t->ids[i]].text, name, bytes) != 0))
        i = (i + 1) & (t->slots - 1);
    return &t->ids[i];
}

/* Returns the hash table slot of a pair's merge, or a free slot if the table lacks the pair. */
static llm_merge *slot_of_pair(const llm_tokenizer *t, int32_t left, int32_t right) {
    const int32_t pair[2] = {left, right};
    size_t i = hash(pair, sizeof pair) & (t->slots - 1);
    while (t->merges[i].id >= 0 && memcmp(t->merges[i].pair, pair, sizeof pair) != 0)
        i = (i + 1) & (t->slots - 1);
    return &t->merges[i];
}

const llm_merge *llm_merge_of(const llm_tokenizer *t, int32_t left, int32_t right) {
    const llm_merge *found = slot_of_pair(t, left, right);
    return found->id < 0 ? NULL : found;
}

static bsmm_value *items_of(const bsmm_file *file, const char *key, uint32_t type, int64_t *count) {
    bsmm_value array = BSMM_INIT(bsmm_value);
    llm_check(bsmm_file_value(file, key, &array), key);
    if (array.type != BSMM_VALUE_ARRAY || array.item_type != type || array.count > INT32_MAX / 4)
        llm_fail("%s: has another type", key);
    bsmm_value *items = llm_alloc(array.count + 1, sizeof *items);
    items[0].struct_size = sizeof *items;
    llm_check(bsmm_file_value_items(file, key, 0, array.count, items), key);
    *count = (int64_t)array.count;
    return items;
}

static int32_t token_of(const bsmm_file *file, const llm_tokenizer *t, const char *key) {
    bsmm_value id = BSMM_INIT(bsmm_value);
    if (bsmm_file_value(file, key, &id) != BSMM_OK) return -1;
    if (id.type != BSMM_VALUE_UNSIGNED || id.natural >= (uint64_t)t->count)
        llm_fail("%s: is no token", key);
    return (int32_t)id.natural;
}

static void read_merges(llm_tokenizer *t, const bsmm_value *lines, int64_t count) {
    char joined[1024];
    for (int64_t rank = 0; rank < count; rank++) {
        const bsmm_value *line = &lines[rank];
        const char *space = memchr(line->text, ' ', line->count);
        size_t left = space ? (size_t)(space - line->text) : 0;
        if (!space || line->count > sizeof joined)
            llm_fail("merge %lld: is no pair", (long long)rank);
        size_t right = line->count - left - 1;
        memcpy(joined, line->text, left);
        memcpy(joined + left, space + 1, right);
        int32_t id = *slot_of(t, joined, left + right), l = *slot_of(t, joined, left),
                r = *slot_of(t, space + 1, right);
        if (id < 0 || l < 0 || r < 0) llm_fail("merge %lld: is of no tokens", (long long)rank);
        *slot_of_pair(t, l, r) = (llm_merge){{l, r}, (int32_t)rank, id};
    }
}

static void read_special(llm_tokenizer *t, const bsmm_value *types, int64_t count) {
    t->special = llm_alloc((size_t)t->count, sizeof *t->special);
    for (int64_t i = 0; i < count && i < t->count; i++)
        if (t->names[i].count &&
            (types[i].integer == CONTROL_TOKEN || types[i].integer == USER_TOKEN))
            t->special[t->special_count++] = (int32_t)i;
}

llm_tokenizer *llm_tokenizer_create(const bsmm_file *file) {
    llm_tokenizer *t = llm_alloc(1, sizeof *t);
    int64_t merges, types;
    char spelled[2];
    t->names = items_of(file, "tokenizer.ggml.tokens", BSMM_VALUE_STRING, &t->count);
    bsmm_value *lines = items_of(file, "tokenizer.ggml.merges", BSMM_VALUE_STRING, &merges);
    bsmm_value *kinds = items_of(file, "tokenizer.ggml.token_type", BSMM_VALUE_INTEGER, &types);
    for (t->slots = 64; t->slots < 2 * (size_t)(t->count + merges);)
        t->slots *= 2;
    t->ids = llm_alloc(t->slots, sizeof *t->ids);
    t->merges = llm_alloc(t->slots, sizeof *t->merges);
    memset(t->ids, 0xFF, t->slots * sizeof *t->ids);
    memset(t->merges, 0xFF, t->slots * sizeof *t->merges);
    for (int64_t i = 0; i < t->count; i++) {
        int32_t *slot = slot_of(t, t->names[i].text, t->names[i].count);
        if (*slot < 0) *slot = (int32_t)i;
    }
    for (uint32_t b = 0; b < 256; b++)
        t->byte_ids[b] = *slot_of(t, spelled, spell(b, spelled));
    read_merges(t, lines, merges);
    read_special(t, kinds, types);
    t->unknown = token_of(file, t, "tokenizer.ggml.unknown_token_id");
    t->end = token_of(file, t, "tokenizer.ggml.eos_token_id");
    free(lines);
    free(kinds);
    return t;
}

void llm_tokenizer_destroy(llm_tokenizer *t) {
    free(t->names);
    free(t->ids);
    free(t->merges);
    free(t->special);
    free(t);
}
