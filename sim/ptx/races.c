/* Finds data races on shared memory by vector clocks (Flanagan and Freund, FastTrack, 2009). A warp
 * counts its signals to other warps, and knows the counts of the other warps of which it has got a
 * signal. An access happened before the warp's next one if the warp knows a count of the other warp
 * that is at least the count at the access.
 *
 * For each byte of shared memory, the last write that changed it and the last read since then are
 * kept. Of several readers, only the last one is compared with a later write. */
#include "races.h"
#include <stdlib.h>
#include <string.h>

/* An access: the number of the warp in the cluster plus 1, and its count. 0: there was none. */
typedef uint32_t access;
enum { COUNT_BITS = 22, MOST_BYTES = 32 };
#define MOST_COUNT ((1u << COUNT_BITS) - 1)

typedef struct {
    uint64_t key;
    uint32_t *counts;
} sync_object;

/* A write that has not happened yet, and the bytes before it. */
typedef struct {
    const ptx_inst *inst;
    ptx_block *block;
    uint32_t offset, bytes, lane;
    uint8_t before[MOST_BYTES];
} pending_write;

struct ptx_races {
    uint32_t warps;   /* of the cluster */
    uint32_t bytes;   /* of shared memory of a block */
    uint32_t *counts; /* [warp][warp]: what the first warp knows of the second one */
    access *writes, *reads;
    sync_object *objects;
    uint32_t object_count, object_room;
    pending_write *pending;
    uint32_t pending_count, pending_room;
    bool off; /* a count is too large, or there is no memory */
};

static uint32_t number_of(const ptx_warp *w) {
    return w->block->rank * w->block->warp_count + w->id;
}

void ptx_races_free(ptx_cluster *c) {
    struct ptx_races *r = c->races;
    if (!r) return;
    for (uint32_t k = 0; k < r->object_count; k++)
        free(r->objects[k].counts);
    free(r->counts), free(r->writes), free(r->reads), free(r->objects), free(r->pending), free(r);
    c->races = NULL;
}

static bool make(ptx_cluster *c) {
    struct ptx_races *r = c->races = calloc(1, sizeof *r);
    if (!r) return false;
    r->warps = c->size * c->blocks[0].warp_count, r->bytes = c->blocks[0].shared_bytes;
    const size_t bytes = (size_t)c->size * r->bytes;
    r->counts = calloc((size_t)r->warps * r->warps, sizeof *r->counts);
    r->writes = calloc(bytes + 1, sizeof *r->writes);
    r->reads = calloc(bytes + 1, sizeof *r->reads);
    return r->counts && r->writes && r->reads;
}

bool ptx_races_begin(ptx_cluster *c) {
    if (!(c->blocks[0].launch->checks & CHECK_RACES)) return true;
    if (!c->races && !make(c)) return false;
    struct ptx_races *r = c->races;
    const size_t bytes = (size_t)c->size * r->bytes;
    memset(r->counts, 0, (size_t)r->warps * r->warps * sizeof *r->counts);
    memset(r->writes, 0, bytes * sizeof *r->writes);
    memset(r->reads, 0, bytes * sizeof *r->reads);
    for (uint32_t k = 0; k < r->object_count; k++)
        free(r->objects[k].counts);
    r->object_count = r->pending_count = 0;
    r->off = false;
    for (uint32_t n = 0; n < r->warps; n++)
        r->counts[n * r->warps + n] = 1;
    return true;
}

/* ---- signals ---- */

static sync_object *object_of(struct ptx_races *r, enum ptx_sync kind, uint64_t number) {
    const uint64_t key = (uint64_t)kind << 56 | number;
    for (uint32_t k = 0; k < r->object_count; k++)
        if (r->objects[k].key == key) return &r->objects[k];
    if (r->object_count == r->object_room) {
        const uint32_t room = r->object_room ? 2 * r->object_room : 32;
        sync_object *more = realloc(r->objects, room * sizeof *more);
        if (!more) return NULL;
        r->objects = more, r->object_room = room;
    }
    uint32_t *counts = calloc(r->warps, sizeof *counts);
    if (!counts) return NULL;
    r->objects[r->object_count] = (sync_object){key, counts};
    return &r->objects[r->object_count++];
}

static void learn(uint32_t *counts, const uint32_t *from, uint32_t warps) {
    for (uint32_t n = 0; n < warps; n++)
        counts[n] = counts[n] > from[n] ? counts[n] : from[n];
}

void ptx_race_release(ptx_warp *w, enum ptx_sync kind, uint64_t number) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || r->off) return;
    uint32_t *counts = r->counts + (size_t)number_of(w) * r->warps;
    const sync_object *o = object_of(r, kind, number);
    if (o) learn(o->counts, counts, r->warps);
    r->off = !o || ++counts[number_of(w)] == MOST_COUNT;
}

void ptx_race_acquire(ptx_warp *w, enum ptx_sync kind, uint64_t number) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || r->off) return;
    const sync_object *o = object_of(r, kind, number);
    if (o) learn(r->counts + (size_t)number_of(w) * r->warps, o->counts, r->warps);
    r->off = !o;
}

/* ---- accesses ---- */

static access now(const struct ptx_races *r, const ptx_warp *w) {
    const uint32_t n = number_of(w);
    return (n + 1) << COUNT_BITS | r->counts[(size_t)n * r->warps + n];
}

/* Says whether an earlier access may happen at the same time as the warp's next one. */
static bool unordered(const struct ptx_races *r, const ptx_warp *w, access earlier) {
    const uint32_t other = (earlier >> COUNT_BITS) - 1, n = number_of(w);
    if (earlier == 0 || other == n) return false;
    return r->counts[(size_t)n * r->warps + other] < (earlier & MOST_COUNT);
}

static void report(ptx_warp *w, const ptx_inst *i, const ptx_block *b, uint32_t offset,
                   uint32_t lane, const char *does, const char *did, access earlier) {
    const uint32_t other = (earlier >> COUNT_BITS) - 1, warps = b->warp_count;
    ptx_stop(w, i,
             "lane %u %s shared memory 0x%x, which warp %u of block rank %u %s, and no barrier "
             "orders the two",
             lane, does, offset, other % warps, other / warps, did);
}

static bool is_sync(const ptx_inst *i) {
    const char *text = i->opcode->text;
    return strncmp(text, "atom", 4) == 0 || strncmp(text, "red.", 4) == 0 ||
           ptx_has(i->opcode, "volatile") || ptx_has(i->opcode, "relaxed") ||
           ptx_has(i->opcode, "acquire") || ptx_has(i->opcode, "release");
}

static void keep_write(struct ptx_races *r, const pending_write *p) {
    if (r->pending_count == r->pending_room) {
        const uint32_t room = r->pending_room ? 2 * r->pending_room : 64;
        pending_write *more = realloc(r->pending, room * sizeof *more);
        if (!more) {
            r->off = true;
            return;
        }
        r->pending = more, r->pending_room = room;
    }
    pending_write *to = &r->pending[r->pending_count++];
    *to = *p;
    memcpy(to->before, p->block->shared + p->offset, p->bytes);
}

void ptx_race_access(ptx_warp *w, const ptx_inst *i, ptx_block *b, uint32_t offset, uint32_t bytes,
                     bool write, uint32_t lane) {
    struct ptx_races *r = b->cluster->races;
    if (!r || r->off || bytes > MOST_BYTES) return;
    const size_t first = (size_t)b->rank * r->bytes + offset;
    if (is_sync(i)) {
        const uint64_t address = (uint64_t)b->rank << RANK_SHIFT | offset;
        ptx_race_acquire(w, SYNC_ADDRESS, address);
        ptx_race_release(w, SYNC_ADDRESS, address);
        return;
    }
    if (write) {
        keep_write(r, &(pending_write){
                          .inst = i, .block = b, .offset = offset, .bytes = bytes, .lane = lane});
        return;
    }
    const access mine = now(r, w);
    for (size_t k = first; k < first + bytes; k++) {
        if (unordered(r, w, r->writes[k])) {
            report(w, i, b, (uint32_t)(k - first) + offset, lane, "reads", "has written",
                   r->writes[k]);
            return;
        }
        r->reads[k] = mine;
    }
}

static void settle(struct ptx_races *r, ptx_warp *w, const pending_write *p) {
    const uint8_t *after = p->block->shared + p->offset;
    const size_t first = (size_t)p->block->rank * r->bytes + p->offset;
    const access mine = now(r, w);
    for (uint32_t k = 0; k < p->bytes; k++) {
        if (after[k] == p->before[k]) continue;
        access *const wrote = &r->writes[first + k], *const read = &r->reads[first + k];
        if (unordered(r, w, *wrote) || unordered(r, w, *read)) {
            const bool by_write = unordered(r, w, *wrote);
            report(w, p->inst, p->block, p->offset + k, p->lane, "writes",
                   by_write ? "has written" : "has read", by_write ? *wrote : *read);
            return;
        }
        *wrote = mine, *read = 0;
    }
}

void ptx_races_settle(ptx_warp *w) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || !r->pending_count) return;
    const uint32_t count = r->pending_count;
    r->pending_count = 0;
    for (uint32_t k = 0; k < count && w->stop != STOP_ERROR && !r->off; k++)
        settle(r, w, &r->pending[k]);
}
