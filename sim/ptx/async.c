/* Keeps the list of jobs, i.e. of asynchronous copies and tcgen05 operations that the simulator has
 * not executed yet. */
#include "time.h"
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
    c->later[c->later_count] = *job;
    c->later[c->later_count].race = ptx_race_issue(job->warp, false);
    if (c->timeline) c->later[c->later_count].timed = ptx_time_job(job, false);
    c->later_count++;
    return true;
}

/* Returns the index of the job to run next. The simulator runs jobs in random order, as hardware
 * may complete them in any order, and n is the index of a randomly chosen job. But those jobs of a
 * thread block that are marked as ordered must run in program order. If job n is ordered, the
 * function therefore returns the oldest ordered job of the same thread block. Otherwise it returns
 * n. */
static uint32_t earliest(const ptx_cluster *c, uint32_t n) {
    uint32_t k = 0;
    if (!c->later[n].ordered) return n;
    while (!c->later[k].ordered || c->later[k].warp->block != c->later[n].warp->block)
        k++;
    return k;
}

void ptx_async_execute(ptx_async *job, enum ptx_end end) {
    ptx_cluster *c = job->warp->block->cluster;
    c->running = job->timed;
    ptx_race_start(job->warp, job->race, job->commits);
    job->run(job);
    ptx_race_finish(job->warp, job->race, end);
    c->running = 0;
}

bool ptx_async_run(ptx_cluster *c) {
    if (c->later_count == 0) return false;
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    const uint32_t n = earliest(c, (uint32_t)(c->random >> 33) % c->later_count);
    ptx_async job = c->later[n];
    memmove(&c->later[n], &c->later[n + 1], (c->later_count - n - 1) * sizeof *c->later);
    c->later_count--;
    ptx_async_execute(&job, job.ordered ? END_ORDERED : END_SIGNALLED);
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

uint8_t *ptx_engine_shared(ptx_async *job, uint64_t address, uint32_t bytes, bool write) {
    uint8_t *at = ptx_shared_async(job->warp, job->inst, address, bytes, write);
    ptx_block *b = at ? &job->warp->block->cluster->blocks[address >> RANK_SHIFT] : NULL;
    const uint32_t offset = (uint32_t)address & ((1u << RANK_SHIFT) - 1);
    return at && ptx_race_async(job->warp, job->inst, b, offset, bytes, write) ? at : NULL;
}
