/* Replays the traces of workgroups on the compute units of one XCD, one instruction at a time. The
 * wave that can issue earliest goes next. An instruction waits until its execution unit is free,
 * occupies it, and sets the time at which the wave can issue again. docs/SIMULATOR.md names the
 * sources. */
#include "time_replay.h"
#include "common/turns.h"
#include "lines.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All constants except COUNTERS are times in cycles. In ISSUE cycles, a SIMD issues at most one
 * instruction of each kind, and each wave issues at most one instruction. A branch that is taken
 * delays its wave by TAKEN cycles. A wait counter of the model has room for COUNTERS times. */
enum { ISSUE = 4, TRANSCENDENTAL = 16, TAKEN = 32, SLEEP = 64, COUNTERS = 64 };

/* Names the kinds of instructions that need special treatment, because no unit of the SIMD
 * executes them. */
enum kind { ORDINARY, WAIT, BARRIER, NOP, SLEEPING, END };
static const struct {
    const char *name;
    uint8_t kind;
} special[] = {{"s_waitcnt", WAIT},
               {"s_barrier", BARRIER},
               {"s_nop", NOP},
               {"s_sleep", SLEEPING},
               {"s_endpgm", END}};

/* Models a wait counter. It holds the times at which the counted operations complete, the oldest
 * operation first. The times never decrease, because operations of one counter complete in the
 * order of issue. */
typedef struct {
    double done[COUNTERS];
    uint32_t first, count;
} counter;

typedef struct {
    const struct gfx9_trace *trace;
    size_t event, line;
    double ready;
    counter vm, lgkm;
    uint32_t group;
    uint8_t simd;
} wave;

typedef struct {
    uint32_t cu, alive, arrived;
    /* `barrier` is the latest arrival of a wave at the current barrier, in cycles. */
    double barrier;
} group;

typedef struct {
    /* unit[s][c] is the cycle in which the unit for instructions of cost class c becomes free on
     * SIMD s. */
    double unit[SIMDS][COST_BRANCH + 1];
    double lds, l1;
    uint32_t waves;
    sim_cache *cache;
} cu;

typedef struct {
    const gfx9_timing *t;
    uint8_t
        *kinds; /* `kinds` holds for each instruction of the code object its kind (enum kind). */
    wave *waves;
    group *groups;
    cu *cus;
    sim_turns turns; /* `turns` holds the waves that can continue. */
    gfx9_levels memory;
    gfx9_times *r;
    /* stalls[k][c] is the number of cycles that waves stall at instruction k of the code object for
     * cause c. */
    double (*stalls)[STALLS];
    double end;
} replay;

static void push(replay *p, uint32_t w) {
    sim_turns_push(&p->turns, p->waves[w].ready, w);
}

/* A wait counter, such as vmcnt, counts the pending operations of a wave. Returns the first time,
 * not before `now`, at which at most `most` operations of the counter `c` are pending. */
static double wait_for(counter *c, uint32_t most, double now) {
    while (c->count > most) {
        const double done = c->done[c->first];
        now = done > now ? done : now;
        c->first = (c->first + 1) % COUNTERS, c->count--;
    }
    return now;
}

/* Adds an operation that ends at the time `done` to the wait counter `c`. If the counter is full,
 * the wave first waits until the counter's oldest operation is complete. */
static void add(counter *c, double done, double *now) {
    *now = wait_for(c, COUNTERS - 2, *now);
    if (c->count) {
        const double last = c->done[(c->first + c->count - 1) % COUNTERS];
        done = last > done ? last : done;
    }
    c->done[(c->first + c->count++) % COUNTERS] = done;
}

/* Counts the cycles from `from` to `to`, in which a wave waits to execute its current instruction,
 * as stall cycles with the cause `cause`. */
static void stall(replay *p, const wave *w, int cause, double from, double to) {
    p->r->stalls[cause] += to - from;
    p->stalls[w->trace->events[w->event - 1].code][cause] += to - from;
}

/* Issues an instruction of the wave to a unit of its SIMD, and occupies the unit for `cycles`
 * cycles. Returns the cycle of issue. */
static double issue(replay *p, wave *w, double *unit, double cycles, int cause) {
    const double at = w->ready > *unit ? w->ready : *unit;
    stall(p, w, cause, w->ready, at);
    *unit = at + cycles, w->ready = at + ISSUE;
    return at;
}

static void run_matrix(replay *p, wave *w, cu *c, const gfx9_inst *i) {
    double *unit = c->unit[w->simd];
    const double cycles = 4.0 * gfx9_passes(i);
    const double slot = unit[COST_VALU] > w->ready ? unit[COST_VALU] : w->ready;
    stall(p, w, STALL_ISSUE, w->ready, slot);
    w->ready = slot;
    const double at = issue(p, w, &unit[COST_MFMA], cycles, STALL_MATRIX);
    unit[COST_VALU] = at + ISSUE;
    p->r->matrix_busy += cycles;
}

static void run_lds(replay *p, wave *w, cu *c, const gfx9_event *e) {
    const double at = issue(p, w, &c->unit[w->simd][COST_LDS], ISSUE, STALL_ISSUE);
    const double begin = at > c->lds ? at : c->lds;
    c->lds = begin + e->low;
    p->r->lds_busy += e->low, p->r->lds_conflicts += e->high;
    add(&w->lgkm, c->lds + p->t->device->lds_latency, &w->ready);
}

/* Returns the time at which the last cache line of a vector memory instruction arrives. L1 accepts
 * one line per cycle. The latency of L1 is not public, so a line that L1 holds is assumed to arrive
 * after the latency of L2. */
static double run_lines(replay *p, wave *w, cu *c, const gfx9_event *e, bool reads, double at) {
    double last = at;
    for (uint32_t k = 0; k < e->low; k++) {
        const uint32_t line = w->trace->lines[w->line++];
        bool hit;
        sim_cache_line *kept = sim_cache_find(c->cache, line, &hit);
        double done;
        const double begin = at + k * LINE / p->t->device->l1_rate;
        if (!reads) {
            done = gfx9_write_line(&p->memory, line, (double)e->high / e->low, begin);
        } else if (hit) {
            const double soon = begin + p->t->device->l2_ns * 1e-9 * p->memory.cycles;
            done = kept->arrival > soon ? kept->arrival : soon;
        } else {
            done = gfx9_read_line(&p->memory, line, begin);
        }
        if (!hit) kept->arrival = done;
        last = done > last ? done : last;
    }
    return last;
}

static void run_memory(replay *p, wave *w, cu *c, const gfx9_inst *i, const gfx9_event *e) {
    const char *name = i->row->name;
    const double at = issue(p, w, &c->unit[w->simd][COST_VMEM], ISSUE, STALL_ISSUE);
    const double begin = at > c->l1 ? at : c->l1, lines = e->low * LINE / p->t->device->l1_rate;
    if (i->row->size == 0) return; /* Instructions of size 0 control caches and access no data. */
    c->l1 = begin + (lines > ISSUE ? lines : ISSUE);
    p->r->l1_bytes += e->high;
    const double done = run_lines(p, w, c, e, strstr(name, "store") == NULL, begin);
    if (i->lds || i->row->c) { /* A load to LDS writes 128 bytes per cycle to LDS. */
        const double cycles = (double)e->high / 128;
        c->lds = (at > c->lds ? at : c->lds) + cycles;
        p->r->lds_busy += cycles;
    }
    add(&w->vm, done, &w->ready);
    if (name[0] == 'f') /* Flat instructions count in both wait counters, vmcnt and lgkmcnt. */
        add(&w->lgkm, done, &w->ready);
}

static void run_scalar_load(replay *p, wave *w, cu *c) {
    const double at = issue(p, w, &c->unit[w->simd][COST_SMEM], ISSUE, STALL_ISSUE);
    add(&w->lgkm, at + p->t->device->l2_ns * 1e-9 * p->memory.cycles, &w->ready);
}

static void place_group(replay *p, uint32_t g, uint32_t on, double at) {
    const gfx9_timing *t = p->t;
    p->groups[g] = (group){.cu = on, .alive = t->wave_count};
    for (uint32_t n = 0; n < t->wave_count; n++) {
        const uint32_t number = g * t->wave_count + n;
        wave *w = &p->waves[number];
        w->trace = &t->traces[number], w->group = g, w->ready = at;
        w->simd = (uint8_t)(p->cus[on].waves++ % SIMDS);
        push(p, number);
    }
}

/* Lets the waves of a workgroup continue if all waves that have not ended have arrived at the
 * barrier. */
static void check_barrier(replay *p, uint32_t g) {
    group *q = &p->groups[g];
    if (q->arrived == 0 || q->arrived < q->alive) return;
    q->arrived = 0;
    for (uint32_t n = 0; n < p->t->wave_count; n++) {
        wave *w = &p->waves[g * p->t->wave_count + n];
        if (w->event == w->trace->count) continue;
        stall(p, w, STALL_BARRIER, w->ready, q->barrier);
        w->ready = q->barrier + ISSUE;
        push(p, g * p->t->wave_count + n);
    }
    q->barrier = 0;
}

static double run_wait(replay *p, wave *w, const gfx9_inst *i) {
    const uint32_t n = i->word[0] & 0xffff;
    const double vm = wait_for(&w->vm, (n & 15) | (n >> 10 & 48), w->ready);
    const double lgkm = wait_for(&w->lgkm, n >> 8 & 15, vm);
    stall(p, w, STALL_VMEM, w->ready, vm), stall(p, w, STALL_LGKM, vm, lgkm);
    return lgkm;
}

/* Replays an instruction that no unit of the SIMD executes. Returns false if the wave cannot
 * continue now. */
static bool run_special(replay *p, wave *w, enum kind kind, const gfx9_inst *i) {
    group *g = &p->groups[w->group];
    switch (kind) {
    case WAIT:
        w->ready = run_wait(p, w, i) + ISSUE;
        return true;
    case NOP:
        w->ready += ISSUE * (1.0 + (i->word[0] & 15));
        return true;
    case SLEEPING:
        w->ready += SLEEP * (double)(i->word[0] & 127) + ISSUE;
        return true;
    case BARRIER:
        g->arrived++, g->barrier = w->ready > g->barrier ? w->ready : g->barrier;
        check_barrier(p, w->group);
        return false;
    default:
        g->alive--, w->event = w->trace->count;
        p->end = w->ready > p->end ? w->ready : p->end;
        check_barrier(p, w->group);
        return false;
    }
}

static void run_ordinary(replay *p, wave *w, const gfx9_inst *i, const gfx9_event *e) {
    cu *c = &p->cus[p->groups[w->group].cu];
    const uint8_t cost = i->row->cost;
    double *unit = c->unit[w->simd];
    switch (cost) {
    case COST_MFMA:
        run_matrix(p, w, c, i);
        break;
    case COST_LDS:
        run_lds(p, w, c, e);
        break;
    case COST_VMEM:
        run_memory(p, w, c, i, e);
        break;
    case COST_SMEM:
        run_scalar_load(p, w, c);
        break;
    case COST_BRANCH:
        issue(p, w, &unit[COST_BRANCH], ISSUE, STALL_ISSUE);
        if (w->event < w->trace->count && e[1].code != e->code + 1) w->ready += TAKEN - ISSUE;
        break;
    case COST_SALU:
        issue(p, w, &unit[COST_SALU], ISSUE, STALL_ISSUE);
        break;
    default:
        issue(p, w, &unit[COST_VALU], cost == COST_TRANS ? TRANSCENDENTAL : ISSUE, STALL_ISSUE);
    }
}

static void step(replay *p, uint32_t number) {
    wave *w = &p->waves[number];
    const gfx9_event *e = &w->trace->events[w->event++];
    const gfx9_inst *i = &p->t->object->code[e->code];
    const enum kind kind = p->kinds[e->code];
    p->r->instructions++;
    if (kind != ORDINARY) {
        if (run_special(p, w, kind, i)) push(p, number);
        return;
    }
    run_ordinary(p, w, i, e);
    push(p, number);
}

static void find_kinds(replay *p) {
    for (uint32_t k = 0; k < p->t->object->code_count; k++) {
        const gfx9_row *row = p->t->object->code[k].row;
        for (size_t s = 0; row && s < sizeof special / sizeof *special; s++)
            if (strcmp(row->name, special[s].name) == 0) p->kinds[k] = special[s].kind;
    }
}

static bool prepare(replay *p) {
    const gfx9_timing *t = p->t;
    const size_t count = (size_t)t->groups * t->wave_count;
    p->kinds = calloc(t->object->code_count, 1);
    p->waves = calloc(count, sizeof *p->waves);
    p->groups = calloc(t->groups, sizeof *p->groups);
    p->cus = calloc(t->cus, sizeof *p->cus);
    p->stalls = calloc(t->object->code_count, sizeof *p->stalls);
    if (!p->kinds || !p->waves || !p->groups || !p->cus || !p->stalls) return false;
    if (!sim_turns_make(&p->turns, (uint32_t)count)) return false;
    bool good = true;
    for (uint32_t k = 0; k < t->cus; k++)
        good &= (p->cus[k].cache = sim_cache_new(t->device->l1_bytes / LINE)) != NULL;
    const double share = (double)t->xcd_groups / t->all_groups;
    p->memory =
        (gfx9_levels){.device = t->device,
                      .l2 = sim_cache_new(t->device->l2_bytes / LINE),
                      .mall = sim_cache_new((uint32_t)(t->device->mall_bytes * share) / LINE),
                      .cycles = t->device->megahertz * 1e6,
                      .share = share,
                      .times = p->r};
    return good && p->memory.l2 && p->memory.mall;
}

static void finish(replay *p) {
    for (uint32_t k = 0; p->cus && k < p->t->cus; k++)
        sim_cache_free(p->cus[k].cache);
    sim_cache_free(p->memory.l2), sim_cache_free(p->memory.mall);
    free(p->kinds), free(p->waves), free(p->groups), free(p->cus), free(p->stalls);
    sim_turns_free(&p->turns);
}

/* Names an instruction's line of source, or its address and text if it has no line. */
static void place_of(const void *object, size_t number, char *place, size_t bytes) {
    const gfx9_object *o = object;
    const gfx9_inst *i = &o->code[number];
    if (!gfx9_line_of(o->lines, i->address, place, bytes))
        snprintf(place, bytes, "0x%llx %.40s", (unsigned long long)i->address, i->text);
}

bool gfx9_replay(const gfx9_timing *t, gfx9_launch *launch) {
    gfx9_times *r = &launch->times;
    replay p = {.t = t, .r = r};
    const bool good = prepare(&p);
    if (good) {
        find_kinds(&p);
        for (uint32_t g = 0; g < t->groups; g++)
            place_group(&p, g, g % t->cus, 0);
        while (p.turns.count)
            step(&p, sim_turns_pop(&p.turns));
        const double written = p.memory.hbm_free;
        r->replayed = written > p.end ? written : p.end;
        r->groups = t->groups, r->cus = t->groups < t->cus ? t->groups : t->cus;
        r->waves = t->groups * (double)t->wave_count / r->cus;
        sim_hottest(t->object, t->object->code_count, place_of, p.stalls, launch->hot);
    }
    finish(&p);
    return good;
}
