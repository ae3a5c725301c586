/* Validates the result of one GEMM on a device whose work is queued (a GPU), and then times the
 * GEMM together with its ceilings and its peers. Graphs of runs use several sets of operands in
 * turn, so that the operands of the next run are never in the device's cache. */
#ifndef BENCH_MEASURE_QUEUED_H
#define BENCH_MEASURE_QUEUED_H

#include "device.h"
#include "measure.h"

typedef struct bench_queued_job {
    const bench_job *job; /* the GEMM to measure; its fields `peers` and `cold` are not used */
    bench_device *device;
    void *peer; /* library that the peer opened; NULL: there is none */
} bench_queued_job;

typedef struct bench_queued_result {
    bench_result ours; /* its `ceiling` is the name of a peer's GEMM, `sheet`, or "copy" */
    /* name of the data sheet's peak for the arithmetic unit in use, such as "h200_sheet" */
    char sheet[32];
    double sheet_rate; /* peak of the data sheet in operations per second */
    /* median times of the peer's GEMMs in seconds; 0: not available */
    double peer_seconds[BENCH_WAYS];
    double copy_rate; /* bytes read and written per second by a copy, the best of the run */
    /* the counters of the launches of one product, where the device tells them */
    bench_counters counters[BENCH_COUNTED_LAUNCHES];
    size_t counted;
    /* the peer's GEMM that serves as ceiling; NULL: none was measured */
    const bench_queued_way *way;
    bool few_rows; /* A has so few rows that memory limits the GEMM, whatever the peer reaches */
    size_t sets;   /* number of sets of operands; runs use one set after another */
} bench_queued_result;

/* Measures one GEMM. Returns NULL, or the reason of a failure. If outputs fail the validation, the
 * GEMM is not timed. */
const char *bench_measure_queued(const bench_queued_job *job, bench_queued_result *result);

/* Sets copy_rate, and the name and rate of the ceiling, of a result from the best rates that were
 * measured in the whole run of bench. */
void bench_queued_limit(const bench_ceilings *run, bench_queued_result *result);

#endif
