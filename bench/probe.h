/* Declares probes, which measure the peak rate of an arithmetic unit. A probe is a loop that keeps
 * the unit busy and does nothing else. bench runs it beside the GEMM that it compares with the
 * peak. */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench_probe {
    const char *name; /* `name` is the name of the probe, such as "f32_fma". */
    /* `unit` is the name that bsmm_estimate_sol gives to the arithmetic unit, such as "f32". */
    const char *unit;
    /* `available` returns true if this processor has the arithmetic unit that the probe
     * measures. */
    bool (*available)(void);
    /* `work` runs the measured loop for a number of rounds. Its return value has no meaning; it
     * keeps the compiler from removing the loop. */
    double (*work)(uint32_t);
    /* `per_round` is the number of operations in one round of the measured loop. */
    double per_round;
} bench_probe;

/* Returns probe number `index`, counted from 0, or NULL after the last probe. A probe is a loop
 * that measures the peak rate of an arithmetic unit. If several available probes measure the same
 * unit, the last of them is the fastest. */
const bench_probe *bench_probe_at(uint32_t index);

/* A probe is a loop that measures the peak rate of an arithmetic unit. Returns the fastest
 * available probe of this unit. If the processor lacks the unit, the function returns the fastest
 * probe of the unit "f32". */
const bench_probe *bench_probe_of(const char *unit);

/* Returns the probe (a loop that measures a peak rate) whose rate is the ceiling of an arithmetic
 * unit. It is the fastest probe of this unit, or the probe of the unit "f32" if that has a higher
 * rate. Some processors do f32 multiply-adds faster than bf16 dot products, and both can compute
 * the same sums. */
const bench_probe *bench_probe_ceiling(const char *unit);

/* A probe is a loop that measures a peak rate. Runs a probe once on `threads` threads, which takes
 * about 2 ms. Returns its operations per second. */
double bench_probe_run(const bench_probe *probe, int threads);

/* A probe is a loop that measures a peak rate. Runs a probe five times on `threads` threads, and
 * returns the best number of operations per second. */
double bench_probe_best(const bench_probe *probe, int threads);

#endif
