/* Models the units that warps share. The warps of an SM share its shared memory, its tensor pipe
 * and its path to L2. All SMs share L2 and HBM. Each unit has a rate and a latency. */
#include "time_replay.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool grow(ptx_calendar *c, uint32_t slice) {
    if (slice < c->count) return true;
    const uint32_t wanted = 2 * slice + 256;
    float *made = realloc(c->taken, wanted * sizeof *made);
    if (!made) return false;
    memset(made + c->count, 0, (wanted - c->count) * sizeof *made);
    c->taken = made, c->count = wanted;
    return true;
}

double ptx_take(ptx_calendar *c, double at, double cycles) {
    uint32_t slice = (uint32_t)(at / SLICE);
    if (slice < c->full) slice = c->full;
    for (;; slice++) {
        const double begin = (double)slice * SLICE, from = at > begin ? at : begin;
        if (!grow(c, slice)) return at + cycles;
        const double left = fmin(SLICE - c->taken[slice], begin + SLICE - from);
        const double piece = left < cycles ? left : cycles;
        c->taken[slice] += (float)piece, cycles -= piece;
        while (c->full < c->count && c->taken[c->full] >= SLICE - 0.001F)
            c->full++;
        if (cycles <= 0.001) return fmax(from + piece, begin + c->taken[slice]);
    }
}

/* Returns the number of cache lines of a span (a rectangle of global memory) that the cache does
 * not contain. They are added to the cache and arrive in cycle `done`. *arrival is raised to the
 * cycle in which the last of the span's other lines arrives. */
static uint32_t missing(sim_cache *cache, const ptx_span *s, double done, double *arrival) {
    uint32_t lacks = 0;
    for (uint32_t row = 0; row < s->rows; row++) {
        const uint32_t first = s->first + row * s->stride, last = first + s->count - 1;
        for (uint32_t k = first / LINE; k <= last / LINE; k++) {
            bool hit;
            sim_cache_line *line = sim_cache_find(cache, k, &hit);
            if (!hit)
                lacks++, line->arrival = done;
            else if (line->arrival > *arrival)
                *arrival = line->arrival;
        }
    }
    return lacks;
}

/* Marks the cache lines of a span as written. A span is a rectangle of global memory that an
 * asynchronous operation accesses. Returns the number of lines that were not marked before; only
 * these must still be written to HBM later. */
static uint32_t soil(sim_cache *cache, const ptx_span *s) {
    uint32_t soiled = 0;
    for (uint32_t row = 0; row < s->rows; row++) {
        const uint32_t first = s->first + row * s->stride, last = first + s->count - 1;
        for (uint32_t k = first / LINE; k <= last / LINE; k++) {
            bool hit;
            sim_cache_line *line = sim_cache_find(cache, k, &hit);
            soiled += !line->dirty, line->dirty = true;
        }
    }
    return soiled;
}

static double from_hbm(ptx_units *u, double at, double bytes) {
    const double rate = u->device->hbm_rate / (u->device->megahertz * 1e6) * u->share;
    u->times->hbm_bytes += bytes;
    return ptx_take(&u->hbm, at, bytes / rate);
}

double ptx_read_span(ptx_units *u, ptx_sm *sm, const ptx_span *s, double at, bool cached) {
    const ptx_device *d = u->device;
    double arrival = at + d->l1_latency;
    if (cached && !missing(sm->l1, s, at + d->l2_latency, &arrival)) return arrival;
    const double bytes = (double)s->count * s->rows * SECTOR;
    const double sent = ptx_take(&u->l2, at, bytes / (d->l2_rate * u->share));
    double done = fmax(sent, ptx_take(&sm->in, at, bytes / d->port_rate)) + d->l2_latency;
    const uint32_t lacks = missing(u->cache, s, at + d->hbm_latency, &done);
    if (lacks) done = fmax(done, from_hbm(u, at, (double)lacks * LINE * SECTOR) + d->hbm_latency);
    u->times->l2_bytes += bytes;
    return done;
}

double ptx_write_span(ptx_units *u, ptx_sm *sm, const ptx_span *s, double at) {
    const ptx_device *d = u->device;
    const double bytes = (double)s->count * s->rows * SECTOR;
    const double sent = ptx_take(&sm->out, at, bytes / d->port_rate);
    const double done = fmax(sent, ptx_take(&u->l2, at, bytes / (d->l2_rate * u->share)));
    const uint32_t dirtied = soil(u->cache, s);
    u->times->l2_bytes += bytes;
    if (dirtied) u->written = fmax(u->written, from_hbm(u, at, (double)dirtied * LINE * SECTOR));
    return done + d->l2_latency;
}

double ptx_take_shared(const ptx_units *u, ptx_sm *sm, double at, double bytes) {
    u->times->shared_busy += bytes / u->device->shared_rate;
    return ptx_take(&sm->shared, at, bytes / u->device->shared_rate);
}

/* Computes when a tcgen05.mma begins and ends. The tensor pipe of an SM runs one operation after
 * another. While it runs an operation, it reads the operands from shared memory. A product with
 * fewer than 128 rows takes as long as one with 128 rows. */
static double multiply(ptx_units *u, const ptx_job *job, ptx_sm *sm, double at) {
    const double rows = job->m < 128 ? 128 : job->m;
    const double cycles = rows * job->n * job->k * job->bits / 16 / u->device->tensor_rate;
    const uint32_t count = job->pair ? 2 : 1;
    double begin = at;
    for (uint32_t k = 0; k < count; k++)
        begin = fmax(begin, sm[k].tensor);
    double end = begin + cycles;
    for (uint32_t k = 0; k < count; k++)
        end = fmax(end, ptx_take_shared(u, &sm[k], begin, job->reads));
    for (uint32_t k = 0; k < count; k++) {
        sm[k].first = sm[k].busy > 0 ? sm[k].first : begin;
        sm[k].tensor = end, sm[k].last = end, sm[k].busy += cycles;
        sm[k].tensor_done = end + u->device->tensor_latency;
    }
    return end + u->device->tensor_latency;
}

/* Copies from shared memory to tensor memory (tcgen05.cp). The tensor pipe runs the copy after the
 * operations that were issued before it. */
static double copy_to_tensor(ptx_units *u, const ptx_job *job, ptx_sm *sm, double at) {
    for (uint32_t k = 0; k < (job->pair ? 2u : 1u); k++) {
        const double begin = fmax(at, sm[k].tensor);
        sm[k].tensor = ptx_take_shared(u, &sm[k], begin, job->reads);
        sm[k].tensor_done = fmax(sm[k].tensor_done, sm[k].tensor + u->device->shared_latency);
    }
    return sm->tensor_done;
}

/* Copies by TMA from global to shared memory. Returns the cycle in which the copy is complete. */
static double load(ptx_units *u, const ptx_timeline *t, const ptx_job *job, ptx_sm *sms,
                   double at) {
    double done = at, bytes = 0;
    for (uint32_t k = 0; k < job->spans; k++)
        done = fmax(done, ptx_read_span(u, &sms[job->block], &t->spans.at[job->first_span + k],
                                        at + u->device->tma_latency, false));
    for (uint32_t left = job->blocks; left; left &= left - 1) {
        const double begin = fmax(at, done - job->bytes / u->device->shared_rate);
        done = fmax(done, ptx_take_shared(u, &sms[ptx_first(left)], begin, job->bytes));
        bytes += job->bytes;
    }
    u->times->l1_bytes += bytes;
    return done;
}

static double store(ptx_units *u, const ptx_timeline *t, const ptx_job *job, ptx_sm *sm, double at,
                    double *read) {
    double done = *read = ptx_take_shared(u, sm, at + u->device->tma_latency, job->bytes);
    for (uint32_t k = 0; k < job->spans; k++)
        done = fmax(done, ptx_write_span(u, sm, &t->spans.at[job->first_span + k], *read));
    u->times->l1_bytes += job->bytes;
    return done;
}

double ptx_run_job(ptx_units *u, const ptx_timeline *t, const ptx_job *job, ptx_sm *sms, double at,
                   double *read) {
    ptx_sm *sm = &sms[job->pair ? job->block & ~1u : job->block];
    *read = at;
    if (job->m) return multiply(u, job, sm, at);
    if (job->ordered && job->reads) return copy_to_tensor(u, job, sm, at);
    /* This is a tcgen05.commit. It is complete when the earlier tcgen05 operations of its SM are
     * complete. */
    if (job->ordered) return fmax(at, sms[job->block].tensor_done);
    if (job->store) return store(u, t, job, sm, at, read);
    if (job->spans || job->bytes) return load(u, t, job, sms, at);
    return at + u->device->remote_latency;
}
