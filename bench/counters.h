/* Declares the counters that the time model of a simulated device returns for a launch. */
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

enum {
#define COUNTER(name, title, format, factor, help) BENCH_COUNTER_##name,
#include "counters.def"
#undef COUNTER
    BENCH_COUNTERS,
    /* bench keeps the counters of this number of launches of one product. */
    BENCH_COUNTED_LAUNCHES = 8
};

typedef struct bench_counters {
    char kernel[128];
    double values[BENCH_COUNTERS];
} bench_counters;

#endif
