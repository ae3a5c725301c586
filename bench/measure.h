/* Validates the result of one GEMM, and then times the GEMM together with its ceiling and its peers
 * (other libraries). */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "ceiling.h"
#include "peer.h"
#include "probe.h"

#include <bsmm.h>

typedef struct bench_job {
    bsmm_format a, b, out; /* formats of A, B and D; D is f32, f16 or bf16 */
    int64_t sizes[3];      /* M, N and K, each at least 1 */
    const char *kernel;    /* name of the kernel; NULL: the library chooses */
    const char *device;    /* name of the device; NULL: "cpu" */
    /* probe of the arithmetic unit; NULL: the fastest probe is found first */
    const bench_probe *probe;
    int threads;
    int rounds;  /* number of timing rounds, at least 1 */
    bool pack_b; /* pack B in advance if the kernel packs it; otherwise each timed run packs it */
    /* form in which B is packed in advance, a bsmm_packed_form; NONE: the form WIDE, if the kernel
     * reads panels of B */
    uint32_t form;
    bool cold;      /* every run reads B from memory and not from a cache */
    bool quantized; /* operands are normally distributed values that were quantized */
    /* If times come from a model: execute only the workgroups that the model needs, and validate
     * only their outputs. */
    bool sampled;
    bool fast; /* allow kernels with a larger error bound (BSMM_COMPUTE_FAST) */
    /* The libraries to compare with, an array of BENCH_PEERS entries. Libraries that are not
     * installed have entries too. */
    const bench_found *peers;
    void (*tick)(void *context); /* called after each round; may be NULL */
    void *tick_context;
} bench_job;

typedef struct bench_result {
    char kernel[64];
    bool packed;         /* B was packed in advance */
    double pack_seconds; /* time of packing B in seconds */
    double seconds;      /* median time of all runs in seconds */
    double operations;   /* operations of one run: 2 M N K */
    double intensity;    /* operations per byte of A, B and D, where each byte counts once */
    double b_bytes;      /* bytes of B as stored, including its scales */
    /* probe of the arithmetic unit; its runs alternated with those of the GEMM */
    const bench_probe *probe;
    bench_probed probed; /* rates of `probe` and, if B is cold, of reading memory */
    const char *unit;    /* name of `probe` */
    double unit_rate;    /* best operations per second of `probe` in the whole run of bench */
    /* Name of the limit of this GEMM: the arithmetic unit or, if B is cold, possibly
     * "dram_read". */
    const char *ceiling;
    double ceiling_rate; /* operations per second that the limit allows */
    /* Median times of the peers in seconds; 0: the peer is not available. */
    double peer_seconds[BENCH_PEERS];
    /* Error bound of the kernel as a multiple of sum |a||b| (bsmm_explanation); 0: the validation
     * does not use it. */
    double bound;
    /* Result of the validation. `checked` outputs were compared with dot products of the
     * dequantized operands in double, and `failed` of these exceeded the tolerance. max_error is
     * the largest |d - exact| / max(1, |exact|). The remaining fields describe the output with that
     * error. */
    int64_t checked, failed;
    double max_error, worst, worst_exact;
    int64_t worst_row, worst_col;
} bench_result;

/* Measures one GEMM. Returns the library's status if a call of the library fails
 * (bsmm_error_message has the reason), and BSMM_E_MEMORY if memory is missing. If outputs fail the
 * validation, the GEMM is not timed. */
bsmm_status bench_measure(const bench_job *job, bench_result *result);

/* Sets unit, unit_rate, ceiling and ceiling_rate of a result from the best rates that the probes
 * reached in the whole run of bench. */
void bench_measure_limit(const bench_ceilings *run, bench_result *result);

#endif
