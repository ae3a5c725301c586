/* Times conversions (quantizing, dequantizing, and copying scales to another layout). The time of
 * each conversion is compared with the time of only reading and writing the same numbers of
 * bytes. */
#ifndef BENCH_RECODE_H
#define BENCH_RECODE_H

#include "ceiling.h"
#include "device.h"

typedef struct bench_recode_job {
    /* The formats to convert between. At least one of them is unscaled f32, f16 or bf16, except for
     * a relayout. */
    bsmm_format from, to;
    int64_t rows, cols;
    const char *recipe; /* recipe of a quantization; NULL: the format's default recipe */
    int threads, rounds;
    /* Passes the largest magnitude of the tensor to the quantization. It is computed before the
     * time starts (bench_recode). */
    bool amax;
    const char *device; /* name of the device that bench_recode_queued uses */
    /* True if the job only copies scales to another layout; `from` and `to` are then the same
     * format. */
    bool relayout;
    uint32_t layout; /* layout to which the scales are copied; their source layout is row_major */
} bench_recode_job;

typedef struct bench_recode_result {
    double seconds; /* median time of one conversion in seconds */
    double bytes;   /* bytes read and written, where each byte counts once */
    /* rates of reading and writing memory in the same proportion as the conversion */
    bench_probed probed;
} bench_recode_result;

/* Times a conversion on the host. It is a copy of scales to another layout if `relayout` is set, a
 * quantization if the format `to` is scaled, and otherwise a dequantization. Returns the library's
 * status if a call of the library fails, and BSMM_E_MEMORY if memory is missing. */
bsmm_status bench_recode(const bench_recode_job *job, bench_recode_result *result);

/* Creates and fills the matrices of a job. *global becomes the second-level scale of `from` or
 * `to`, if one of these matrices has such a scale. The caller destroys the matrices even if the
 * call fails. */
bsmm_status bench_recode_matrices(const bench_recode_job *job, bsmm_matrix *from, bsmm_matrix *to,
                                  float *global);
/* Computes the numbers of bytes that a conversion reads and writes. Each byte counts once. */
void bench_recode_bytes(const bench_recode_job *job, const bsmm_matrix *from, const bsmm_matrix *to,
                        double *read, double *written);

/* Fills all fields of the result except `bytes`. In `probed` it sets the rate of the memory probe
 * but not the rate of the conversion. A conversion of a small matrix may run in the caches, faster
 * than memory allows. With its rate in `probed`, bench would then take it for a disturbed
 * measurement. */
void bench_recode_summarize(bench_samples *seconds, bench_samples *rates,
                            bench_recode_result *result);

/* Times a conversion as bench_recode does, but on a device whose work is queued (a GPU), and
 * compares it with copying device memory. Returns NULL, or the reason of a failure. */
const char *bench_recode_queued(const bench_recode_job *job, bench_device *device,
                                bench_recode_result *result);

#endif
