/* Models a fully associative cache that replaces the least recently used line. The model has no
 * sets, because the hash by which hardware chooses the set of a line is not public. Without sets,
 * the times also do not depend on the addresses of the operands. */
#include "cache.h"
#include <stdlib.h>

/* The entries form a circular list in the order of their last use, and entry 0 is its head.
 * entries[0].older is the most recently used entry, and entries[0].newer is the least recently used
 * one. */
typedef struct {
    /* `chain` is the index of the next cache entry with the same hash, or 0. */
    uint32_t line, newer, older, chain;
    sim_cache_line kept;
} entry;

struct sim_cache {
    entry *entries;
    /* `heads` holds for each hash the index of the first entry of its chain, or 0. */
    uint32_t *heads;
    uint32_t room, used, bits;
};

static uint32_t hash(const sim_cache *c, uint32_t line) {
    return line * 2654435769u >> (32 - c->bits);
}

sim_cache *sim_cache_new(uint32_t lines) {
    sim_cache *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->room = lines ? lines : 1, c->bits = 4;
    while (1u << c->bits < c->room)
        c->bits++;
    c->entries = calloc(c->room + 1u, sizeof *c->entries);
    c->heads = calloc(1u << c->bits, sizeof *c->heads);
    if (c->entries && c->heads) return c;
    sim_cache_free(c);
    return NULL;
}

void sim_cache_free(sim_cache *c) {
    if (c) free(c->entries), free(c->heads);
    free(c);
}

static void unlink_entry(sim_cache *c, uint32_t n) {
    c->entries[c->entries[n].newer].older = c->entries[n].older;
    c->entries[c->entries[n].older].newer = c->entries[n].newer;
}

static void make_newest(sim_cache *c, uint32_t n) {
    entry *head = c->entries;
    head[n].newer = 0, head[n].older = head->older;
    head[head->older].newer = n, head->older = n;
}

static void leave_chain(sim_cache *c, uint32_t n) {
    uint32_t *link = &c->heads[hash(c, c->entries[n].line)];
    while (*link != n)
        link = &c->entries[*link].chain;
    *link = c->entries[n].chain;
}

sim_cache_line *sim_cache_find(sim_cache *c, uint32_t line, bool *hit) {
    uint32_t *head = &c->heads[hash(c, line)], n = *head;
    while (n && c->entries[n].line != line)
        n = c->entries[n].chain;
    *hit = n != 0;
    if (n) {
        unlink_entry(c, n);
    } else {
        if (c->used == c->room) {
            n = c->entries[0].newer; /* This is the least recently used entry, so it is replaced. */
            leave_chain(c, n), unlink_entry(c, n);
        } else {
            n = ++c->used;
        }
        c->entries[n].kept = (sim_cache_line){0}, c->entries[n].line = line,
        c->entries[n].chain = *head, *head = n;
    }
    make_newest(c, n);
    return &c->entries[n].kept;
}
