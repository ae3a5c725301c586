/* Validates one GEMM, then times it together with its peak and its peers. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "ceiling.h"
#include "peer.h"
#include "probe.h"

#include <bsmm.h>

typedef struct bench_job {
    bsmm_format a, b, out;    /* the formats of A, B and D; D is f32, f16 or bf16 */
    int64_t sizes[3];         /* M, N and K, each at least 1 */
    const char *kernel;       /* the name of the kernel, or NULL if the library chooses one */
    const char *device;       /* the name of the device; NULL means "cpu" */
    const bench_probe *probe; /* measures the arithmetic unit; NULL: the fastest is found first */
    int threads;
    int rounds;  /* the number of timing rounds, at least 1 */
    bool pack_b; /* Packs B in advance, if the kernel packs. Otherwise the time includes packing. */
    uint32_t
        form;  /* The bsmm_packed_form of B, with pack_b. NONE: wide, if the kernel has panels. */
    bool cold; /* Every run reads B from memory and not from a cache. */
    bool quantized; /* The operands are normally distributed values that were quantized. */
    bool fast;      /* Allows kernels with a larger error bound (BSMM_COMPUTE_FAST). */
    /* An array of BENCH_PEERS libraries to compare with, including those that are not installed. */
    const bench_found *peers;
    void (*tick)(void *context); /* This function is called after each round. It may be NULL. */
    void *tick_context;
} bench_job;

typedef struct bench_result {
    char kernel[64];
    bool packed;              /* true if B was packed in advance */
    double pack_seconds;      /* the time that packing B took, in seconds */
    double seconds;           /* the median time of all runs, in seconds */
    double operations;        /* operations of a run: 2 M N K */
    double intensity;         /* operations per byte of operands and result, each counted once */
    double b_bytes;           /* bytes of B as stored, including scales */
    const bench_probe *probe; /* the probe of the arithmetic unit, whose runs alternated with the
                               * GEMM's */
    bench_probed probed;      /* rates of that probe and, if B is cold, of reading memory */
    const char *unit;         /* name of the probe that measures the arithmetic unit */
    double unit_rate;         /* best operations per second of that probe in the run */
    /* the limit of this GEMM: the arithmetic unit or, if B is cold, "dram_read" */
    const char *ceiling;
    double ceiling_rate; /* the operations per second that the limit allows */
    /* The median times of the peers. A time is 0 if the peer is not available. */
    double peer_seconds[BENCH_PEERS];
    /* The error bound of the kernel, as a multiple of sum |a||b| (bsmm_explanation). 0: it is not
     * used. */
    double bound;
    /* Validation. `checked` outputs were compared with dot products of the dequantized operands in
     * double, and `failed` of them exceeded the tolerance. max_error is the largest |d - exact| /
     * max(1, |exact|), and the remaining fields describe the output that has it. */
    int64_t checked, failed;
    double max_error, worst, worst_exact;
    int64_t worst_row, worst_col;
} bench_result;

/* Measures a GEMM. Returns the library's status if it fails (bsmm_error_message), or BSMM_E_MEMORY.
 * If outputs failed the validation, nothing has been timed. */
bsmm_status bench_measure(const bench_job *job, bench_result *result);

/* Sets the result's unit and ceiling from the ceilings of its run. */
void bench_measure_limit(const bench_ceilings *run, bench_result *result);

#endif
