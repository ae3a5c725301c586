/* Repeats a run for a time, and computes statistics of the run's times. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <bsmm.h>
#include <stdbool.h>

typedef struct bench_samples {
    double *values;
    size_t count, capacity;
    size_t turns; /* the number of runs, including those that were not timed */
} bench_samples;

bsmm_status bench_samples_add(bench_samples *samples, double value);
/* Sorts the values and returns their median, or 0 if there are none. */
double bench_samples_median(bench_samples *samples);
double bench_samples_best(const bench_samples *samples);
void bench_samples_destroy(bench_samples *samples);

/* Waits until idle threads sleep. Then runs for at least 20 ms and at least once; `turn` counts the
 * runs. Adds the seconds of each run, except of runs shorter than a second that begin before the
 * threads are warm. Stops at the first failure. */
bsmm_status bench_time(bsmm_status (*run)(void *context, size_t turn), void *context, int threads,
                       bench_samples *seconds);

/* Returns true if work that has been running since `began` is warm, that is, the scheduler has
 * moved its threads to separate processors. */
bool bench_is_warm(double began, int threads);

/* Waits until the idle threads of OpenMP and OpenBLAS sleep. They spin for up to 2^26 cycles, which
 * would disturb the next measurement. */
void bench_settle(void);

double bench_now(void); /* Returns the time in seconds since an arbitrary moment. */

#endif
