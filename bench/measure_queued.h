/* One product on a device that has queues, validated and then timed beside its ceilings and its
 * peers: graphs of launches over operands that rotate, so that the device's cache holds none of the
 * next ones. */
#ifndef BENCH_MEASURE_QUEUED_H
#define BENCH_MEASURE_QUEUED_H

#include "device.h"
#include "measure.h"

typedef struct bench_queued_job {
    const bench_job *job; /* peers and cold are not looked at */
    bench_device *device;
    void *peer; /* what the device's peer opened; NULL: none */
} bench_queued_job;

typedef struct bench_queued_result {
    bench_result ours; /* ceiling: a way of the peer, sheet or "copy" */
    char sheet[32];    /* "h200_sheet": the peak of the data sheet for the formats' unit, */
    double sheet_rate; /* operations per second */
    double peer_seconds[BENCH_WAYS]; /* medians; 0: no such peer */
    double copy_rate;                /* bytes per second, read and written, the best round */
    size_t sets;                     /* of operands that rotate */
} bench_queued_result;

/* NULL, or why it failed. When outputs failed validation, nothing has been timed. */
const char *bench_measure_queued(const bench_queued_job *job, bench_queued_result *result);

#endif
