/* Validates the result of one GEMM, and then times the GEMM together with its ceiling (the peak
 * rate of the hardware) and other libraries (peers). */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "ceiling.h"
#include "data.h"
#include "peer.h"
#include "probe.h"

#include <bsmm.h>

typedef struct bench_job {
    /* `a`, `b` and `out` are the formats of A, B and D. D is f32, f16 or bf16. */
    bsmm_format a, b, out;
    int64_t sizes[3];   /* `sizes` holds the sizes M, N and K, each at least 1. */
    const char *kernel; /* `kernel` is the name of the kernel. NULL lets the library choose. */
    const char *device; /* `device` is the name of the device. NULL means "cpu". */
    /* `probe` points to the loop that measures the peak rate of the arithmetic unit. If it is NULL,
     * bench looks for the fastest such loop first. */
    const bench_probe *probe;
    int threads;
    int rounds; /* `rounds` is the number of timing rounds, at least 1. */
    /* If `pack_b` is true and the kernel accepts weights that were packed in advance, bench packs B
     * before the measurement. Otherwise each timed run gets B as it is stored. If the kernel then
     * has to pack B, the measured time includes the packing. */
    bool pack_b;
    /* `form` is the packed format of B (bsmm_packed_form). BSMM_PACKED_NONE means BSMM_PACKED_WIDE
     * if `pack_b` is true and the kernel reads packed weights. */
    uint32_t form;
    bool cold; /* If `cold` is true, every run reads B from memory instead of a cache. */
    /* If `quantized` is true, the operands are normally distributed values that were quantized. */
    bool quantized;
    /* If `challenge` is true, A, B and their scales are column-major, and elements and scales are
     * normally distributed, as in AMD's FP8 groupwise challenge. */
    bool challenge;
    /* `sampled` affects devices whose times come from a model. If it is true, the simulator
     * executes only the workgroups that the model needs, and bench validates only their outputs. */
    bool sampled;
    /* If `fast` is true, the library may use kernels with a larger error bound
     * (BSMM_COMPUTE_FAST). */
    bool fast;
    /* `peers` has one entry for each of the BENCH_PEERS libraries with which bench can compare. A
     * library may be absent. */
    const bench_found *peers;
    void (*tick)(void *context); /* `tick` is called after each timing round. It may be NULL. */
    void *tick_context;
} bench_job;

typedef struct bench_result {
    char kernel[64];
    bool packed;         /* `packed` is true if B was packed in advance. */
    double pack_seconds; /* `pack_seconds` is the time of packing B in seconds. */
    double seconds;      /* `seconds` is the median time of all runs in seconds. */
    double operations;   /* `operations` is the number of operations of one run, i.e. 2 M N K. */
    /* `light_seconds` is the shortest possible time in seconds. On a GPU it follows from the data
     * sheet's peak rate and bandwidth (bsmm_estimate_sol), and on the CPU from the best rate of the
     * probe (the loop that measures the peak). */
    double light_seconds;
    /* `intensity` is the number of operations per byte of A, B and D. Each byte counts once. */
    double intensity;
    double b_bytes; /* `b_bytes` is the number of bytes of B as stored, including its scales. */
    /* `probe` points to the loop that measures the peak rate of the arithmetic unit. Runs of this
     * loop alternated with runs of the GEMM. */
    const bench_probe *probe;
    /* `probed` holds the rates of the loop `probe`, which measures the peak rate of the arithmetic
     * unit. If each run of the GEMM reads B from memory and not from a cache, it also holds the
     * measured read bandwidth of the memory. On a GPU, `probed` holds only the rate of memory
     * copies. */
    bench_probed probed;
    const char *unit; /* `unit` is the name of `probe`. */
    /* `unit_rate` is the best rate of the loop `probe`, in operations per second, in the whole run
     * of bench. */
    double unit_rate;
    /* `ceiling` is the name of the resource that limits the GEMM: an arithmetic unit, or
     * "dram_read" if reading B from memory is the limit. */
    const char *ceiling;
    /* `ceiling_rate` is the number of operations per second that the resource `ceiling` allows. */
    double ceiling_rate;
    /* `peer_seconds` holds the median times of the other libraries in seconds. 0 means that a
     * library is not available. */
    double peer_seconds[BENCH_PEERS];
    /* On the host, `shortest` and `peer_shortest` are the shortest times in seconds. The other
     * fields hold median times. */
    double shortest, peer_shortest[BENCH_PEERS];
    /* `bound` is the kernel's error bound as a multiple of sum |a||b| (bsmm_explanation). 0 means
     * that the validation does not use it. */
    double bound;
    /* With --check, this is the error level of the kernel, i.e. its typical error divided by the
     * largest typical error that is expected of it (cli/level.h). It is NAN if the level is not
     * known. */
    double error_level;
    /* These fields hold the result of the validation. bench compared `checked` outputs with dot
     * products in double, and `failed` of them exceeded the tolerance. max_error is the largest
     * value of |d - exact| divided by max(1, |exact|). The remaining fields describe the output
     * with that error. */
    int64_t checked, failed;
    double max_error, worst, worst_exact;
    int64_t worst_row, worst_col;
} bench_result;

/* Holds the matrices of a GEMM. `a_wide` and `b_wide` hold the values of A and B in fp32, for other
 * libraries and for the validation. */
typedef struct bench_matrices {
    bsmm_matrix a, b, d, a_wide, b_wide;
} bench_matrices;

/* Creates the matrices of a job, and fills the operands (job.c). Before the call, the caller sets
 * *m to zero. The caller destroys the matrices even if the call fails. */
bsmm_status bench_matrices_create(const bench_job *job, bench_matrices *m);
void bench_matrices_destroy(bench_matrices *m);

bsmm_matmul_desc bench_job_describe(const bench_job *job, const bench_matrices *m);

/* Makes a plan. If the job names a form of packed weights, B is packed in this form. If the job
 * asks for packing without naming a form, B is packed in the form BSMM_PACKED_WIDE if the kernel
 * reads that form, and is not packed otherwise. *packed_bytes is the size of packed B, or 0 if B is
 * not packed. */
bsmm_status bench_job_plan(const bench_job *job, const bench_matrices *m, bsmm_plan **plan,
                           uint64_t *packed_bytes);

/* Measures one GEMM. If a call of the library fails, returns the library's status. If outputs fail
 * the validation, the function does not time the GEMM. */
bsmm_status bench_measure(const bench_job *job, bench_result *result);

/* Sets unit, unit_rate, ceiling and ceiling_rate of a result from the best rates that the probes
 * (loops that measure peak rates) reached in the whole run of bench. */
void bench_measure_limit(const bench_ceilings *run, bench_result *result);

#endif
