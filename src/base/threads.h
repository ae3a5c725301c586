/* Work that several threads share, on OpenMP's threads or on a pool of the caller's. Which thread
 * does a piece never changes its result. */
#ifndef BSMM_BASE_THREADS_H
#define BSMM_BASE_THREADS_H

#include "base/base.h"

#include <stdatomic.h>

/* Checks a caller's pool, which may be NULL, and copies it. A copy without `run` stands for
 * OpenMP. */
bsmm_status bsmm_pool_take(const bsmm_pool *from, bsmm_pool *to);

/* Work in phases. In each phase, every worker 0 .. threads - 1 calls work once. A phase begins when
 * all workers have finished the one before. A pool may run the workers of a phase one after another
 * on one thread, so a worker must never wait for another inside a phase. */
typedef struct bsmm_job {
    int threads, phases;
    void (*work)(const void *context, int phase, int worker);
    const void *context;
} bsmm_job;

/* Fails only if the caller's pool does. */
bsmm_status bsmm_job_run(const bsmm_job *job, const bsmm_pool *pool);

/* Items 0, 1, 2 and so on, which the workers of a phase take in turn. It has a cache line of its
 * own, because every worker writes to it. */
typedef struct bsmm_items {
    _Alignas(64) _Atomic int64_t taken;
} bsmm_items;

/* Takes `count` items that no worker has taken, and returns the first. */
static inline int64_t bsmm_items_take(bsmm_items *items, int64_t count) {
    return atomic_fetch_add_explicit(&items->taken, count, memory_order_relaxed);
}

/* A loop over [0, count). Workers take equal parts of it if at_a_time is 0, else parts of at_a_time
 * that go to whichever worker is free. */
typedef struct bsmm_loop {
    int threads;
    int64_t count, at_a_time;
    void (*body)(const void *context, int64_t first, int64_t end, int worker);
    const void *context;
} bsmm_loop;

bsmm_status bsmm_loop_run(const bsmm_loop *loop, const bsmm_pool *pool);

#endif
