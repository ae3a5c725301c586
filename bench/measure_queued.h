/* Validates the result of one GEMM on a GPU, whose work is queued, and then times it. Also times
 * the same GEMM with the peer library (a library for comparison). Runs use several copies of the
 * operands in turn, so that the operands of a run are not in the GPU's cache. */
#ifndef BENCH_MEASURE_QUEUED_H
#define BENCH_MEASURE_QUEUED_H

#include "device.h"
#include "measure.h"

typedef struct bench_queued_job {
    /* `job` describes the GEMM to measure. Its fields `peers` and `cold` are not used. */
    const bench_job *job;
    bench_device *device;
    /* `peer` points to the loaded library with which bench compares, or NULL if there is none. */
    void *peer;
} bench_queued_job;

typedef struct bench_queued_result {
    /* `ours` is the result of bsmm's GEMM. ours.ceiling names the rate with which bsmm's rate is
     * compared. It is one of three: the name of a GEMM of the other library that bench measures
     * (the peer), the name in `sheet` for the peak of a data sheet, or "copy" for the rate of
     * copies. */
    bench_result ours;
    /* `sheet` is the name of the data sheet's peak for the arithmetic unit in use, such as
     * "h200_sheet". */
    char sheet[32];
    double sheet_rate; /* `sheet_rate` is the peak of the data sheet in operations per second. */
    /* `peer_seconds` holds the median times in seconds of the GEMMs of the peer
     * library. 0 means that there is no such GEMM. */
    double peer_seconds[BENCH_WAYS];
    /* `copy_rate` is the best rate of copies in the run, in bytes read and written per second. */
    double copy_rate;
    /* `counters` holds the counters of the launches of one product, if the device has counters. */
    bench_counters counters[BENCH_COUNTED_LAUNCHES];
    size_t counted;
    /* `way` points to the GEMM with whose rate bsmm's rate is compared. It is a GEMM of the other
     * library that bench measures (the peer). `way` is NULL if no such GEMM was measured. */
    const bench_queued_way *way;
    bool few_rows; /* `few_rows` is true if A has so few rows that memory limits the GEMM. */
    size_t sets;   /* `sets` is the number of copies of the operands, which the runs use in turn. */
} bench_queued_result;

/* Measures one GEMM. Returns NULL, or the reason of a failure. If outputs fail the validation, the
 * function does not time the GEMM. */
const char *bench_measure_queued(const bench_queued_job *job, bench_queued_result *result);

/* Sets copy_rate and the ceiling of a result from the best rates of the whole run of bench. */
void bench_queued_limit(const bench_ceilings *run, bench_queued_result *result);

#endif
