/* Declares the counters that the time model of a simulated device returns for a launch. */
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

#include <stddef.h>

enum {
#define COUNTER(name, title, format, factor, help) BENCH_COUNTER_##name,
#include "counters.def"
#undef COUNTER
    BENCH_COUNTERS,
    /* bench keeps the counters of at most BENCH_COUNTED_LAUNCHES launches of a product. */
    BENCH_COUNTED_LAUNCHES = 8,
    /* BENCH_COUNTED_LINES is the largest number of source lines of a launch for which bench keeps
     * the waits. BENCH_WAITS is the number of causes of waits. */
    BENCH_COUNTED_LINES = 10,
    BENCH_WAITS = BENCH_COUNTER_wait_issue - BENCH_COUNTER_wait_memory + 1
};

/* Describes the waits at one line of the kernel's source. waits[i] is the fraction of the waves'
 * cycles that they wait at this line for cause i. */
typedef struct bench_line_waits {
    char place[64];
    double waits[BENCH_WAITS];
} bench_line_waits;

typedef struct bench_counters {
    char kernel[128];
    double values[BENCH_COUNTERS];
    /* `lines` holds the source lines at which waves wait longest, with the longest wait first. */
    bench_line_waits lines[BENCH_COUNTED_LINES];
    size_t line_count;
} bench_counters;

#endif
