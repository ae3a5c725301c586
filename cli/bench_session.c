#include "bench_session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bench_job cli_bench_job_of(const cli_bench_values *values) {
    return (bench_job){.a = values->formats.a,
                       .b = values->formats.b,
                       .out = values->out,
                       .sizes = {values->m, values->n, values->k},
                       .kernel = values->kernel,
                       .device = values->device,
                       .rounds = (int)values->repeats,
                       .pack_b = !values->no_pack_b,
                       .form = cli_packed_form(values->packed),
                       .quantized = values->quantized,
                       .fast = values->fast,
                       .sampled = values->sampled,
                       .challenge = values->challenge};
}

bench_point cli_bench_point_of(const bench_job *job, const bench_result *result, double unit) {
    bench_point point = {.m = job->sizes[0],
                         .k = job->sizes[2],
                         .gflops = result->operations / result->seconds * 1e-9,
                         .ceiling = result->ceiling_rate * 1e-9,
                         .unit = unit * 1e-9,
                         .intensity = result->intensity};
    snprintf(point.kernel, sizeof point.kernel, "%s", result->kernel);
    snprintf(point.limit, sizeof point.limit, "%s", result->ceiling);
    return point;
}

static void tick(void *context) {
    cli_progress_add(context, 1);
}

static int measure_one(void *context, size_t shape, bench_probed *probed) {
    cli_bench_session *s = context;
    cli_bench_shape_at(s->values, (int64_t)shape, s->job.sizes);
    int status = s->parts->measure(s, s->now, probed);
    ((bench_result *)s->now)->error_level = (double)NAN;
    if (status != CLI_OK || !s->values->check) return status;
    return cli_bench_check_level(&s->job, s->now);
}

static void keep_one(void *context, size_t shape) {
    cli_bench_session *s = context;
    memcpy((char *)s->results + shape * s->parts->result_bytes, s->now, s->parts->result_bytes);
    if (shape >= s->kept) s->kept = shape + 1;
}

static void print_rows(cli_bench_session *s, const cli_column *columns) {
    bool marked = false;
    cli_rows *rows = cli_rows_open(columns, s->values->json);
    for (size_t i = 0; i < s->kept; i++) {
        cli_bench_trust trust = cli_bench_trust_of(&s->ceilings, &s->probed[i], s->attempts[i]);
        cli_bench_shape_at(s->values, (int64_t)i, s->job.sizes);
        s->parts->print_row(s, rows, (char *)s->results + i * s->parts->result_bytes, &s->points[i],
                            &trust);
        marked = marked || trust.disturbed;
    }
    cli_rows_close(rows);
    if (s->parts->print_more) s->parts->print_more(s);
    if (marked && !s->values->json) cli_bench_explain_mark();
}

int cli_bench_measure_all(cli_bench_session *s, const cli_column *columns) {
    const size_t shapes = (size_t)cli_bench_shapes(s->values);
    const bench_rows rows = {shapes, measure_one, keep_one, s};
    s->now = cli_alloc(1, s->parts->result_bytes);
    s->results = cli_alloc(shapes, s->parts->result_bytes);
    s->probed = cli_alloc(shapes, sizeof *s->probed);
    s->attempts = cli_alloc(shapes, sizeof *s->attempts);
    s->points = cli_alloc(shapes, sizeof *s->points);
    s->progress = cli_progress_begin("measuring", (uint64_t)shapes * (uint64_t)s->job.rounds);
    s->job.tick = tick;
    s->job.tick_context = &s->progress;
    int status = bench_rows_measure(&rows, &s->ceilings, s->probed, s->attempts);
    cli_progress_end(&s->progress);
    print_rows(s, columns);
    return status;
}

void cli_bench_session_free(cli_bench_session *s) {
    void *const memory[] = {s->now, s->results, s->probed, s->attempts, s->points};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        free(memory[i]);
}

void cli_bench_job_cells(const cli_bench_session *s, cli_rows *rows, const char *kernel) {
    cli_row_text(rows, s->values->formats.name);
    for (int i = 0; i < 3; i++)
        cli_row_integer(rows, s->job.sizes[i]);
    cli_row_text(rows, s->job.device);
    cli_row_text(rows, kernel);
}

int cli_bench_draw(const cli_bench_session *s, const char *device, const bench_plot *limits) {
    const cli_bench_titles titles = cli_bench_titles_of(s->values, device, s->job.threads);
    bench_plot plot = *limits;
    plot.path = s->values->plot;
    plot.title = titles.title;
    plot.subtitle = titles.subtitle;
    plot.points = s->points;
    plot.count = s->kept;
    const char *why = bench_plot_draw(&plot);
    return why ? cli_fail("%s: %s", s->values->plot, why) : CLI_OK;
}
