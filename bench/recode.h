/* Quantizing and dequantizing, timed beside memory that is read and written as much. */
#ifndef BENCH_RECODE_H
#define BENCH_RECODE_H

#include <bsmm.h>

typedef struct bench_recode_job {
    bsmm_format from, to; /* one of them unscaled f32, f16 or bf16 */
    int64_t rows, cols;
    const char *recipe; /* NULL: the format's default; of a quantization */
    int threads, rounds;
} bench_recode_job;

typedef struct bench_recode_result {
    double seconds;      /* median */
    double bytes;        /* read and written, each once */
    double ceiling_rate; /* bytes per second of reading and writing in the same proportion */
} bench_recode_result;

/* Quantizes if `to` is scaled, else dequantizes. Fails with the library's status, or
 * BSMM_E_MEMORY. */
bsmm_status bench_recode(const bench_recode_job *job, bench_recode_result *result);

#endif
