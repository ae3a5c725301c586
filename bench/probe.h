/* Ceilings: loops that keep one kind of unit busy and do nothing else, measured beside the work
 * that is compared with them. */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench_probe {
    const char *name;         /* "f32_fma" */
    const char *unit;         /* what bsmm_estimate_sol calls such a unit of a processor: "f32" */
    bool (*available)(void);  /* on this processor */
    double (*work)(uint32_t); /* that many rounds; the result only keeps the compiler honest */
    double per_round;         /* operations in a round */
} bench_probe;

/* Index 0 and up, NULL past the last; the last one of a unit that is available is the fastest. */
const bench_probe *bench_probe_at(uint32_t index);

/* The fastest available probe of a unit or, where the processor has none, of f32. */
const bench_probe *bench_probe_of(const char *unit);

/* The faster of that and of f32's, which can do whatever the others do: some processors have dot
 * products of bf16 that are slower than their multiply-adds. Measures both, in 20 ms. */
const bench_probe *bench_probe_ceiling(const char *unit);

/* Operations per second of one short run (about 2 ms) on that many threads. */
double bench_probe_run(const bench_probe *probe, int threads);

/* The best of five such runs. */
double bench_probe_best(const bench_probe *probe, int threads);

#endif
