/* Implements the threads that do the library's work on the CPU. The threads belong to this module,
 * so that no OpenMP runtime enters the process. They start at the first call that needs them, and
 * again in a child process after fork. The caller may provide another pool by use_pool. */
#include "extension.h"

#include <pthread.h>
#include <signal.h>

enum { MOST_WORKERS = 1023, STACK_BYTES = 1 << 20 };

/* Describes the work of one call of run_tasks. All threads hold `lock` when they access a field. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bsmm_task task;
    void *context;
    /* `next` is the index of the next task, and `count` is the number of tasks. */
    size_t next, count;
    size_t unfinished; /* `unfinished` counts the tasks that have not returned. */
    size_t workers;    /* `workers` counts the started threads. */
    int is_busy;       /* `is_busy` is 1 while a call of run_tasks is running. */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

/* Runs tasks until all tasks have started. The caller holds the lock. */
static void run_available_tasks(void) {
    while (pool.next < pool.count) {
        size_t index = pool.next++;
        bsmm_task task = pool.task;
        void *context = pool.context;
        pthread_mutex_unlock(&pool.lock);
        task(context, index);
        pthread_mutex_lock(&pool.lock);
        if (--pool.unfinished == 0) pthread_cond_signal(&pool.done);
    }
}

static void *work(void *unused) {
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        run_available_tasks();
        pthread_cond_wait(&pool.work, &pool.lock);
    }
    return NULL;
}

/* Starts threads until there are `wanted` threads, or until the system refuses one. The threads
 * block all signals, so that Python's threads receive them. */
static void start_workers(size_t wanted) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pool.workers >= wanted || pthread_attr_init(&attributes)) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    while (pool.workers < wanted && pthread_create(&thread, &attributes, work, NULL) == 0)
        pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static void run_alone(bsmm_task task, void *context, size_t count) {
    for (size_t i = 0; i < count; i++)
        task(context, i);
}

/* Lets the worker threads and the caller run the tasks. If another thread of the program calls the
 * library meanwhile, the workers are busy, and that thread runs all of its tasks by itself. */
static void run_tasks(bsmm_task task, void *context, size_t count) {
    pthread_mutex_lock(&pool.lock);
    if (pool.is_busy) {
        pthread_mutex_unlock(&pool.lock);
        run_alone(task, context, count);
        return;
    }
    pool.is_busy = 1;
    start_workers(count - 1 < MOST_WORKERS ? count - 1 : MOST_WORKERS);
    pool.task = task;
    pool.context = context;
    pool.next = 0;
    pool.count = pool.unfinished = count;
    pthread_cond_broadcast(&pool.work);
    run_available_tasks();
    while (pool.unfinished)
        pthread_cond_wait(&pool.done, &pool.lock);
    pool.is_busy = 0;
    pthread_mutex_unlock(&pool.lock);
}

/* `run` and `context` change together under the lock, so that a call never mixes two pools. */
static struct {
    pthread_mutex_t lock;
    bsmm_parallel_for run;
    void *context;
} given = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* fork copies both locks. If another thread held one of them at that moment, nobody would ever
 * release the copy in the child process. The thread that forks therefore holds both locks during
 * the fork. */
static void lock_pools(void) {
    pthread_mutex_lock(&given.lock);
    pthread_mutex_lock(&pool.lock);
}

static void unlock_pools(void) {
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&given.lock);
}

static void reset_pools(void) {
    pthread_mutex_init(&given.lock, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.next = pool.count = pool.unfinished = pool.workers = 0;
    pool.is_busy = 0;
}

int bsmm_py_prepare_fork(void) {
    if (pthread_atfork(lock_pools, unlock_pools, reset_pools) == 0) return 0;
    PyErr_NoMemory();
    return -1;
}

static void run_by_choice(void *unused, bsmm_task task, void *work_of_task, size_t count) {
    (void)unused;
    pthread_mutex_lock(&given.lock);
    bsmm_parallel_for run = given.run;
    void *context = given.context;
    pthread_mutex_unlock(&given.lock);
    if (run)
        run(context, task, work_of_task, count);
    else if (count > 1)
        run_tasks(task, work_of_task, count);
    else
        run_alone(task, work_of_task, count);
}

const bsmm_pool *bsmm_py_pool(void) {
    static const bsmm_pool choice = {.struct_size = sizeof choice, .run = run_by_choice};
    return &choice;
}

static PyObject *use_pool(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *run, *context;
    if (!PyArg_ParseTuple(args, "OO", &run, &context)) return NULL;
    void *function = Py_IsNone(run) ? NULL : PyLong_AsVoidPtr(run);
    void *argument = Py_IsNone(context) ? NULL : PyLong_AsVoidPtr(context);
    if (PyErr_Occurred()) return NULL;
    pthread_mutex_lock(&given.lock);
    /* memcpy copies the pointer, because ISO C has no cast from a data pointer to a function
     * pointer. */
    memcpy(&given.run, &function, sizeof function);
    given.context = argument;
    pthread_mutex_unlock(&given.lock);
    Py_RETURN_NONE;
}

static PyObject *pool_workers(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    pthread_mutex_lock(&pool.lock);
    size_t workers = pool.workers;
    pthread_mutex_unlock(&pool.lock);
    return PyLong_FromSize_t(workers);
}

PyMethodDef bsmm_py_pool_methods[] = {
    {"use_pool", use_pool, METH_VARARGS,
     "use_pool(run, context): run tasks by the bsmm_parallel_for at address run; None: own "
     "threads"},
    {"pool_workers", pool_workers, METH_NOARGS, "pool_workers(): number of own threads"},
    {0},
};
