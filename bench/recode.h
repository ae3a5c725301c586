/* Times conversions, i.e. quantizing, dequantizing, and copying scales to another layout. bench
 * compares each time with the time of only reading and writing the same numbers of bytes. */
#ifndef BENCH_RECODE_H
#define BENCH_RECODE_H

#include "ceiling.h"
#include "device.h"

typedef struct bench_recode_job {
    /* `from` and `to` are the formats to convert between. At least one of them is f32, f16 or bf16
     * without scales, unless bench only copies scales (`relayout`). */
    bsmm_format from, to;
    int64_t rows, cols;
    /* `recipe` is the recipe of a quantization. NULL means the format's default recipe. */
    const char *recipe;
    int threads, rounds;
    /* If `amax` is true, the caller passes the tensor's largest magnitude to the quantization, and
     * bench computes it before it starts to measure the time. */
    bool amax;
    const char *device; /* `device` is the name of the device that bench_recode_queued uses. */
    /* If `relayout` is true, bench only copies scales to another layout. `from` and `to` are then
     * the same format. */
    bool relayout;
    /* `layout` is the layout to which the scales are copied from the row-major layout. */
    uint32_t layout;
} bench_recode_job;

typedef struct bench_recode_result {
    double seconds; /* `seconds` is the median time of one conversion in seconds. */
    double bytes;   /* `bytes` counts the bytes that are read and written. Each byte counts once. */
    /* bench also measures loops that only read and write memory, and `probed` holds their rates.
     * The loops read and write in the same proportion as the conversion. On the host they use as
     * much memory as the conversion's matrices have. If the matrices fit in a cache, the rates are
     * therefore those of this cache. */
    bench_probed probed;
} bench_recode_result;

/* Times a conversion on the host. If `relayout` is set, it copies scales to another layout. If the
 * format `to` has scales, it is a quantization, otherwise a dequantization. Returns the library's
 * status if a call fails. */
bsmm_status bench_recode(const bench_recode_job *job, bench_recode_result *result);

/* Creates and fills the matrices of a job. *global becomes the second-level scale of `from` or
 * `to`, if one of these matrices has such a scale. The caller destroys the matrices even if the
 * call fails. */
bsmm_status bench_recode_matrices(const bench_recode_job *job, bsmm_matrix *from, bsmm_matrix *to,
                                  float *global);
/* Computes the numbers of bytes that a conversion reads and writes. Each byte counts once. */
void bench_recode_bytes(const bench_recode_job *job, const bsmm_matrix *from, const bsmm_matrix *to,
                        double *read, double *written);

/* Fills all fields of the result except `bytes`, which the caller has set. `rates` holds the
 * measured rates of a loop that measures the memory bandwidth. The field `probed` gets the best and
 * the median of these rates, and the rate of the conversion. If the conversion was faster than the
 * loop, bench regards the measurement as disturbed. */
void bench_recode_summarize(bench_samples *seconds, bench_samples *rates,
                            bench_recode_result *result);

/* Times a conversion on a GPU, whose work is queued, and compares it with copying device memory.
 * Returns NULL, or the reason of a failure. */
const char *bench_recode_queued(const bench_recode_job *job, bench_device *device,
                                bench_recode_result *result);

#endif
