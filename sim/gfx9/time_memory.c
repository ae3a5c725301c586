/* Models L2, the Infinity Cache and HBM. Each level has a rate and a latency. A request waits
 * until the level is free, occupies it, and is answered after the latency. */
#include "time_replay.h"

/* Lets a request occupy a level of the memory for `cycles` cycles. The request begins in cycle
 * `at`, or later if the level is still occupied then. Returns the cycle in which the request
 * begins. */
static double occupy(double *level_free, double at, double cycles) {
    const double begin = at > *level_free ? at : *level_free;
    *level_free = begin + cycles;
    return begin;
}

static double in_cycles(const gfx9_levels *m, double nanoseconds) {
    return nanoseconds * 1e-9 * m->cycles;
}

double gfx9_read_line(gfx9_levels *m, uint32_t line, double at) {
    const gfx9_device *d = m->device;
    bool hit;
    const double from_l2 = occupy(&m->l2_free, at, LINE / d->l2_read_rate);
    sim_cache_line *kept = sim_cache_find(m->l2, line, &hit);
    double done = from_l2 + in_cycles(m, d->l2_ns);
    m->times->l2_bytes += LINE;
    if (hit) /* L2 may have requested the cache line earlier without having received it yet. */
        return kept->arrival > done ? kept->arrival : done;
    const double from_mall =
        occupy(&m->mall_free, from_l2, LINE * m->cycles / (d->mall_rate * m->share));
    sim_cache_find(m->mall, line, &hit);
    m->times->mall_bytes += LINE;
    done = from_mall + in_cycles(m, d->mall_ns);
    if (!hit) {
        done = occupy(&m->hbm_free, from_mall, LINE * m->cycles / (d->hbm_rate * m->share)) +
               in_cycles(m, d->hbm_ns);
        m->times->hbm_bytes += LINE;
    }
    return kept->arrival = done;
}

/* Models a store to a cache line of L2. L2 writes a dirty line back to HBM later, and only once.
 * The model adds the time for HBM at once when the line becomes dirty. */
double gfx9_write_line(gfx9_levels *m, uint32_t line, double bytes, double at) {
    bool hit;
    const double begin = occupy(&m->l2_free, at, bytes / m->device->l2_write_rate);
    const double done = begin + in_cycles(m, m->device->l2_ns);
    sim_cache_line *kept = sim_cache_find(m->l2, line, &hit);
    if (!hit) kept->arrival = done;
    m->times->l2_bytes += bytes;
    if (kept->dirty) return done;
    kept->dirty = true;
    sim_cache_find(m->mall, line, &hit);
    m->times->hbm_bytes += LINE;
    occupy(&m->hbm_free, begin, LINE * m->cycles / (m->device->hbm_rate * m->share));
    return done;
}
