/* Thread pools for tests. They run tasks in different ways and count how often the library calls
 * them. */
#ifndef BSMM_TEST_POOLS_H
#define BSMM_TEST_POOLS_H

#include "bsmm.h"

typedef enum test_pool_kind {
    TEST_POOL_SERIAL,   /* on the calling thread, in order */
    TEST_POOL_REVERSE,  /* on the calling thread, the last task first */
    TEST_POOL_PTHREADS, /* each task on a thread of its own, with the stack that bsmm.h promises */
    TEST_POOL_KINDS
} test_pool_kind;

typedef struct test_pool {
    bsmm_pool pool; /* its context is this struct, which must stay where it is */
    test_pool_kind kind;
    int calls;         /* the number of calls of the pool's function `run` */
    size_t most_tasks; /* the largest number of tasks in one call */
} test_pool;

void test_pool_make(test_pool *pool, test_pool_kind kind);

#endif
