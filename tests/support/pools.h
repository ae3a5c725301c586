/* Declares thread pools for tests. They run tasks in different orders and count how often the
 * library calls them. */
#ifndef BSMM_TEST_POOLS_H
#define BSMM_TEST_POOLS_H

#include "bsmm.h"

typedef enum test_pool_kind {
    TEST_POOL_SERIAL, /* TEST_POOL_SERIAL runs tasks on the calling thread, in order. */
    /* TEST_POOL_REVERSE runs tasks on the calling thread, the last task first. */
    TEST_POOL_REVERSE,
    /* TEST_POOL_PTHREADS runs each task on a thread of its own, with the stack size that bsmm.h
     * requires of a pool. */
    TEST_POOL_PTHREADS,
    TEST_POOL_KINDS
} test_pool_kind;

typedef struct test_pool {
    /* The context of the pool points to this struct, so the struct must not be copied or moved. */
    bsmm_pool pool;
    test_pool_kind kind;
    int calls;         /* `calls` counts the calls of the pool's function `run`. */
    size_t most_tasks; /* `most_tasks` is the largest number of tasks in one call of `run`. */
} test_pool;

void test_pool_make(test_pool *pool, test_pool_kind kind);

#endif
