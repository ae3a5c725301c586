/* The list of jobs of the simulated copy engine, i.e. of all asynchronous copies and tcgen05
 * operations. */
#include "async.h"
#include <stdlib.h>
#include <string.h>

bool ptx_async_add(const ptx_async *job) {
    ptx_cluster *c = job->warp->block->cluster;
    if (c->later_count == c->later_room) {
        const uint32_t room = c->later_room ? 2 * c->later_room : 64;
        ptx_async *more = realloc(c->later, room * sizeof *more);
        if (!more) {
            ptx_stop(job->warp, job->inst, "out of memory");
            return false;
        }
        c->later = more, c->later_room = room;
    }
    c->later[c->later_count++] = *job;
    return true;
}

/* Job n of the list was chosen at random to run next. Returns n if the job may run at any time. If
 * it is an ordered job, returns the oldest ordered job of the same block instead, because the
 * ordered jobs of a block must run in the order in which they were issued. */
static uint32_t earliest(const ptx_cluster *c, uint32_t n) {
    uint32_t k = 0;
    if (!c->later[n].ordered) return n;
    while (!c->later[k].ordered || c->later[k].warp->block != c->later[n].warp->block)
        k++;
    return k;
}

bool ptx_async_run(ptx_cluster *c) {
    if (c->later_count == 0) return false;
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    const uint32_t n = earliest(c, (uint32_t)(c->random >> 33) % c->later_count);
    ptx_async job = c->later[n];
    memmove(&c->later[n], &c->later[n + 1], (c->later_count - n - 1) * sizeof *c->later);
    c->later_count--;
    job.run(&job);
    return true;
}

bool ptx_async_finish(ptx_cluster *c) {
    while (ptx_async_run(c)) {
    }
    return true;
}

uint8_t *ptx_engine_global(ptx_async *job, uint64_t address, uint32_t bytes) {
    uint64_t addresses[LANES] = {0};
    uint8_t *at[LANES];
    ptx_warp *w = job->warp;
    const uint32_t mask = w->mask;
    addresses[0] = address, w->mask = 1;
    const bool good = ptx_resolve(w, job->inst, addresses, GLOBAL, bytes, false, at);
    w->mask = mask;
    return good ? at[0] : NULL;
}
