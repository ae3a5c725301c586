/* The ceilings of a run, and the rows that have to be measured again because of them.
 *
 * On a busy machine a probe reaches less than the machine can. The ceiling of every row is
 * therefore the best that any probe of the run reached. A row is disturbed if its own probes fell
 * short of that, or if the product was faster than it; such a row is measured again. */
#ifndef BENCH_CEILING_H
#define BENCH_CEILING_H

#include <stdbool.h>
#include <stddef.h>

enum {
    BENCH_UNIT,   /* the arithmetic unit: operations per second */
    BENCH_MEMORY, /* memory: bytes per second */
    BENCH_CEILINGS,
    BENCH_ATTEMPTS = 3, /* how often a row is measured at most */
};

/* A row whose probe is typically below this share of the ceiling is disturbed. */
#define BENCH_UNDISTURBED 0.9

/* One measurement of a row. 0 everywhere: that ceiling has no probe. */
typedef struct bench_probed {
    double best[BENCH_CEILINGS];    /* of the row's probes */
    double typical[BENCH_CEILINGS]; /* their median, as the row's time is a median */
    double reached[BENCH_CEILINGS]; /* the work that was measured, in the same units */
} bench_probed;

/* The best of the run. */
typedef struct bench_ceilings {
    double best[BENCH_CEILINGS];
} bench_ceilings;

/* Raises the ceilings to what one more measurement reached. */
void bench_ceilings_raise(bench_ceilings *run, const bench_probed *row);

/* The lowest share of its ceiling that a probe of the row typically reached; 1 without probes. */
double bench_ceilings_share(const bench_ceilings *run, const bench_probed *row);

/* Returns true if the row is disturbed, so that it has to be measured again, or marked if no
 * attempt is left. */
bool bench_ceilings_disturbed(const bench_ceilings *run, const bench_probed *row);

/* The rows to measure. `measure` measures a row, stores the measurement in the context and fills
 * *probed. `keep` makes the latest measurement the row's result. Both functions get `context`. */
typedef struct bench_rows {
    size_t count;
    int (*measure)(void *context, size_t row, bench_probed *probed); /* 0, or why it failed */
    void (*keep)(void *context, size_t row);
    void *context;
} bench_rows;

/* Measures all rows once, then up to twice more those that are disturbed; the least disturbed
 * measurement of a row is kept, however fast it was. `probed` and `attempts` have an element for
 * each row. Ends with the first failure of `measure`, which it returns, else 0. */
int bench_rows_measure(const bench_rows *rows, bench_ceilings *run, bench_probed *probed,
                       int *attempts);

#endif
