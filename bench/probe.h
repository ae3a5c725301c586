/* Probes measure the peak of an arithmetic unit: loops that keep the unit busy and do nothing else.
 * They run next to the work that is compared with them. */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench_probe {
    const char *name; /* the name of the measurement, for example "f32_fma" */
    /* the name that bsmm_estimate_sol gives to the arithmetic unit, for example "f32" */
    const char *unit;
    bool (*available)(void); /* Returns true if this processor has the arithmetic unit. */
    /* Runs a number of rounds of the measured loop. The result only keeps the compiler from
     * removing the loop. */
    double (*work)(uint32_t);
    double per_round; /* the operations that one round of the measured loop does */
} bench_probe;

/* Returns a probe, from index 0, or NULL past the last one. The last available probe of a unit is
 * the fastest. */
const bench_probe *bench_probe_at(uint32_t index);

/* Returns the fastest available probe of a unit or, if the processor lacks the unit, of f32. */
const bench_probe *bench_probe_of(const char *unit);

/* Returns the fastest probe of a unit, or f32's if that is faster. f32 can compute whatever the
 * other units can, and some processors have bf16 dot products that are slower than their
 * multiply-adds. It measures both in 20 ms. */
const bench_probe *bench_probe_ceiling(const char *unit);

/* Returns the operations per second of one short run (about 2 ms) on `threads` threads. */
double bench_probe_run(const bench_probe *probe, int threads);

/* Returns the best of five short runs. */
double bench_probe_best(const bench_probe *probe, int threads);

#endif
