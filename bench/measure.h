/* One product, validated and then timed beside its ceiling and its peers. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "peer.h"
#include "probe.h"

#include <bsmm.h>

typedef struct bench_job {
    bsmm_format a, b, out; /* out: f32, f16 or bf16 */
    int64_t sizes[3];      /* M, N, K: 1 and more */
    const char *kernel;    /* NULL: the library chooses */
    const char *device;    /* NULL: "cpu" */
    int threads;
    int rounds;                  /* of timing, 1 and more */
    bool pack_b;                 /* ahead, where the kernel packs; else packing is timed too */
    bool cold;                   /* B comes from memory in every run */
    bool quantized;              /* operands are normal values, quantized */
    bool fast;                   /* kernels with a wider bound are allowed */
    const bench_found *peers;    /* BENCH_PEERS of them, also those that are not there */
    void (*tick)(void *context); /* after each round; may be NULL */
    void *tick_context;
} bench_job;

typedef struct bench_result {
    char kernel[64];
    bool packed;         /* B was packed ahead, */
    double pack_seconds; /* which took so long */
    double seconds;      /* median of all runs */
    double operations;   /* of a run: 2 M N K */
    double intensity;    /* operations per byte of the operands and the result, each once */
    double b_bytes;      /* of B as stored, scales included */
    const char *unit;    /* the probe of the arithmetic unit, */
    double unit_rate;    /* its operations per second, the best round */
    const char *ceiling; /* what limits this product: the unit or, where B is cold, "dram_read" */
    double ceiling_rate; /* operations per second that it allows */
    double peer_seconds[BENCH_PEERS]; /* medians; 0: no such peer */
    double bound; /* the kernel's, as a multiple of sum |a||b| (bsmm_explanation); 0: not used */
    /* Validation: outputs that were compared with double sums over the dequantized operands, how
     * many of them were farther away than the tolerance, the largest |d - exact| / max(1, |exact|),
     * and the output where that was. */
    int64_t checked, failed;
    double max_error, worst, worst_exact;
    int64_t worst_row, worst_col;
} bench_result;

/* Fails with the library's status (bsmm_error_message), or BSMM_E_MEMORY. When outputs failed,
 * nothing has been timed. */
bsmm_status bench_measure(const bench_job *job, bench_result *result);

#endif
