/* Repeats a run for some time, collects the times of the runs, and computes statistics of them. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <bsmm.h>
#include <stdbool.h>

typedef struct bench_samples {
    double *values;
    size_t count, capacity;
    size_t turns; /* number of runs, including those that were not timed */
} bench_samples;

bsmm_status bench_samples_add(bench_samples *samples, double value);
/* bench_samples_median sorts the values and returns their median, or 0 if there are none. */
double bench_samples_median(bench_samples *samples);
double bench_samples_best(const bench_samples *samples);
void bench_samples_destroy(bench_samples *samples);

/* Repeats a run for at least 20 ms and at least once; `turn` counts the runs. Before the first run
 * it waits until idle threads sleep. It adds the time of each run in seconds to `seconds`. Runs
 * that are shorter than a second and begin before the threads are warm (bench_is_warm) are left
 * out. It stops at the first failure. */
bsmm_status bench_time(bsmm_status (*run)(void *context, size_t turn), void *context, int threads,
                       bench_samples *seconds);

/* Returns true if work that has been running since `began` is warm, i.e. the scheduler has had the
 * time to move its threads to separate processors. */
bool bench_is_warm(double began, int threads);

/* Waits until the idle threads of OpenMP and OpenBLAS sleep. They busy-wait for up to 2^26 cycles
 * after their last work, which would disturb the next measurement. */
void bench_settle(void);

double bench_now(void); /* time in seconds since an arbitrary moment */

#endif
