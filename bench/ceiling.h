/* The ceilings of a run of bench, and the repetition of measurements that were disturbed. A row is
 * one product or conversion that bench measures. A probe is a loop that measures the peak rate of
 * an arithmetic unit or of memory beside the row. A ceiling is such a peak rate.
 *
 * On a busy machine, a probe reaches less than the machine can. The ceiling of every row is
 * therefore the best rate that any probe of the run reached. A row is "disturbed" if its own probes
 * fell short of the ceiling, or if the product was faster than the ceiling. A disturbed row is
 * measured again. */
#ifndef BENCH_CEILING_H
#define BENCH_CEILING_H

#include <stdbool.h>
#include <stddef.h>

enum {
    BENCH_UNIT,   /* the arithmetic unit: operations per second */
    BENCH_MEMORY, /* memory: bytes per second */
    BENCH_CEILINGS,
    BENCH_ATTEMPTS = 3, /* largest number of measurements of a row */
};

/* A row is disturbed if its probe typically reaches less than this fraction of the ceiling. */
#define BENCH_UNDISTURBED 0.9

/* The rates that one measurement of a row reached, for each kind of ceiling (arithmetic unit,
 * memory). If a kind has no probe, its `best`, `typical` and `reached` are 0. */
typedef struct bench_probed {
    double best[BENCH_CEILINGS]; /* best rate of the probe that ran beside the row */
    /* median rate of the probe that ran beside the row, to compare with the time of the row, which
     * is a median too */
    double typical[BENCH_CEILINGS];
    double reached[BENCH_CEILINGS]; /* rate of the product or conversion itself, in the same unit */
} bench_probed;

/* The best rates that any probe of the run reached. */
typedef struct bench_ceilings {
    double best[BENCH_CEILINGS];
} bench_ceilings;

/* Raises the ceilings of a run to the best rates of one more measurement, if these are higher. */
void bench_ceilings_raise(bench_ceilings *run, const bench_probed *row);

/* Returns how far the probes that ran beside the row reached the ceilings of the run. This is the
 * median rate of a probe divided by its ceiling, and the lowest such fraction if the row has
 * several probes. It is 1 if the row has no probes. */
double bench_ceilings_share(const bench_ceilings *run, const bench_probed *row);

/* Returns true if the row is disturbed. It must then be measured again, or marked in the output if
 * no attempt is left. */
bool bench_ceilings_disturbed(const bench_ceilings *run, const bench_probed *row);

/* The rows to measure. `measure` measures one row, stores the result in the context and fills
 * *probed. `keep` makes the latest measurement the result of the row. Both functions get
 * `context`. */
typedef struct bench_rows {
    size_t count;
    /* returns 0, or a failure status */
    int (*measure)(void *context, size_t row, bench_probed *probed);
    void (*keep)(void *context, size_t row);
    void *context;
} bench_rows;

/* Measures all rows once, and then each disturbed row up to two more times. The function keeps the
 * least disturbed measurement of a row, even if another measurement was faster. `probed` and
 * `attempts` have an entry for each row. The function ends at the first failure of `measure` and
 * returns that failure; otherwise it returns 0. */
int bench_rows_measure(const bench_rows *rows, bench_ceilings *run, bench_probed *probed,
                       int *attempts);

#endif
