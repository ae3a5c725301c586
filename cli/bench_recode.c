/* Measures conversions (bsmm bench --quantize, --dequantize, --relayout) and compares the rate of
 * each one, in bytes per second, with the memory bandwidth. */
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
    {.key = "modelled",
     .help = "the time comes from a model of the device; false: from a clock, which is the "
             "computer's if "
             "the "
             "device is simulated"},
    {"gbs", "  GB/s", true, "bytes read and written, each once, / seconds / 10^9"},
    {"ceiling_gbs", "ceiling", true,
     "what reading and writing as many bytes of memory or caches reached, the best of the run"},
    {"share", "share", true, "gbs / ceiling_gbs; above 1 only if disturbed"},
    {.key = "threads", .help = "threads that both had"},
    CLI_BENCH_TRUST_COLUMNS,
    {0},
};

typedef struct session {
    const cli_bench_values *values;
    bench_recode_job job;
    bench_device *device; /* `device` is the device that converts. NULL means the host. */
    bench_recode_result now, result;
} session;

static void print_row(const session *s, const bench_ceilings *run, const cli_bench_trust *trust) {
    const cli_bench_values *values = s->values;
    const bench_recode_job *job = &s->job;
    cli_rows *rows = cli_rows_open(cli_bench_recode_columns, values->json);
    double gbs = s->result.bytes / s->result.seconds * 1e-9;
    double ceiling = run->best[BENCH_MEMORY] * 1e-9;
    cli_row_text(rows, values->relayout   ? "relayout"
                       : values->quantize ? "quantize"
                                          : "dequantize");
    cli_row_text(rows, bsmm_format_name(job->from));
    cli_row_text(rows, values->relayout ? values->relayout : bsmm_format_name(job->to));
    cli_row_text(rows, job->amax ? "given" : NULL);
    cli_row_integer(rows, job->rows);
    cli_row_integer(rows, job->cols);
    const bool is_model = s->device && s->device->kind->is_model;
    char seconds[192];
    snprintf(seconds, sizeof seconds, "%s%s", cli_seconds(s->result.seconds).text,
             s->device ? bench_device_time_note(s->device->kind) : "");
    cli_row_value(rows, json_real(s->result.seconds), "%s", seconds);
    cli_row_value(rows, json_boolean(is_model), "%s", "");
    cli_row_number(rows, gbs, "%.2f");
    cli_row_number(rows, ceiling, "%.1f");
    cli_bench_share_cell(rows, gbs / ceiling, trust);
    cli_row_integer(rows, job->threads);
    cli_bench_trust_cells(rows, trust);
    cli_rows_close(rows);
    if (trust->disturbed && !values->json) cli_bench_explain_mark();
}

static int measure_queued(session *s) {
    const char *why = bench_recode_queued(&s->job, s->device, &s->now);
    return why ? cli_fail("%s", why) : CLI_OK;
}

static int measure_host(session *s) {
    bsmm_status status = bench_recode(&s->job, &s->now);
    if (status == BSMM_E_MEMORY)
        return cli_fail("no memory for M=%lld K=%lld", (long long)s->job.rows,
                        (long long)s->job.cols);
    return status ? cli_fail_library(NULL) : CLI_OK;
}

static int measure_one(void *context, size_t row, bench_probed *probed) {
    (void)row;
    session *s = context;
    int status = s->device ? measure_queued(s) : measure_host(s);
    *probed = s->now.probed;
    return status;
}

static void keep_one(void *context, size_t row) {
    (void)row;
    session *s = context;
    s->result = s->now;
}

static int run(session *s) {
    const bench_rows rows = {1, measure_one, keep_one, s};
    bench_ceilings ceilings = {0};
    bench_probed probed = {0};
    int attempts = 0, status = bench_rows_measure(&rows, &ceilings, &probed, &attempts);
    cli_bench_trust trust = cli_bench_trust_of(&ceilings, &probed, attempts);
    if (status == CLI_OK) print_row(s, &ceilings, &trust);
    return status;
}

int cli_bench_recode(const cli_bench_values *values) {
    const bsmm_format format = values->formats.a;
    session s = {.values = values,
                 .job = {.from = values->quantize ? values->from : format,
                         .to = values->dequantize ? values->out : format,
                         .relayout = values->relayout != NULL,
                         .rows = values->m,
                         .cols = values->k_range[0],
                         .recipe = values->recipe,
                         .amax = values->amax,
                         .threads = (int)values->threads,
                         .rounds = (int)values->repeats,
                         .device = values->device}};
    if (values->relayout) bsmm_layout_from_name(values->relayout, &s.job.layout);
    if (bench_device_kind_of(values->device)->is_host) return run(&s);
    s.device = bench_device_open(values->device);
    if (!s.device) return cli_fail("%s", cli_option_message(bench_device_error()));
    int status = run(&s);
    bench_device_close(s.device);
    return status;
}
