/* Records what the warps and asynchronous operations of a cluster do, for the time model. The
 * record is made while the cluster executes, because bank conflicts, sectors and phases of barriers
 * depend on addresses that are known only then. */
#include "time.h"
#include <stdlib.h>
#include <string.h>

/* Appends an element to a list and returns its address, or NULL if there is not enough memory. */
static void *append(void **at, uint32_t *count, uint32_t *room, size_t size) {
    if (!*at || *count == *room) {
        const uint32_t wanted = *room ? 2 * *room : 64;
        void *made = realloc(*at, wanted * size);
        if (!made) return NULL;
        *at = made, *room = wanted;
    }
    return memset((char *)*at + size * (*count)++, 0, size);
}
#define APPEND(list) append((void **)&(list)->at, &(list)->count, &(list)->room, sizeof *(list)->at)

static ptx_timeline *timeline_of(const ptx_warp *w) {
    return w->block->cluster->timeline;
}

static void add_event(ptx_warp *w, enum ptx_event_kind kind, const ptx_inst *i, uint32_t a,
                      uint32_t b) {
    ptx_event *e = w->trace ? APPEND(&w->trace->events) : NULL;
    if (e)
        *e = (ptx_event){kind, (uint32_t)(i - w->block->launch->module->code), a, b};
    else
        timeline_of(w)->failed = true;
}

static ptx_event *last_event(const struct ptx_trace *t) {
    return t->events.count ? &t->events.at[t->events.count - 1] : NULL;
}

void ptx_time_step(ptx_warp *w, const ptx_inst *i) {
    ptx_event *last = last_event(w->trace);
    const uint32_t code = (uint32_t)(i - w->block->launch->module->code);
    if (last && last->kind == EVENT_RUN && last->code + last->a == code)
        last->a++;
    else
        add_event(w, EVENT_RUN, i, 1, 0);
}

/* Removes the events that the warp has recorded since its previous poll of the same mbarrier. If
 * there are events other than EVENT_RUN among them, removes nothing. */
static void forget_polls(struct ptx_trace *t) {
    for (uint32_t k = t->mark; k < t->events.count; k++)
        if (t->events.at[k].kind != EVENT_RUN) return;
    t->events.count = t->mark;
    t->events.at[t->mark - 1].a = t->mark_length;
}

void ptx_time_poll(ptx_warp *w, const ptx_inst *i) {
    struct ptx_trace *t = w->trace;
    const uint32_t code = (uint32_t)(i - w->block->launch->module->code) + 1;
    if (t->poll == code) forget_polls(t);
    const ptx_event *last = last_event(t);
    t->poll = code, t->mark = t->events.count, t->mark_length = last ? last->a : 0;
}

enum { BANKS = 32 };

/* Returns the number of cycles in which shared memory serves the lanes from `from` to `end` - 1.
 * Each of the 32 banks delivers one 32-bit word per cycle, to all lanes that read it. */
static uint32_t bank_cycles(const ptx_warp *w, const uint64_t *address, uint32_t bytes,
                            uint32_t from, uint32_t end) {
    uint64_t seen[BANKS][LANES];
    uint32_t count[BANKS] = {0}, most = 0;
    for (uint32_t l = from; l < end; l++) {
        if (!(w->mask >> l & 1)) continue;
        for (uint32_t k = 0; k < bytes; k += 4) {
            const uint64_t word = ((address[l] & 0xffffffff) + k) / 4;
            const uint32_t bank = word % BANKS;
            uint32_t n = 0;
            while (n < count[bank] && seen[bank][n] != word)
                n++;
            if (n == count[bank] && n < LANES) seen[bank][count[bank]++] = word;
            if (count[bank] > most) most = count[bank];
        }
    }
    return most;
}

static void record_shared(ptx_warp *w, const ptx_inst *i, const uint64_t *address, uint32_t bytes) {
    /* Shared memory serves 16 lanes at a time if a lane accesses 8 bytes, and 8 lanes at a time if
     * a lane accesses 16 bytes. */
    const uint32_t parts = bytes > 8 ? 4 : bytes > 4 ? 2 : 1;
    uint32_t cycles = 0, least = 0;
    for (uint32_t p = 0; p < parts; p++) {
        const uint32_t most =
            bank_cycles(w, address, bytes, p * LANES / parts, (p + 1) * LANES / parts);
        cycles += most, least += most > 0;
    }
    add_event(w, EVENT_SHARED, i, cycles, cycles - least);
}

static void record_memory(ptx_warp *w, const ptx_inst *i, const uint64_t *address, uint32_t bytes) {
    struct ptx_trace *t = w->trace;
    const uint32_t before = t->spans.count;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint64_t at = address[ptx_first(left)];
        for (uint32_t s = (uint32_t)(at / SECTOR); s <= (uint32_t)((at + bytes - 1) / SECTOR);
             s++) {
            uint32_t k = before;
            while (k < t->spans.count && s - t->spans.at[k].first >= t->spans.at[k].count)
                k++;
            ptx_span *last = t->spans.count > before ? &t->spans.at[t->spans.count - 1] : NULL;
            if (k < t->spans.count) continue;
            if (last && last->first + last->count == s)
                last->count++;
            else if ((last = APPEND(&t->spans)) != NULL)
                *last = (ptx_span){s, 1, 1, 0};
        }
    }
    add_event(w, EVENT_MEMORY, i, t->spans.count - before,
              bytes * (uint32_t)__builtin_popcount(w->mask));
}

void ptx_time_access(ptx_warp *w, const ptx_inst *i, const uint64_t *address, int space,
                     uint32_t bytes) {
    const uint64_t window = address[ptx_first(w->mask)] >> 56 << 56;
    if (space == SHARED || (space == GENERIC && window == SHARED_WINDOW))
        record_shared(w, i, address, bytes);
    else if (space == GLOBAL || (space == GENERIC && !window))
        record_memory(w, i, address, bytes);
}

uint32_t ptx_time_job(const ptx_async *j, bool store) {
    ptx_timeline *t = timeline_of(j->warp);
    ptx_job *job = APPEND(&t->jobs);
    if (!job) {
        t->failed = true;
        return 0;
    }
    *job = (ptx_job){.inst = j->inst, .block = j->warp->block->rank, .store = store};
    job->ordered = j->ordered;
    add_event(j->warp, EVENT_JOB, j->inst, t->jobs.count - 1, 0);
    return t->jobs.count;
}

ptx_job *ptx_time_running(const ptx_cluster *c) {
    return c->timeline && c->running ? &c->timeline->jobs.at[c->running - 1] : NULL;
}

/* A span is a rectangle of global memory: rows of equally many sectors (32 bytes each) at equal
 * distances. Appends a row to a span. The row has `count` sectors, beginning with sector number
 * `first`. Returns false if its length or its distance from the row before differs from that of the
 * span's earlier rows. */
static bool extend(ptx_span *s, uint32_t first, uint32_t count) {
    const uint32_t stride = first - (s->first + (s->rows - 1) * s->stride);
    if (count != s->count || (s->rows > 1 && stride != s->stride)) return false;
    s->stride = stride, s->rows++;
    return true;
}

void ptx_time_span(ptx_cluster *c, uint64_t address, uint64_t bytes) {
    ptx_job *job = ptx_time_running(c);
    ptx_timeline *t = c->timeline;
    if (!job || !bytes) return;
    const uint32_t first = (uint32_t)(address / SECTOR),
                   count = (uint32_t)((address + bytes - 1) / SECTOR) - first + 1;
    if (job->spans && extend(&t->spans.at[t->spans.count - 1], first, count)) return;
    ptx_span *s = APPEND(&t->spans);
    if (!s) {
        t->failed = true;
        return;
    }
    *s = (ptx_span){first, count, 1, 0};
    if (!job->spans++) job->first_span = t->spans.count - 1;
}

static uint32_t new_phase(ptx_timeline *t) {
    /* Phases (uses of a barrier) are numbered from 1, because the number 0 means no phase. Entry 0
     * of the list is therefore not used. */
    if (!t->phases.count) APPEND(&t->phases);
    if (!APPEND(&t->phases)) t->failed = true;
    return t->phases.count - 1;
}

static ptx_waited *find(ptx_timeline *t, enum ptx_waited_kind kind, uint64_t number) {
    static ptx_waited none;
    const uint64_t key = (uint64_t)kind << 56 | (number & 0xffffffff);
    for (uint32_t k = 0; k < t->waited.count; k++)
        if (t->waited.at[k].key == key) return &t->waited.at[k];
    ptx_waited *made = APPEND(&t->waited);
    if (!made) {
        t->failed = true;
        return &none;
    }
    *made = (ptx_waited){.key = key, .current = new_phase(t)};
    return made;
}

void ptx_time_arrive(ptx_warp *w, enum ptx_waited_kind kind, uint64_t number) {
    ptx_timeline *t = timeline_of(w);
    const uint32_t phase = find(t, kind, number)->current;
    ptx_job *job = ptx_time_running(w->block->cluster);
    if (t->failed) return;
    t->phases.at[phase]++;
    if (!job) {
        add_event(w, EVENT_ARRIVE, &w->block->launch->module->code[w->pc - 1], phase, 0);
        return;
    }
    uint32_t *at = APPEND(&t->arrivals);
    if (!at) {
        t->failed = true;
        return;
    }
    *at = phase;
    if (!job->phases++) job->first_phase = t->arrivals.count - 1;
}

void ptx_time_turn(ptx_cluster *c, enum ptx_waited_kind kind, uint64_t number) {
    ptx_waited *x = find(c->timeline, kind, number);
    x->last = x->current, x->current = new_phase(c->timeline);
}

void ptx_time_wait(ptx_warp *w, const ptx_inst *i, enum ptx_waited_kind kind, uint64_t number) {
    const uint32_t phase = find(timeline_of(w), kind, number)->last,
                   code = (uint32_t)(i - w->block->launch->module->code);
    if (w->trace->poll == code + 1) forget_polls(w->trace);
    w->trace->poll = 0;
    if (phase) add_event(w, EVENT_WAIT, i, phase, 0);
}

void ptx_time_release(ptx_warp *w, uint32_t lanes, enum ptx_waited_kind kind, uint64_t number) {
    const uint32_t next = w->lane_pc[ptx_first(lanes)];
    if (w->trace) ptx_time_wait(w, &w->block->launch->module->code[next - 1], kind, number);
}

void ptx_time_columns(ptx_warp *w, uint32_t columns) {
    ptx_timeline *t = timeline_of(w);
    if (columns > t->columns) t->columns = columns;
}
