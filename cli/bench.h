/* The two things that bench measures, products and conversions, and what they print. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "common.h"
#include "measure.h"

typedef struct cli_bench_values {
    cli_format_pair formats;
    bsmm_format out, from;
    int64_t m, n, k, m_range[2], k_range[2], k_step, threads, repeats;
    const char *kernel, *device, *plot, *recipe, *peer, *relayout;
    bool json, bench, no_pack_b, cold, quantized, quantize, dequantize, amax, fast;
} cli_bench_values;

extern const cli_column cli_bench_product_columns[], cli_bench_recode_columns[],
    cli_bench_queued_columns[];

/* How many shapes the ranges of M and K make. M doubles from one to the next. */
int64_t cli_bench_shapes(const cli_bench_values *values);

/* Shape number `index`, in the order of the output. */
void cli_bench_shape_at(const cli_bench_values *values, int64_t index, int64_t sizes[3]);

/* The title of a plot: formats, the sizes that stay the same, and where it ran. */
void cli_bench_title(const cli_bench_values *values, const char *where, char *title, size_t size);

/* Prints why an output was wrong; returns an exit status. */
int cli_bench_report_failure(const bench_job *job, const bench_result *result);

/* Each measures all shapes of valid values, prints them and returns an exit status. */
int cli_bench_products(const cli_bench_values *values);
int cli_bench_recode(const cli_bench_values *values);
int cli_bench_queued(const cli_bench_values *values); /* products on a device with queues */

#endif
