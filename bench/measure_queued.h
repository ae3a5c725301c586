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
    /* The library's own result. `ceiling` names one of the peer's GEMMs, `sheet`, or "copy". */
    bench_result ours;
    /* The name of the data sheet's peak for the arithmetic unit of the formats, such as
     * "h200_sheet". */
    char sheet[32];
    double sheet_rate; /* the peak of the data sheet, in operations per second */
    /* The median times of the peer's variants. A time is 0 if the peer is not available. */
    double peer_seconds[BENCH_WAYS];
    double copy_rate; /* the bytes read and written per second by a copy, in the best round */
    size_t sets;      /* the number of sets of operands; runs use one set after another */
} bench_queued_result;

/* Returns NULL, or the reason of a failure. If outputs failed the validation, nothing has been
 * timed. */
const char *bench_measure_queued(const bench_queued_job *job, bench_queued_result *result);

#endif
