/* Finds data races on shared memory by vector clocks (Flanagan and Freund, FastTrack, 2009).
 *
 * Each warp has a counter. The counter grows when the warp signals other warps, executes a fence or
 * issues an asynchronous operation. The clock of a warp is an array with an entry for every warp of
 * the cluster. Entry v of warp w's clock is the largest value of warp v's counter of which w has
 * learned by signals. The simulator records each access to shared memory with the counter that the
 * accessing warp had. A recorded access of warp v happened before the current access of warp w if
 * entry v of w's clock is at least the recorded counter. Otherwise the two accesses are not
 * ordered, and if one of them writes, there is a race. A clock has a second half of entries: for
 * each warp, the counter up to which a fence.proxy.async has made the warp's writes visible to the
 * async proxy.
 *
 * An asynchronous operation has a clock of its own, which begins as a copy of the clock of the warp
 * that issues the operation. Its accesses are recorded with the number and the counter of an engine
 * instead of a warp. An engine is a group of operations with a common counter. Operations are
 * assigned to several engines in turn. If there were only one engine, a wait for one operation
 * would count as a wait for all earlier operations. The wgmma operations of a warpgroup have an
 * engine of their own, because the four warps issue and complete them together.
 *
 * For each byte of shared memory, the simulator keeps the last write that changed the byte, and the
 * last read since that write. If several warps read the byte, only the last read is compared with a
 * later write. */
#include "races.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Describes an access to a byte. The upper bits are 1 plus the number of the warp that made the
 * access, or of an engine (a group of asynchronous operations with a common counter). The lower
 * COUNT_BITS bits are the counter of this warp or engine at the access. 0 means that there was no
 * access. */
typedef uint32_t access;
enum { COUNT_BITS = 22, MOST_BYTES = 32, ENGINES = 16 };
#define MOST_COUNT ((1u << COUNT_BITS) - 1)

typedef struct {
    uint64_t key;
    uint32_t *counts;
} sync_object;

/* Describes a write of the current instruction. The struct holds the bytes that shared memory had
 * before the write. They show later whether the write has changed them. */
typedef struct {
    const ptx_inst *inst;
    ptx_block *block;
    uint32_t offset, bytes, lane;
    uint8_t before[MOST_BYTES];
} pending_write;

struct ptx_races {
    uint32_t warps; /* `warps` is the number of warps in the cluster. */
    uint32_t bytes; /* `bytes` is the number of bytes of shared memory of a block. */
    /* An engine is a group of asynchronous operations with a common counter. `all` is the number of
     * warps and engines. Warps have the first numbers, and engines have the numbers after the last
     * warp. `width` is the number of entries of a vector clock. Its first `all` entries are the
     * counters that the clock's owner has learned. The next `all` entries are the counters up to
     * which writes are visible to the async proxy. Devices without an async proxy have no engines,
     * and their clocks lack the second half. */
    uint32_t all, width;
    uint32_t *counts; /* `counts` holds the clocks of the warps as [warp][width]. */
    /* `jobs` holds the vector clock of each asynchronous operation that is not complete. After each
     * clock follows the number of the engine (a group of asynchronous operations with a common
     * counter) to which the operation belongs. `free_jobs` lists the unused entries of `jobs`. */
    uint32_t *jobs, *free_jobs, job_room, free_count;
    /* The race detector divides asynchronous operations among engines; the operations of an engine
     * share a counter. issues[e] is the number of operations that engine e has received so far.
     * `issued` is the number of operations of all engines together, not counting wgmma. */
    uint32_t issued, *issues;
    /* done[warp * ENGINES + e] is the counter of the last tcgen05 operation of engine e that `warp`
     * has issued and that is complete. An engine is a group of asynchronous operations that share a
     * counter. If another warp waits for a later tcgen05.commit of `warp`, all these operations
     * come before whatever that warp does next. These counters therefore enter its vector clock. */
    uint32_t *done;
    /* `running` points to the clock (the vector of counters) of the asynchronous operation that
     * runs now, or NULL. */
    uint32_t *running;
    access *writes, *reads;
    sync_object *objects;
    uint32_t object_count, object_room;
    pending_write *pending;
    uint32_t pending_count, pending_room;
    /* `off` is true if the counter of a warp or an engine no longer fits in its field, or if memory
     * has run out. The race detector then records nothing more. */
    bool off;
};

static uint32_t number_of(const ptx_warp *w) {
    return w->block->rank * w->block->warp_count + w->id;
}

void ptx_races_free(ptx_cluster *c) {
    struct ptx_races *r = c->races;
    if (!r) return;
    for (uint32_t k = 0; k < r->object_count; k++)
        free(r->objects[k].counts);
    free(r->counts), free(r->writes), free(r->reads), free(r->objects), free(r->pending);
    free(r->jobs), free(r->free_jobs), free(r->issues), free(r->done), free(r);
    c->races = NULL;
}

/* Asynchronous operations are counted in groups, and each group with its counter is called an
 * engine. The wgmma operations of a warpgroup have an engine of their own. Returns the number of
 * this engine for the warpgroup of warp number `warp` of the cluster. */
static uint32_t products_engine(const struct ptx_races *r, uint32_t warp) {
    return r->warps + ENGINES + warp / 4;
}

static bool make(ptx_cluster *c) {
    struct ptx_races *r = c->races = calloc(1, sizeof *r);
    if (!r) return false;
    const bool engines = c->blocks[0].launch->capability >= 90;
    r->warps = c->size * c->blocks[0].warp_count, r->bytes = c->blocks[0].shared_bytes;
    r->all = engines ? products_engine(r, r->warps + 3) : r->warps;
    r->width = engines ? 2 * r->all : r->all;
    const size_t bytes = (size_t)c->size * r->bytes;
    r->counts = calloc((size_t)r->warps * r->width, sizeof *r->counts);
    r->issues = calloc(r->all, sizeof *r->issues);
    r->done = calloc((size_t)r->warps * ENGINES, sizeof *r->done);
    r->writes = calloc(bytes + 1, sizeof *r->writes);
    r->reads = calloc(bytes + 1, sizeof *r->reads);
    return r->counts && r->issues && r->done && r->writes && r->reads;
}

bool ptx_races_begin(ptx_cluster *c) {
    if (!(c->blocks[0].launch->checks & CHECK_RACES)) return true;
    if (!c->races && !make(c)) return false;
    struct ptx_races *r = c->races;
    const size_t bytes = (size_t)c->size * r->bytes;
    memset(r->counts, 0, (size_t)r->warps * r->width * sizeof *r->counts);
    memset(r->issues, 0, r->all * sizeof *r->issues);
    memset(r->done, 0, (size_t)r->warps * ENGINES * sizeof *r->done);
    memset(r->writes, 0, bytes * sizeof *r->writes);
    memset(r->reads, 0, bytes * sizeof *r->reads);
    for (uint32_t k = 0; k < r->object_count; k++)
        free(r->objects[k].counts);
    r->object_count = r->pending_count = r->issued = 0;
    r->off = false, r->running = NULL;
    for (r->free_count = 0; r->free_count < r->job_room; r->free_count++)
        r->free_jobs[r->free_count] = r->job_room - 1 - r->free_count;
    for (uint32_t n = 0; n < r->warps; n++)
        r->counts[n * r->width + n] = 1;
    return true;
}

/* The functions from here on record signals between warps. */

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
    uint32_t *counts = calloc(r->width, sizeof *counts);
    if (!counts) return NULL;
    r->objects[r->object_count] = (sync_object){key, counts};
    return &r->objects[r->object_count++];
}

static void learn(uint32_t *counts, const uint32_t *from, uint32_t width) {
    for (uint32_t n = 0; n < width; n++)
        counts[n] = counts[n] > from[n] ? counts[n] : from[n];
}

static uint32_t *clock_of(struct ptx_races *r, const ptx_warp *w) {
    return r->counts + (size_t)number_of(w) * r->width;
}

/* Increments a warp's own counter. Accesses that the warp makes later thereby get a higher counter
 * than those that it made before. If another warp waits for the earlier accesses, it learns only
 * the lower counter, so the later accesses may still race with it. */
static void count_up(struct ptx_races *r, const ptx_warp *w) {
    r->off |= ++clock_of(r, w)[number_of(w)] == MOST_COUNT;
}

void ptx_race_release(ptx_warp *w, enum ptx_sync kind, uint64_t number) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || r->off) return;
    const sync_object *o = object_of(r, kind, number);
    r->off = !o;
    if (o) learn(o->counts, r->running ? r->running : clock_of(r, w), r->width);
    if (!r->running) count_up(r, w);
}

void ptx_race_acquire(ptx_warp *w, enum ptx_sync kind, uint64_t number) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || r->off) return;
    const sync_object *o = object_of(r, kind, number);
    if (o) learn(clock_of(r, w), o->counts, r->width);
    r->off = !o;
}

void ptx_race_fence(ptx_warp *w) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || r->off || r->width == r->all) return;
    learn(clock_of(r, w) + r->all, clock_of(r, w), r->all);
    count_up(r, w);
}

/* The functions from here on record asynchronous operations. */

/* Returns the clock (the vector of counters) of asynchronous operation number `job`, which is not
 * 0. */
static uint32_t *clock_of_job(const struct ptx_races *r, uint32_t job) {
    return r->jobs + (size_t)(job - 1) * (r->width + 1);
}

static bool more_jobs(struct ptx_races *r) {
    const uint32_t room = r->job_room ? 2 * r->job_room : 64;
    uint32_t *jobs = realloc(r->jobs, (size_t)room * (r->width + 1) * sizeof *jobs);
    if (jobs) r->jobs = jobs;
    uint32_t *numbers = realloc(r->free_jobs, room * sizeof *numbers);
    if (numbers) r->free_jobs = numbers;
    if (!jobs || !numbers) return false;
    while (r->job_room < room)
        r->free_jobs[r->free_count++] = r->job_room++;
    return true;
}

uint32_t ptx_race_issue(ptx_warp *w, bool product) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || r->off || r->width == r->all) return 0;
    r->off = !r->free_count && !more_jobs(r);
    if (r->off) return 0;
    const uint32_t job = r->free_jobs[--r->free_count] + 1;
    uint32_t *clock = clock_of_job(r, job);
    const uint32_t engine =
        product ? products_engine(r, number_of(w)) : r->warps + r->issued++ % ENGINES;
    memcpy(clock, clock_of(r, w), r->width * sizeof *clock);
    clock[r->width] = engine;
    clock[engine] = product ? ++w->products_issued : ++r->issues[engine];
    r->off = clock[engine] == MOST_COUNT;
    count_up(r, w);
    return job;
}

void ptx_race_start(ptx_warp *w, uint32_t job, bool after_products) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || !job) return;
    r->running = clock_of_job(r, job);
    if (after_products)
        learn(r->running + r->warps, r->done + (size_t)number_of(w) * ENGINES, ENGINES);
}

void ptx_race_finish(ptx_warp *w, uint32_t job, enum ptx_end end) {
    struct ptx_races *r = w->block->cluster->races;
    if (!r || !job) return;
    const uint32_t *clock = clock_of_job(r, job), engine = clock[r->width];
    uint32_t *to = end == END_KNOWN     ? &clock_of(r, w)[engine]
                   : end == END_ORDERED ? &r->done[number_of(w) * ENGINES + engine - r->warps]
                                        : NULL;
    if (to && *to < clock[engine]) *to = clock[engine];
    r->free_jobs[r->free_count++] = job - 1;
    r->running = NULL;
}

/* The functions from here on record and check accesses to shared memory. */

static access now(const struct ptx_races *r, const ptx_warp *w) {
    const uint32_t n = number_of(w);
    return (n + 1) << COUNT_BITS | r->counts[(size_t)n * r->width + n];
}

/* Returns true if the earlier access is not ordered before the current access. `clock` is the clock
 * of the current access, and `self` is the number of the warp or engine that makes it. */
static bool concurrent(const uint32_t *clock, uint32_t self, access earlier) {
    const uint32_t other = (earlier >> COUNT_BITS) - 1;
    return earlier != 0 && other != self && clock[other] < (earlier & MOST_COUNT);
}

static bool unordered(struct ptx_races *r, const ptx_warp *w, access earlier) {
    return concurrent(clock_of(r, w), number_of(w), earlier);
}

/* Stops the warp with an error about two accesses. `rule` is a text that names the missing barrier
 * or fence. */
static void report(ptx_warp *w, const ptx_inst *i, const ptx_block *b, uint32_t offset,
                   const char *does, const char *did, access earlier, const char *rule) {
    const uint32_t other = (earlier >> COUNT_BITS) - 1, warps = b->warp_count;
    char who[64] = "an asynchronous operation";
    if (other < b->cluster->races->warps)
        snprintf(who, sizeof who, "warp %u of block rank %u", other % warps, other / warps);
    ptx_stop(w, i, "%s shared memory 0x%x, which %s %s, and no %s", does, offset, who, did, rule);
}

static void report_lane(ptx_warp *w, const ptx_inst *i, const ptx_block *b, uint32_t offset,
                        uint32_t lane, const char *does, const char *did, access earlier) {
    char text[40];
    snprintf(text, sizeof text, "lane %u %s", lane, does);
    report(w, i, b, offset, text, did, earlier, "barrier orders the two");
}

bool ptx_race_async(ptx_warp *w, const ptx_inst *i, ptx_block *b, uint32_t offset, uint32_t bytes,
                    bool write) {
    struct ptx_races *r = b->cluster->races;
    if (!r || r->off || !r->running) return true;
    const uint32_t *clock = r->running, engine = clock[r->width];
    const access mine = (engine + 1) << COUNT_BITS | clock[engine];
    const size_t first = (size_t)b->rank * r->bytes + offset;
    const bool fences = b->launch->checks & CHECK_PROXIES;
    /* `good` is the last write for which no race was found. If the same write has written the next
     * byte too, that byte needs no check. */
    access good = 0;
    for (size_t k = first; k < first + bytes; k++) {
        const access wrote = r->writes[k], read = write ? r->reads[k] : 0;
        if (!write && wrote == good) {
            r->reads[k] = mine;
            continue;
        }
        const bool late = concurrent(clock, engine, wrote);
        if (late || concurrent(clock, engine, read)) {
            report(w, i, b, (uint32_t)(k - first) + offset,
                   write ? "the async proxy writes" : "the async proxy reads",
                   late ? "has written" : "has read", late ? wrote : read,
                   "barrier orders the two");
            return false;
        }
        if (!write && fences && wrote && (wrote >> COUNT_BITS) - 1 < r->warps &&
            concurrent(clock + r->all, engine, wrote)) {
            report(w, i, b, (uint32_t)(k - first) + offset, "the async proxy reads", "has written",
                   wrote, "fence.proxy.async lies between the two");
            return false;
        }
        if (write)
            r->writes[k] = mine, r->reads[k] = 0;
        else
            r->reads[k] = mine, good = wrote;
    }
    return true;
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
    if (i->opcode->syncs) {
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
            report_lane(w, i, b, (uint32_t)(k - first) + offset, lane, "reads", "has written",
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
            report_lane(w, p->inst, p->block, p->offset + k, p->lane, "writes",
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
