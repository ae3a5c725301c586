/* Measures conversions (bsmm bench --quantize, --dequantize, --relayout) and compares them with the
 * bandwidth of memory. */
#include "bench.h"
#include "recode.h"
#include "rows.h"
#include <stdio.h>

const cli_column cli_bench_recode_columns[] = {
    {"work", "work", false, "quantize, dequantize or relayout"},
    {"from", "from", false, "format that is read"},
    {"to", "to", false, "format that is written, or scale layout"},
    {"amax", "amax", false,
     "given: the tensor's largest magnitude is, and the recipe need not look for it"},
    {"rows", " rows", true, "rows of the matrix"},
    {"cols", " cols", true, "its columns"},
    {"seconds", "   time", true, "median time of one conversion"},
    {"gbs", "  GB/s", true, "bytes read and written, each once, / seconds / 10^9"},
    {"ceiling_gbs", "ceiling", true,
     "what reading and writing memory in the same proportion reached beside it"},
    {"share", "share", true, "gbs / ceiling_gbs"},
    {"threads", NULL, true, "threads that both had"},
    {0},
};

static void print_row(const cli_bench_values *values, const bench_recode_job *job,
                      const bench_recode_result *result) {
    cli_rows *rows = cli_rows_open(cli_bench_recode_columns, values->json);
    double gbs = result->bytes / result->seconds * 1e-9, ceiling = result->ceiling_rate * 1e-9;
    cli_row_text(rows, values->relayout   ? "relayout"
                       : values->quantize ? "quantize"
                                          : "dequantize");
    cli_row_text(rows, bsmm_format_name(job->from));
    cli_row_text(rows, values->relayout ? values->relayout : bsmm_format_name(job->to));
    cli_row_text(rows, job->amax ? "given" : NULL);
    cli_row_integer(rows, job->rows);
    cli_row_integer(rows, job->cols);
    cli_row_value(rows, json_real(result->seconds), "%s", cli_seconds(result->seconds).text);
    cli_row_number(rows, gbs, "%.2f");
    cli_row_number(rows, ceiling, "%.1f");
    cli_row_value(rows, json_real(gbs / ceiling), "%.1f%%", 100 * gbs / ceiling);
    cli_row_integer(rows, job->threads);
    cli_rows_close(rows);
}

static int recode_queued(const cli_bench_values *values, const bench_recode_job *job) {
    bench_recode_result result = {0};
    bench_device *device = bench_device_open(values->device);
    if (!device) return cli_fail("%s", bench_device_error());
    const char *why = bench_recode_queued(job, device, &result);
    if (!why) print_row(values, job, &result);
    bench_device_close(device);
    return why ? cli_fail("%s", why) : CLI_OK;
}

int cli_bench_recode(const cli_bench_values *values) {
    bench_recode_result result = {0};
    const bsmm_format format = values->formats.a;
    bench_recode_job job = {.from = values->quantize ? values->from : format,
                            .to = values->dequantize ? values->out : format,
                            .relayout = values->relayout != NULL,
                            .rows = values->m,
                            .cols = values->k_range[0],
                            .recipe = values->recipe,
                            .amax = values->amax,
                            .threads = (int)values->threads,
                            .rounds = (int)values->repeats,
                            .device = values->device};
    if (values->relayout) bsmm_layout_from_name(values->relayout, &job.layout);
    if (!bench_device_kind_of(values->device)->is_host) return recode_queued(values, &job);
    bsmm_status status = bench_recode(&job, &result);
    if (status == BSMM_E_MEMORY)
        return cli_fail("no memory for M=%lld K=%lld", (long long)job.rows, (long long)job.cols);
    if (status) return cli_fail_library(NULL);
    print_row(values, &job, &result);
    return CLI_OK;
}
