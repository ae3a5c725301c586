/* Quantizing, dequantizing and moving scales, timed beside memory that is read and written as much.
 */
#ifndef BENCH_RECODE_H
#define BENCH_RECODE_H

#include "device.h"

typedef struct bench_recode_job {
    bsmm_format from, to; /* one of them unscaled f32, f16 or bf16 */
    int64_t rows, cols;
    const char *recipe; /* NULL: the format's default; of a quantization */
    int threads, rounds;
    bool amax;          /* bench_recode's quantization is given the tensor's, found untimed */
    const char *device; /* of bench_recode_queued */
    bool relayout;      /* from and to are one format: only its scales move, */
    uint32_t layout;    /* from row_major to this layout */
} bench_recode_job;

typedef struct bench_recode_result {
    double seconds;      /* median */
    double bytes;        /* read and written, each once */
    double ceiling_rate; /* bytes per second of reading and writing in the same proportion */
} bench_recode_result;

/* Moves scales, or quantizes if `to` is scaled, or else dequantizes. Fails with the library's
 * status, or BSMM_E_MEMORY. */
bsmm_status bench_recode(const bench_recode_job *job, bench_recode_result *result);

/* The matrices of a job, filled; `global` is the second-level scale of the one that has any. They
 * are destroyed whether this succeeds or not. */
bsmm_status bench_recode_matrices(const bench_recode_job *job, bsmm_matrix *from, bsmm_matrix *to,
                                  float *global);
/* Bytes that are read and written, each once. */
void bench_recode_bytes(const bench_recode_job *job, const bsmm_matrix *from, const bsmm_matrix *to,
                        double *read, double *written);

/* The same on a device that has queues, beside copying its memory. NULL, or why it failed. */
const char *bench_recode_queued(const bench_recode_job *job, bench_device *device,
                                bench_recode_result *result);

#endif
