#include "samples.h"

#include <stdlib.h>
#include <time.h>

static const double round_seconds = 0.02;

/* After two threads wake from sleep, they may share a processor for up to warm_seconds, until the
 * scheduler moves one of them. The measurement leaves out this time, unless a run takes at least
 * long_seconds and is therefore hardly affected. */
static const double warm_seconds = 0.05, long_seconds = 1;

bsmm_status bench_samples_add(bench_samples *s, double value) {
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 64;
        double *values = realloc(s->values, capacity * sizeof *values);
        if (!values) return BSMM_E_MEMORY;
        s->values = values;
        s->capacity = capacity;
    }
    s->values[s->count++] = value;
    return BSMM_OK;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_samples_median(bench_samples *s) {
    if (s->count == 0) return 0;
    qsort(s->values, s->count, sizeof *s->values, compare_doubles);
    return (s->values[(s->count - 1) / 2] + s->values[s->count / 2]) / 2;
}

double bench_samples_best(const bench_samples *s) {
    double best = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->values[i] > best) best = s->values[i];
    return best;
}

void bench_samples_destroy(bench_samples *s) {
    free(s->values);
    *s = (bench_samples){0};
}

double bench_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void bench_settle(void) {
    static const struct timespec rest = {.tv_nsec = 40000000};
    nanosleep(&rest, NULL);
}

bool bench_is_warm(double began, int threads) {
    return threads == 1 || bench_now() - began >= warm_seconds;
}

bsmm_status bench_time(bsmm_status (*run)(void *context, size_t turn), void *context, int threads,
                       bench_samples *seconds) {
    bench_settle();
    double began = bench_now(), counted = 0;
    do {
        bool warm = bench_is_warm(began, threads);
        double started = bench_now();
        bsmm_status status = run(context, seconds->turns++);
        double took = bench_now() - started;
        if (status) return status;
        if (!warm && took < long_seconds) continue;
        status = bench_samples_add(seconds, took);
        if (status) return status;
        counted += took;
    } while (counted < round_seconds);
    return BSMM_OK;
}
