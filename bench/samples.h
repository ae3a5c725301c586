/* Repeats a run for some time, collects the times of the runs, and computes their median and
 * minimum. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <bsmm.h>
#include <stdbool.h>

typedef struct bench_samples {
    double *values;
    size_t count, capacity;
    size_t turns; /* `turns` counts all runs, including those whose times were dropped. */
} bench_samples;

bsmm_status bench_samples_add(bench_samples *samples, double value);
/* Sorts the values and returns their median, or 0 if there are none. */
double bench_samples_median(bench_samples *samples);
double bench_samples_best(const bench_samples *samples);
void bench_samples_destroy(bench_samples *samples);

/* Repeats a run for at least 20 ms and at least once. `turn` counts the runs. The time of each run
 * in seconds is added to `seconds`. Short runs at the start, before each thread has a processor of
 * its own, are left out (bench_is_warm). The function stops at the first failure. */
bsmm_status bench_time(bsmm_status (*run)(void *context, size_t turn), void *context, int threads,
                       bench_samples *seconds);

/* Returns true if work that began at time `began` is warm. Work is warm if the scheduler has had
 * time to move the threads to separate processors. */
bool bench_is_warm(double began, int threads);

/* Waits until the idle threads of OpenMP and OpenBLAS sleep. Idle threads poll for up to 2^26
 * cycles after their last work, and the polling would disturb the next measurement. */
void bench_settle(void);

double bench_now(void); /* Returns the time in seconds since an arbitrary moment. */

#endif
