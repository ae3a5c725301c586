/* Declares the ceilings of a run of bench, and the repetition of disturbed measurements. A row of
 * the output is one product or conversion. While bench measures a row, it also runs probes. A probe
 * is a loop that measures the peak rate of an arithmetic unit or of memory. The ceiling is the best
 * rate of all probes of the run, because a single probe may be slowed by other work. A row is
 * disturbed if its own probes were slower than the ceiling by more than a tolerance, or if the
 * product or conversion was faster than the ceiling. A disturbed row is measured again. */
#ifndef BENCH_CEILING_H
#define BENCH_CEILING_H

#include <stdbool.h>
#include <stddef.h>

enum {
    BENCH_UNIT,   /* BENCH_UNIT is the ceiling of the arithmetic unit, in operations per second. */
    BENCH_MEMORY, /* BENCH_MEMORY is the ceiling of memory, in bytes per second. */
    BENCH_CEILINGS,
    BENCH_ATTEMPTS = 3, /* BENCH_ATTEMPTS is the largest number of measurements of a row. */
};

/* A row of the output is disturbed if the median rate of its probe is less than this fraction of
 * the ceiling. A probe is a loop that measures the peak rate, and the ceiling is the best rate that
 * a probe of the run reached. */
#define BENCH_UNDISTURBED 0.9

/* Holds the rates of one product or conversion (a row of bench's output), and the peak rates that
 * probes (peak-rate loops) measured together with it. Entry BENCH_UNIT of each array is for the
 * arithmetic unit, and entry BENCH_MEMORY is for the memory. An entry is 0 if no probe measured
 * this resource. */
typedef struct bench_probed {
    /* `best` holds the best rates of the probes, i.e. of the loops that measured the peak rates at
     * the same time as the product. */
    double best[BENCH_CEILINGS];
    /* `typical` holds the median rates of the probes, i.e. of the loops that measured the peak
     * rates at the same time as the product. The product's median time is compared with them. */
    double typical[BENCH_CEILINGS];
    /* `reached` holds the rates that the row's product or conversion reached, in the units of
     * `best`. */
    double reached[BENCH_CEILINGS];
} bench_probed;

/* Holds the best rates that any probe (peak-rate loop) of the run of bench reached. */
typedef struct bench_ceilings {
    double best[BENCH_CEILINGS];
} bench_ceilings;

/* Returns the rates of a row that only memory limits: the best and the median rate of its probe,
 * and the rate that the row itself reached. */
bench_probed bench_probed_memory(double best, double typical, double reached);

/* Replaces each ceiling, i.e. the best rate of the run, by the best rate of this measurement if
 * that is higher. */
void bench_ceilings_raise(bench_ceilings *run, const bench_probed *row);

/* Returns the median rate of the row's probe (peak-rate loop) divided by the ceiling, i.e. by the
 * best rate of this probe in the run. If the row has several probes, returns the lowest such
 * quotient. Returns 1 if the row has no probes. */
double bench_ceilings_share(const bench_ceilings *run, const bench_probed *row);

/* Returns true if other work disturbed the measurement of the row. bench must then measure the row
 * again, or mark it in the output if no attempt is left. */
bool bench_ceilings_disturbed(const bench_ceilings *run, const bench_probed *row);

/* Describes the rows of the output, each of which shows one measurement. `measure` measures one row
 * and stores its result in `context`. `keep` makes the latest measurement the final result of the
 * row. */
typedef struct bench_rows {
    size_t count;
    /* Measures row number `row` and fills *probed. Returns 0, or a failure status. */
    int (*measure)(void *context, size_t row, bench_probed *probed);
    void (*keep)(void *context, size_t row);
    void *context;
} bench_rows;

/* Measures all rows once. Rows whose measurement other work disturbed are measured up to two more
 * times. The function keeps the least disturbed measurement of a row, even if another one was
 * faster. `probed` and `attempts` have an entry for each row. Returns 0, or the first failure of
 * `measure`. */
int bench_rows_measure(const bench_rows *rows, bench_ceilings *run, bench_probed *probed,
                       int *attempts);

#endif
