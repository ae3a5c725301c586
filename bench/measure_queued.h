/* Validates one GEMM on a device that has queues, then times it together with its ceilings and its
 * peers. Graphs of launches run over sets of operands that rotate, so that the next set is never in
 * the device's cache. */
#ifndef BENCH_MEASURE_QUEUED_H
#define BENCH_MEASURE_QUEUED_H

#include "device.h"
#include "measure.h"

typedef struct bench_queued_job {
    const bench_job *job; /* the GEMM to measure; its fields `peers` and `cold` are ignored */
    bench_device *device;
    void *peer; /* The library that the device's peer opened. NULL: there is none. */
} bench_queued_job;

typedef struct bench_queued_result {
    bench_result ours; /* ceiling: name of one of the peer's GEMMs, `sheet`, or "copy" */
    char sheet[32]; /* "h200_sheet": the data sheet's peak for the arithmetic unit of the formats */
    double sheet_rate;               /* the peak of the data sheet, in operations per second */
    double peer_seconds[BENCH_WAYS]; /* medians; 0: the peer is not available */
    double copy_rate;                /* bytes read and written per second, the best of the run */
    const bench_queued_way *way; /* the peer's GEMM that is a ceiling; NULL: none was measured */
    bool few_rows;               /* memory limits it, whatever the peer's rate */
    size_t sets; /* the number of sets of operands; runs use one set after another */
} bench_queued_result;

/* Returns NULL, or the reason of a failure. If outputs failed the validation, nothing has been
 * timed. */
const char *bench_measure_queued(const bench_queued_job *job, bench_queued_result *result);

/* Sets the result's copy_rate and ceiling from the ceilings of its run. */
void bench_queued_limit(const bench_ceilings *run, bench_queued_result *result);

#endif
