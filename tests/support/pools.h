/* Declares thread pools for tests. The pools run tasks in different ways and count how often the
 * library calls them. */
#ifndef BSMM_TEST_POOLS_H
#define BSMM_TEST_POOLS_H

#include "bsmm.h"

typedef enum test_pool_kind {
    TEST_POOL_SERIAL,  /* Runs tasks on the calling thread, in order. */
    TEST_POOL_REVERSE, /* Runs tasks on the calling thread, the last task first. */
    /* Runs each task on a thread of its own. The thread's stack has the size that bsmm.h requires
       of a pool. */
    TEST_POOL_PTHREADS,
    TEST_POOL_KINDS
} test_pool_kind;

typedef struct test_pool {
    bsmm_pool pool; /* The pool's context points to this struct, so the struct must not move. */
    test_pool_kind kind;
    int calls;         /* Counts the calls of the pool's function `run`. */
    size_t most_tasks; /* Holds the largest number of tasks in one call of `run`. */
} test_pool;

void test_pool_make(test_pool *pool, test_pool_kind kind);

#endif
