/* Runs work on several threads, which OpenMP or the caller's pool provides. The results of all work
 * are bitwise the same whichever thread executes which worker. */
#ifndef BSMM_BASE_THREADS_H
#define BSMM_BASE_THREADS_H

#include "base/base.h"

#include <stdatomic.h>

/* Checks a caller's pool and copies it to *to. `from` may be NULL. The copy's `run` is then NULL,
 * which means that OpenMP's threads are used. */
bsmm_status bsmm_pool_take(const bsmm_pool *from, bsmm_pool *to);

/* A job is work in phases. In each phase, `work` is called once for each worker 0 to threads - 1. A
 * phase begins when all workers have finished the phase before. A pool may run the workers of a
 * phase one after another on one thread, so a worker must never wait for another worker of the same
 * phase. */
typedef struct bsmm_job {
    int threads, phases;
    void (*work)(const void *context, int phase, int worker);
    const void *context;
} bsmm_job;

/* Runs all phases of a job. It fails only if the caller's pool does not run every worker of a phase
 * once. */
bsmm_status bsmm_job_run(const bsmm_job *job, const bsmm_pool *pool);

/* The workers of a phase take the numbers 0, 1, 2 and so on of work units (items) from this
 * counter. It fills a cache line of its own, because all workers write to it, which would slow down
 * accesses to other data in its line. */
typedef struct bsmm_items {
    _Alignas(64) _Atomic int64_t taken;
} bsmm_items;

/* Takes the next `count` work units (items) for the calling worker and returns the number of the
 * first one. */
static inline int64_t bsmm_items_take(bsmm_items *items, int64_t count) {
    return atomic_fetch_add_explicit(&items->taken, count, memory_order_relaxed);
}

/* This struct describes a loop over the numbers 0 to count - 1. If at_a_time is 0, each worker gets
 * one range, and all ranges are equally long. Otherwise the workers take ranges of at_a_time
 * numbers from a shared counter; a worker that has finished a range takes the next one. */
typedef struct bsmm_loop {
    int threads;
    int64_t count, at_a_time;
    void (*body)(const void *context, int64_t first, int64_t end, int worker);
    const void *context;
} bsmm_loop;

bsmm_status bsmm_loop_run(const bsmm_loop *loop, const bsmm_pool *pool);

#endif
