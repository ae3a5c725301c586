/* Computes the time of the sampled clusters from the records of what their warps did. It runs
 * through the records of all warps, always with the warp that can continue earliest. A phase (use
 * of a barrier) is complete when all its arrivals have happened. */
#include "time_state.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void push(ptx_replay_state *p, uint32_t w) {
    sim_turns_push(&p->turns, p->warps[w].ready, w);
}

/* Counts an arrival at a phase (use of a barrier or mbarrier) in cycle `at`. If it is the last one,
 * the warps that wait for the phase can continue. */
static void arrive(ptx_replay_state *p, uint32_t cluster, uint32_t number, double at,
                   uint8_t cause) {
    ptx_phase *f = &p->phases[cluster].at[number];
    if (at >= f->time) f->time = at, f->cause = cause;
    if (--f->missing) return;
    for (uint32_t n = f->waiting; n != NOBODY;) {
        const uint32_t next = p->warps[n].next;
        ptx_wait_until(p, &p->warps[n], f->time, f->cause);
        push(p, n);
        n = next;
    }
    f->waiting = NOBODY;
}

static void run_job(ptx_replay_state *p, ptx_replayed *w, const ptx_event *e) {
    const ptx_timeline *t = &p->t->timelines[w->cluster];
    const ptx_job *job = &t->jobs.at[e->a];
    double read;
    const double done = ptx_run_job(&p->units, t, job, ptx_cluster_sms(p, w), w->ready, &read);
    if (job->store)
        ptx_add_to_queue(&w->queues[QUEUE_BULK], ptx_has(job->inst->opcode, "read") ? read : done);
    p->end = fmax(p->end, done);
    for (uint32_t k = 0; k < job->phases; k++)
        arrive(p, w->cluster, t->arrivals.at[job->first_phase + k],
               done + p->t->device->shared_latency, job->ordered ? STALL_MATRIX : STALL_MEMORY);
}

/* Makes a warp wait for a phase, i.e. for one use of a barrier or mbarrier. Returns false if the
 * phase is not complete yet. */
static bool run_wait(ptx_replay_state *p, uint32_t number, uint32_t which) {
    ptx_replayed *w = &p->warps[number];
    ptx_phase *f = &p->phases[w->cluster].at[which];
    if (!f->missing) {
        ptx_wait_until(p, w, f->time, f->cause);
        return true;
    }
    w->next = f->waiting, f->waiting = number;
    return false;
}

/* Replays the recorded events of a warp as long as no other warp could run at an earlier time.
 * Returns true if the warp can continue later. Returns false if it has ended, or if it waits for a
 * phase, i.e. for one use of a barrier or mbarrier. */
static bool run_warp(ptx_replay_state *p, uint32_t number) {
    ptx_replayed *w = &p->warps[number];
    ptx_sm *sm = ptx_cluster_sms(p, w) + w->block;
    const double until = p->turns.count ? p->turns.at[0].time : HUGE_VAL;
    while (w->event < w->trace->events.count) {
        const ptx_event *e = &w->trace->events.at[w->event];
        if (w->ready > until) return true;
        w->code = e->kind == EVENT_RUN ? e->code + w->done : e->code;
        if (e->kind == EVENT_RUN && w->done < e->a) {
            ptx_replay_instruction(p, w, sm, e->code + w->done++);
            continue;
        }
        w->event++, w->done = 0;
        if (e->kind == EVENT_SHARED) ptx_replay_shared(p, w, sm, e);
        if (e->kind == EVENT_MEMORY) ptx_replay_memory(p, w, sm, e);
        if (e->kind == EVENT_JOB) run_job(p, w, e);
        if (e->kind == EVENT_ARRIVE)
            arrive(p, w->cluster, e->a, w->ready + p->t->device->shared_latency, STALL_BARRIER);
        if (e->kind == EVENT_WAIT && !run_wait(p, number, e->a)) return false;
    }
    p->end = fmax(p->end, w->ready);
    return false;
}

static void count_busy(ptx_replay_state *p) {
    for (uint32_t k = 0; k < p->t->sms; k++) {
        const ptx_sm *sm = &p->units.sms[k];
        p->r->matrix_busy += sm->busy, p->r->matrix_loop += sm->last - sm->first;
    }
}

/* Writes the source line of an instruction to `place`. If it is unknown, writes the line number in
 * the PTX text and the instruction. */
static void place_of(const void *module, size_t number, char *place, size_t bytes) {
    const ptx_module *m = module;
    const ptx_inst *i = &m->code[number];
    const char *file = i->file < m->file_count ? m->files[i->file] : NULL;
    const char *slash = file ? strrchr(file, '/') : NULL;
    if (file)
        snprintf(place, bytes, "%.50s:%u", slash ? slash + 1 : file, i->source_line);
    else
        snprintf(place, bytes, "PTX line %u %.*s", i->line, (int)(i->length < 40 ? i->length : 40),
                 m->text + i->text);
}

/* Is called when no warp can continue. Returns true if all warps have ended. If one still waits for
 * a phase of a barrier, the function writes to `error` which warp waits where, and returns false.
 * This happens only if the recorded events are wrong. */
static bool all_ended(const ptx_replay_state *p, char *error) {
    const ptx_timing *t = p->t;
    for (uint32_t c = 0; c < t->taken; c++)
        for (uint32_t k = 0; k < t->timelines[c].phases.count; k++) {
            const ptx_phase *f = &p->phases[c].at[k];
            if (f->waiting == NOBODY) continue;
            char place[64];
            const ptx_replayed *w = &p->warps[f->waiting];
            place_of(t->launch->module, w->code, place, sizeof place);
            snprintf(error, ERROR_BYTES,
                     "%s: the time model cannot replay this launch: warp %u of block %u in cluster "
                     "%u waits at %s for %u more arrivals",
                     t->launch->kernel->name, f->waiting % t->warps, w->block, c, place,
                     f->missing);
            return false;
        }
    return true;
}

bool ptx_replay(const ptx_timing *t, ptx_launch *launch, char *error) {
    ptx_times *times = &launch->times;
    ptx_replay_state p = {.t = t, .r = times};
    bool good = ptx_state_make(&p);
    if (!good)
        snprintf(error, ERROR_BYTES, "%s: the time model is out of memory",
                 t->launch->kernel->name);
    for (uint32_t n = 0; good && n < p.warp_count; n++)
        push(&p, n);
    while (good && p.turns.count) {
        const uint32_t n = sim_turns_pop(&p.turns);
        if (run_warp(&p, n)) push(&p, n);
    }
    good = good && all_ended(&p, error);
    if (good) count_busy(&p);
    if (good)
        sim_hottest(t->launch->module, t->launch->module->code_count, place_of, p.stalls,
                    launch->hot);
    times->replayed = fmax(p.end, p.units.written);
    ptx_state_free(&p);
    return good;
}
