/* Timing: repeated runs, and what is kept of their times. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <bsmm.h>
#include <stdbool.h>

typedef struct bench_samples {
    double *values;
    size_t count, capacity;
    size_t turns; /* runs, those that were not timed too */
} bench_samples;

bsmm_status bench_samples_add(bench_samples *samples, double value);
double bench_samples_median(bench_samples *samples); /* sorts; 0 of none */
double bench_samples_best(const bench_samples *samples);
void bench_samples_destroy(bench_samples *samples);

/* Waits until idle threads sleep, then runs for at least 20 ms and at least once; `turn` counts
 * the runs. Adds the seconds of each, but not of those, shorter than a second, that begin before
 * the threads are warm. Stops at the first failure. */
bsmm_status bench_time(bsmm_status (*run)(void *context, size_t turn), void *context, int threads,
                       bench_samples *seconds);

/* Whether work that began then, and went on since, has brought its threads to processors of their
 * own. */
bool bench_is_warm(double began, int threads);

/* Idle threads of OpenMP and OpenBLAS spin for up to 2^26 cycles; they must sleep before others are
 * timed. */
void bench_settle(void);

double bench_now(void); /* seconds */

#endif
