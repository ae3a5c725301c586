/* Quantizing and dequantizing, timed beside memory that is read and written as much. */
#ifndef BENCH_RECODE_H
#define BENCH_RECODE_H

#include "cuda.h"

typedef struct bench_recode_job {
    bsmm_format from, to; /* one of them unscaled f32, f16 or bf16 */
    int64_t rows, cols;
    const char *recipe; /* NULL: the format's default; of a quantization */
    int threads, rounds;
    const char *device; /* of bench_recode_cuda */
} bench_recode_job;

typedef struct bench_recode_result {
    double seconds;      /* median */
    double bytes;        /* read and written, each once */
    double ceiling_rate; /* bytes per second of reading and writing in the same proportion */
} bench_recode_result;

/* Quantizes if `to` is scaled, else dequantizes. Fails with the library's status, or
 * BSMM_E_MEMORY. */
bsmm_status bench_recode(const bench_recode_job *job, bench_recode_result *result);

/* The same on a GPU, beside copying its memory. NULL, or why it failed. */
const char *bench_recode_cuda(const bench_recode_job *job, bench_cuda *cuda,
                              bench_recode_result *result);

#endif
