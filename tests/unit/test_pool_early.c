/* Tests a thread pool of the caller that returns before all of its tasks have ended. */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 3 };

/* This is a pool with one thread of its own, which runs the last task. It returns when this task
 * has begun, and does not wait until the task ends. */
typedef struct hasty {
    pthread_t thread;
    bsmm_task task;
    void *work;
    size_t last;
    bool leaves_first_out;
    atomic_bool begun, ended;
} hasty;

static void *run_the_last(void *context) {
    hasty *h = context;
    h->task(h->work, h->last);
    return NULL;
}

static void return_early(void *context, bsmm_task task, void *work, size_t count) {
    hasty *h = context;
    h->task = task;
    h->work = work;
    h->last = count - 1;
    assert_int_equal(pthread_create(&h->thread, NULL, run_the_last, h), 0);
    while (!atomic_load(&h->begun))
        sched_yield();
    for (size_t i = h->leaves_first_out; i + 1 < count; i++)
        task(work, i);
}

static void end_late(const void *context, int phase, int worker) {
    hasty *h = (hasty *)(uintptr_t)context;
    (void)phase;
    if (worker + 1 < THREADS) return;
    atomic_store(&h->begun, true);
    usleep(50000);
    atomic_store(&h->ended, true);
}

/* Tests a pool that returns while a task is still running. The task writes to memory that the
 * caller may free after the error, so the library must wait for it. */
static void test_early_return(void **state) {
    (void)state;
    for (int left_out = 0; left_out < 2; left_out++) {
        hasty h = {.leaves_first_out = left_out};
        const bsmm_pool pool = {.struct_size = sizeof pool, .run = return_early, .context = &h};
        const bsmm_job job = {.threads = THREADS, .phases = 1, .work = end_late, .context = &h};
        const bsmm_status status = bsmm_job_run(&job, &pool);
        const bool ended = atomic_load(&h.ended);
        assert_int_equal(pthread_join(h.thread, NULL), 0);
        assert_true(ended);
        assert_int_equal(status, BSMM_E_INVALID);
        assert_string_equal(
            bsmm_error_message(),
            left_out ? "pool.run: returned after 1 of 3 tasks; must run each of them once"
                     : "pool.run: returned after 2 of 3 tasks; must run each of them once");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_early_return)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
