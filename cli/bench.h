/* `bsmm bench` measures two things, products and conversions; these functions measure them and
 * print the results. */
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

/* Returns the number of shapes in the ranges of M and K. M doubles from one shape to the next. */
int64_t cli_bench_shapes(const cli_bench_values *values);

/* Gives shape number `index`, in the order of the output. */
void cli_bench_shape_at(const cli_bench_values *values, int64_t index, int64_t sizes[3]);

/* Writes the title of a plot: the formats, the sizes that do not vary, and the device. */
void cli_bench_title(const cli_bench_values *values, const char *where, char *title, size_t size);

/* Prints why an output was wrong, and returns an exit status. */
int cli_bench_report_failure(const bench_job *job, const bench_result *result);

/* These functions measure all shapes of validated options, print the results and return an exit
 * status. */
int cli_bench_products(const cli_bench_values *values);
int cli_bench_recode(const cli_bench_values *values);
/* Measures products on a device with queues. */
int cli_bench_queued(const cli_bench_values *values);

#endif
