/* Times quantizing, dequantizing and moving scales, and compares them with reading and writing as
 * many bytes of memory. */
#ifndef BENCH_RECODE_H
#define BENCH_RECODE_H

#include "ceiling.h"
#include "device.h"

typedef struct bench_recode_job {
    /* The formats to convert between. One of them is unscaled f32, f16 or bf16. */
    bsmm_format from, to;
    int64_t rows, cols;
    const char *recipe; /* The recipe of a quantization. NULL: the format's default recipe. */
    int threads, rounds;
    /* Passes the tensor's largest magnitude to the quantization. It is found outside the measured
     * time (bench_recode). */
    bool amax;
    const char *device; /* the name of the device that bench_recode_queued uses */
    /* True if `from` and `to` are the same format, and only the scales are moved to another
     * layout. */
    bool relayout;
    uint32_t layout; /* The layout to which scales are moved. Their source layout is row_major. */
} bench_recode_job;

typedef struct bench_recode_result {
    double seconds;      /* the median time of a conversion, in seconds */
    double bytes;        /* bytes read and written, each counted once */
    bench_probed probed; /* rates of reading and writing memory in the same proportion */
} bench_recode_result;

/* Times moving scales, or quantizing if `to` is scaled, or else dequantizing. Returns the library's
 * status if it fails, or BSMM_E_MEMORY. */
bsmm_status bench_recode(const bench_recode_job *job, bench_recode_result *result);

/* Creates and fills the matrices of a job. `global` is the second-level scale of the one that has
 * one. The caller destroys them even if this fails. */
bsmm_status bench_recode_matrices(const bench_recode_job *job, bsmm_matrix *from, bsmm_matrix *to,
                                  float *global);
/* Counts the bytes that are read and written, each once. */
void bench_recode_bytes(const bench_recode_job *job, const bsmm_matrix *from, const bsmm_matrix *to,
                        double *read, double *written);

/* Fills all fields of the result except the byte counts. `probed` gets the rate of the memory
 * probe, but not the rate of the conversion. A small matrix may fit the caches, and its conversion
 * would then be faster than memory. */
void bench_recode_summarize(bench_samples *seconds, bench_samples *rates,
                            bench_recode_result *result);

/* Like bench_recode, on a device that has queues, compared with copying its memory. Returns NULL,
 * or the reason of a failure. */
const char *bench_recode_queued(const bench_recode_job *job, bench_device *device,
                                bench_recode_result *result);

#endif
