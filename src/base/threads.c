/* Determines how many threads a call may use, and runs the work of jobs and loops on them. Threads
 * come from OpenMP or from the caller's pool. Without OpenMP and without a pool, the calling thread
 * does all work. No other file is compiled with OpenMP enabled. */
#include "base/threads.h"

#include <sched.h>
#ifdef _OPENMP
#    include <omp.h>
#else
#    include <unistd.h>
#endif

#ifdef _OPENMP
static int count_processors(void) {
    return omp_get_num_procs();
}
#else
/* Returns the number of processors that the calling thread may run on, like omp_get_num_procs. */
static int count_processors(void) {
#    ifdef CPU_COUNT
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#    endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
#endif

enum { MOST_THREADS = 1024 };

int bsmm_thread_count(uint32_t requested) {
    int threads = requested < MOST_THREADS ? (int)requested : MOST_THREADS;
    if (requested == 0) threads = count_processors();
    return threads < MOST_THREADS ? threads : MOST_THREADS;
}

bsmm_status bsmm_pool_take(const bsmm_pool *from, bsmm_pool *to) {
    *to = (bsmm_pool){0};
    if (!from) return BSMM_OK;
    BSMM_TRY(bsmm_take_struct(to, sizeof *to, from, "pool"));
    if (to->reserved)
        return bsmm_fail(BSMM_E_INVALID, "pool.reserved: value is %u; must be 0", to->reserved);
    if (!to->run) return bsmm_fail(BSMM_E_INVALID, "pool.run: value is NULL; must be given");
    return BSMM_OK;
}

static void run_alone(const bsmm_job *job) {
    for (int phase = 0; phase < job->phases; phase++)
        for (int worker = 0; worker < job->threads; worker++)
            job->work(job->context, phase, worker);
}

/* Runs a job on OpenMP's threads. A job consists of work for job->threads workers. OpenMP may give
 * fewer threads, and each thread then does the work of several workers. */
#ifdef _OPENMP
static void run_by_default(const bsmm_job *job) {
#    pragma omp parallel num_threads(job->threads)
    for (int phase = 0; phase < job->phases; phase++) {
        if (phase > 0) {
#    pragma omp barrier
        }
        for (int worker = omp_get_thread_num(); worker < job->threads;
             worker += omp_get_num_threads())
            job->work(job->context, phase, worker);
    }
}
#else
static void run_by_default(const bsmm_job *job) {
    run_alone(job);
}
#endif

/* This struct is one phase of a job, whose workers run as tasks of a caller's pool. The pool passes
 * a pointer to the struct to each task. Each task is one worker. */
typedef struct phase_run {
    const bsmm_job *job;
    int phase;
    atomic_int done; /* `done` is the number of tasks that have ended. */
    /* `begun` holds a bit for each task that has begun. */
    _Atomic uint64_t begun[MOST_THREADS / 64];
} phase_run;

/* Marks a task as begun. Returns true if the task had not begun before. A caller's pool may run one
 * task twice and leave out another one; this function detects the second start. */
static bool begin_task(phase_run *p, size_t index) {
    const uint64_t bit = (uint64_t)1 << index % 64;
    return !(atomic_fetch_or_explicit(&p->begun[index / 64], bit, memory_order_relaxed) & bit);
}

/* Runs one worker of a phase as a task of the caller's pool, and then adds 1 to the counter `done`.
 * The addition has release order, and run_phase reads the counter with acquire order. The caller of
 * run_phase therefore sees everything that the tasks wrote, even if the pool does not synchronize
 * memory itself. */
static void run_task(void *work, size_t index) {
    phase_run *p = work;
    if (index >= (size_t)p->job->threads || !begin_task(p, index)) return;
    p->job->work(p->job->context, p->phase, (int)index);
    atomic_fetch_add_explicit(&p->done, 1, memory_order_release);
}

/* Marks all tasks that have not begun as begun, so that they can no longer do work. Returns the
 * number of these tasks. */
static int cancel_rest(phase_run *p) {
    int cancelled = 0;
    for (int i = 0; i < p->job->threads; i++)
        cancelled += begin_task(p, (size_t)i);
    return cancelled;
}

static int count_done(phase_run *p) {
    return atomic_load_explicit(&p->done, memory_order_acquire);
}

/* A caller's pool may return too early. Tasks that have begun then still write to the caller's
 * memory, so the function waits for them. It does not run tasks that have not begun, but returns an
 * error: the pool may still hold them, and would later start them with a pointer to a phase_run
 * that no longer exists. */
static bsmm_status run_phase(const bsmm_job *job, int phase, const bsmm_pool *pool) {
    phase_run p = {.job = job, .phase = phase};
    pool->run(pool->context, run_task, &p, (size_t)job->threads);
    const int done = count_done(&p);
    if (done == job->threads) return BSMM_OK;
    const int begun = job->threads - cancel_rest(&p);
    while (count_done(&p) < begun)
        sched_yield();
    return bsmm_fail(BSMM_E_INVALID,
                     "pool.run: returned after %d of %d tasks; must run each of them once", done,
                     job->threads);
}

bsmm_status bsmm_job_run(const bsmm_job *job, const bsmm_pool *pool) {
    if (job->threads <= 1)
        run_alone(job);
    else if (!pool->run)
        run_by_default(job);
    else
        for (int phase = 0; phase < job->phases; phase++)
            BSMM_TRY(run_phase(job, phase, pool));
    return BSMM_OK;
}

typedef struct loop_run {
    const bsmm_loop *loop;
    /* `threads` is the number of workers: the loop's threads, or fewer if the loop has fewer
     * ranges. */
    int threads;
    bsmm_items *items;
} loop_run;

static void run_equal_part(const void *context, int phase, int worker) {
    const loop_run *run = context;
    const bsmm_loop *loop = run->loop;
    (void)phase;
    int64_t each = loop->count / run->threads, left = loop->count % run->threads;
    int64_t first = each * worker + bsmm_min_i64(worker, left);
    int64_t end = first + each + (worker < left);
    if (first < end) loop->body(loop->context, first, end, worker);
}

static void run_free_parts(const void *context, int phase, int worker) {
    const loop_run *run = context;
    const bsmm_loop *loop = run->loop;
    (void)phase;
    for (int64_t first; (first = bsmm_items_take(run->items, loop->at_a_time)) < loop->count;)
        loop->body(loop->context, first, bsmm_min_i64(first + loop->at_a_time, loop->count),
                   worker);
}

bsmm_status bsmm_loop_run(const bsmm_loop *loop, const bsmm_pool *pool) {
    int64_t parts = loop->at_a_time ? bsmm_ceil_div(loop->count, loop->at_a_time) : loop->count;
    bsmm_items items = {0};
    loop_run run = {.loop = loop, .items = &items};
    run.threads = (int)bsmm_min_i64(loop->threads, parts);
    const bsmm_job job = {.threads = run.threads,
                          .phases = 1,
                          .work = loop->at_a_time ? run_free_parts : run_equal_part,
                          .context = &run};
    if (run.threads > 1) return bsmm_job_run(&job, pool);
    if (loop->count > 0) loop->body(loop->context, 0, loop->count, 0);
    return BSMM_OK;
}
