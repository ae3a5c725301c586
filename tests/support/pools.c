/* Implements thread pools. They run tasks in order, in reverse order, or each on a thread of its
 * own. */
#include "pools.h"

#include <pthread.h>
#include <stdlib.h>

enum { STACK = 256 << 10 };

static void run_serial(bsmm_task task, void *work, size_t count) {
    for (size_t i = 0; i < count; i++)
        task(work, i);
}

static void run_reverse(bsmm_task task, void *work, size_t count) {
    for (size_t i = count; i-- > 0;)
        task(work, i);
}

typedef struct one_task {
    pthread_t thread;
    bsmm_task task;
    void *work;
    size_t index;
} one_task;

static void *run_one(void *context) {
    one_task *one = context;
    one->task(one->work, one->index);
    return NULL;
}

static void run_pthreads(bsmm_task task, void *work, size_t count) {
    one_task *all = calloc(count, sizeof *all);
    pthread_attr_t attributes;
    if (!all || pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK))
        abort();
    for (size_t i = 0; i < count; i++) {
        all[i] = (one_task){.task = task, .work = work, .index = i};
        if (pthread_create(&all[i].thread, &attributes, run_one, &all[i])) abort();
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(all[i].thread, NULL);
    pthread_attr_destroy(&attributes);
    free(all);
}

static void (*const runs[])(bsmm_task, void *, size_t) = {
    [TEST_POOL_SERIAL] = run_serial,
    [TEST_POOL_REVERSE] = run_reverse,
    [TEST_POOL_PTHREADS] = run_pthreads,
};

static void count_and_run(void *context, bsmm_task task, void *work, size_t count) {
    test_pool *pool = context;
    pool->calls++;
    if (count > pool->most_tasks) pool->most_tasks = count;
    runs[pool->kind](task, work, count);
}

void test_pool_make(test_pool *pool, test_pool_kind kind) {
    *pool = (test_pool){
        .pool = {.struct_size = sizeof pool->pool, .run = count_and_run, .context = pool},
        .kind = kind,
    };
}
