/* One product on a GPU, validated and then timed beside its ceilings and its peers: graphs of
 * launches over operands that rotate, so that the level-2 cache holds none of the next ones. */
#ifndef BENCH_MEASURE_CUDA_H
#define BENCH_MEASURE_CUDA_H

#include "cublaslt.h"
#include "measure.h"

typedef struct bench_cuda_job {
    const bench_job *job; /* peers and cold are not looked at */
    bench_cuda *cuda;
    bench_lt *lt; /* NULL: no peers */
} bench_cuda_job;

typedef struct bench_cuda_result {
    bench_result ours; /* ceiling: "cublaslt_fp8", "cublaslt_bf16", sheet or "copy" */
    char sheet[32];    /* "h200_sheet": the peak of the data sheet for the formats' unit, */
    double sheet_rate; /* operations per second */
    double peer_seconds[BENCH_LT_KINDS]; /* medians; 0: no such peer */
    double copy_rate;                    /* bytes per second, read and written, the best round */
    size_t sets;                         /* of operands that rotate */
} bench_cuda_result;

/* NULL, or why it failed. When outputs failed validation, nothing has been timed. */
const char *bench_measure_cuda(const bench_cuda_job *job, bench_cuda_result *result);

/* So many sets of `bytes` that they take four times the level-2 cache: 4 to 1024. */
size_t bench_cuda_sets(const bench_cuda *cuda, uint64_t bytes);

#endif
