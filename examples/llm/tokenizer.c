/* Implements a byte-level BPE tokenizer. It splits a text at special tokens and then into pieces
 * (pieces.c). Each byte of a piece is a token at first. Adjacent tokens are then merged in the
 * order of the file's list of merges, and equal pairs from left to right. */
#include "llm.h"

#include <stdlib.h>
#include <string.h>

void llm_ids_add(llm_ids *ids, int32_t id) {
    if (ids->count == ids->room) {
        ids->room = ids->room ? 2 * ids->room : 256;
        ids->at = realloc(ids->at, (size_t)ids->room * sizeof *ids->at);
        if (!ids->at) llm_fail("out of memory: %lld tokens", (long long)ids->room);
    }
    ids->at[ids->count++] = id;
}

/* Holds a token of a piece of text while the tokenizer merges adjacent tokens. */
typedef struct symbol {
    int32_t id; /* `id` is -1 if the token was merged into its left neighbor. */
    /* `before` and `after` are the indices of the neighbors, or -1 at the ends of the piece. */
    int32_t before, after;
} symbol;

/* Holds two adjacent tokens that may be merged. If one has changed since, the pair is ignored. The
 * upper bits of `order` are the rank of the merge, the lower bits the index of the left token. */
typedef struct candidate {
    uint64_t order;
    int32_t left_id, right_id;
} candidate;

/* Holds the tokens of a piece of text, and a heap of pairs to merge, lowest rank on top. */
typedef struct piece {
    const llm_tokenizer *t;
    symbol *symbols;
    candidate *heap;
    int32_t count, heap_count;
} piece;

static void push(piece *p, candidate c) {
    int32_t i = p->heap_count++;
    for (; i > 0 && c.order < p->heap[(i - 1) / 2].order; i = (i - 1) / 2)
        p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = c;
}

static candidate pop(piece *p) {
    candidate top = p->heap[0], moved = p->heap[--p->heap_count];
    int32_t i = 0;
    for (int32_t child; (child = 2 * i + 1) < p->heap_count; i = child) {
        child += child + 1 < p->heap_count && p->heap[child + 1].order < p->heap[child].order;
        if (moved.order < p->heap[child].order) break;
        p->heap[i] = p->heap[child];
    }
    p->heap[i] = moved;
    return top;
}

/* Adds the pair of symbol `left` and its right neighbor to the heap if it can be merged. */
static void consider(piece *p, int32_t left) {
    if (left < 0 || p->symbols[left].after < 0) return;
    int32_t left_id = p->symbols[left].id, right_id = p->symbols[p->symbols[left].after].id;
    const llm_merge *m = llm_merge_of(p->t, left_id, right_id);
    if (m) push(p, (candidate){(uint64_t)m->rank << 32 | (uint32_t)left, left_id, right_id});
}

static void merge_at(piece *p, const candidate *c) {
    const int32_t at = (int32_t)(c->order & INT32_MAX);
    symbol *left = &p->symbols[at];
    if (left->id != c->left_id || left->after < 0) return;
    symbol *right = &p->symbols[left->after];
    if (right->id != c->right_id) return;
    left->id = llm_merge_of(p->t, c->left_id, c->right_id)->id;
    left->after = right->after;
    right->id = -1;
    if (left->after >= 0) p->symbols[left->after].before = at;
    consider(p, left->before);
    consider(p, at);
}

/* Replaces each byte by its token. Adjacent bytes without a token share one unknown token. */
static void split_bytes(piece *p, const char *text, size_t bytes) {
    p->count = p->heap_count = 0;
    bool was_unknown = false;
    for (size_t i = 0; i < bytes; i++) {
        int32_t id = p->t->byte_ids[(uint8_t)text[i]];
        bool unknown = id < 0;
        if (unknown) id = p->t->unknown;
        if (id >= 0 && !(unknown && was_unknown)) {
            p->symbols[p->count] = (symbol){id, p->count - 1, p->count + 1};
            p->count++;
        }
        was_unknown = unknown;
    }
    if (p->count) p->symbols[p->count - 1].after = -1;
}

static void encode_piece(piece *p, const char *text, size_t bytes, llm_ids *ids) {
    split_bytes(p, text, bytes);
    for (int32_t i = 0; i < p->count; i++)
        consider(p, i);
    while (p->heap_count) {
        candidate c = pop(p);
        merge_at(p, &c);
    }
    for (int32_t i = 0; i < p->count; i++)
        if (p->symbols[i].id >= 0) llm_ids_add(ids, p->symbols[i].id);
}

/* Returns the longest special token at the start of a text, or -1 if there is none. */
static int32_t special_at(const llm_tokenizer *t, const char *text, size_t bytes) {
    int32_t best = -1;
    for (int64_t i = 0; i < t->special_count; i++) {
        const bsmm_value *name = &t->names[t->special[i]];
        if (name->text[0] == text[0] && name->count <= bytes &&
            memcmp(name->text, text, name->count) == 0 &&
            (best < 0 || name->count > t->names[best].count))
            best = t->special[i];
    }
    return best;
}

void llm_encode(const llm_tokenizer *t, const char *text, size_t bytes, llm_ids *ids) {
    if (bytes > INT32_MAX / 4) llm_fail("text: has %zu bytes; must have less than 2^29", bytes);
    /* The heap holds pairs of adjacent tokens, at first fewer than the piece has bytes. Each merge
       (fewer than bytes) adds at most two pairs. Three entries for each byte are thus enough. */
    piece p = {t, llm_alloc(bytes, sizeof *p.symbols), llm_alloc(bytes, 3 * sizeof *p.heap), 0, 0};
    size_t at = 0;
    while (at < bytes) {
        int32_t special = special_at(t, text + at, bytes - at);
        size_t end = at;
        if (special >= 0) {
            llm_ids_add(ids, special);
            at += t->names[special].count;
            continue;
        }
        while (end < bytes && special_at(t, text + end, bytes - end) < 0)
            end++;
        for (size_t length; at < end; at += length) {
            length = llm_first_piece(text + at, end - at);
            encode_piece(&p, text + at, length, ids);
        }
    }
    free(p.symbols);
    free(p.heap);
}

size_t llm_decode(const llm_tokenizer *t, int32_t id, char *to) {
    const bsmm_value *name = &t->names[id];
    size_t count = 0;
    for (uint64_t i = 0; i < name->count; i++) {
        uint32_t c = (uint8_t)name->text[i];
        bool two = (c & 0xE0) == 0xC0 && i + 1 < name->count;
        int32_t byte = llm_byte_of(two ? (c & 0x1F) << 6 | ((uint8_t)name->text[i + 1] & 0x3F) : c);
        i += two && byte >= 0;
        to[count++] = (char)(byte >= 0 ? (uint32_t)byte : c);
    }
    return count;
}
