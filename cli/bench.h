/* The two things that bench measures, products and conversions, and what they print. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "common.h"
#include "measure.h"

typedef struct cli_bench_values {
    cli_format_pair formats;
    bsmm_format out, from;
    int64_t m, n, k, m_range[2], k_range[2], k_step, threads, repeats;
    const char *kernel, *device, *plot, *recipe;
    bool json, bench, no_pack_b, cold, quantize, dequantize;
} cli_bench_values;

extern const cli_column cli_bench_product_columns[], cli_bench_recode_columns[];

/* How many shapes the ranges of M and K make. M doubles from one to the next. */
int64_t cli_bench_shapes(const cli_bench_values *values);

/* Each measures all shapes of valid values, prints them and returns an exit status. */
int cli_bench_products(const cli_bench_values *values);
int cli_bench_recode(const cli_bench_values *values);

#endif
