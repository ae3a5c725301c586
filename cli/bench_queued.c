/* Measures products on a GPU, whose work is queued. Compares each product with its ceiling (the
 * measured peak rate) and with another library (the peer). */
#include "bench_session.h"
#include "device_texts.h"
#include "measure_queued.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Defines two output columns for one kind of GEMM of the library with which bench compares, such as
 * FP8. The first column has the GFLOP/s of that library, and its title is filled in later. The
 * second column has bsmm's GFLOP/s divided by those of that library. */
#define WAY                                                                                        \
    {NULL, "", true, NULL}, {                                                                      \
        NULL, "ratio", true, NULL                                                                  \
    }

const cli_column cli_bench_queued_columns[] = {
    CLI_BENCH_JOB_COLUMNS,
    {"seconds", "    time", true, "median time of one product, A's packing included"},
    {.key = "modelled",
     .help = "the time comes from a model of the device; false: from its clock, or from the "
             "computer's if "
             "the "
             "device is simulated"},
    {"gflops", "GFLOP/s", true, "2 M N K / seconds / 10^9"},
    {"ceiling_gflops", "ceiling", true, "what `ceiling` allowed"},
    {"share", "share", true, "gflops / ceiling_gflops, the share of the speed of light"},
    {"ceiling", "of", false,
     BENCH_PEER_CEILINGS
     "; copy where that is lower or M is 32 and less: moving A, B and D as stored "
     "at the speed of a copy"},
    {.key = "peers",
     .help =
         "GFLOP/s of " BENCH_PEER_TITLE " on the same shape in the same run: " BENCH_PEER_COLUMN},
    WAY,
    WAY,
    WAY,
    {"max_error", "max error", true,
     "largest |d - exact| / max(1, |exact|) over the validated outputs"},
    {.key = "b_packed", .help = "B was packed in advance; false: the kernel takes it as stored"},
    {.key = "pack_b_seconds", .help = "how long that takes; null if it was not"},
    {"b_gbs", "B GB/s", true, "bytes of B as stored / seconds / 10^9"},
    {.key = "copy_gbs",
     .help = "bytes read and written by a copy of device memory, / 10^9 s, the best of the run"},
    {.key = "intensity", .help = "operations per byte of A, B, their scales and D"},
    {.key = "sets", .help = "sets of operands that take turns"},
    {.key = "counters", .help = "with --counters, what the time of each launch consists of"},
    CLI_BENCH_LEVEL_COLUMN,
    CLI_BENCH_TRUST_COLUMNS,
    {0},
};

typedef struct session {
    cli_bench_session base;
    bench_queued_job on;
    cli_column columns[sizeof cli_bench_queued_columns / sizeof(cli_column)];
} session;

static const bench_queued_peer *peer_of(const cli_bench_session *s) {
    return bench_device_kind_of(s->values->device)->peer;
}

/* Returns the output columns. Their titles name the GEMMs of the library with which bench
 * compares. */
static const cli_column *columns_of(session *s) {
    const bench_queued_peer *peer = peer_of(&s->base);
    size_t way = 0;
    memcpy(s->columns, cli_bench_queued_columns, sizeof cli_bench_queued_columns);
    for (cli_column *c = s->columns; c->key || c->title; c++)
        if (c->title && !*c->title) c->title = peer ? peer->ways[way++].title : "-";
    return s->columns;
}

static void print_peers(cli_rows *rows, const bench_queued_peer *peer, const bench_point *point) {
    json_t *peers = json_object();
    for (int i = 0; i < BENCH_WAYS; i++)
        if (point->peers[i] > 0)
            json_object_set_new(peers, peer->ways[i].name, json_real(point->peers[i]));
    cli_row_value(rows, peers, "%s", "");
    for (int i = 0; i < BENCH_WAYS; i++) {
        bool there = point->peers[i] > 0;
        cli_row_value(rows, NULL, there ? "%.0f" : "-", point->peers[i]);
        cli_row_value(rows, NULL, there ? "%.3f" : "-", point->gflops / point->peers[i]);
    }
}

static void print_cells(const cli_bench_session *s, cli_rows *rows,
                        const bench_queued_result *result, const bench_point *point,
                        const cli_bench_trust *trust) {
    const bench_result *ours = &result->ours;
    const bench_device_kind *kind = bench_device_kind_of(s->values->device);
    cli_bench_job_cells(s, rows, ours->kernel);
    cli_row_value(rows, json_real(ours->seconds), "%.2f us%s", ours->seconds * 1e6,
                  bench_device_time_note(kind));
    cli_row_value(rows, json_boolean(kind->is_model), "%s", "");
    cli_row_number(rows, point->gflops, "%.0f");
    cli_row_number(rows, point->ceiling, "%.0f");
    cli_bench_share_cell(rows, point->gflops / point->ceiling, trust);
    cli_row_text(rows, ours->ceiling);
    print_peers(rows, peer_of(s), point);
    cli_row_number(rows, ours->max_error, "%.2g");
    cli_row_value(rows, json_boolean(ours->packed), "%s", "");
    cli_row_number(rows, ours->packed ? ours->pack_seconds : NAN, "%.3g");
    cli_row_number(rows, ours->b_bytes / ours->seconds * 1e-9, "%.0f");
    cli_row_number(rows, result->copy_rate * 1e-9, "%.0f");
    cli_row_number(rows, ours->intensity, "%.1f");
    cli_row_integer(rows, (int64_t)result->sets);
    cli_row_value(rows, s->values->counters ? cli_bench_counters_json(result) : json_null(), "%s",
                  "");
    cli_row_number(rows, ours->error_level, "%.3g");
    cli_bench_trust_cells(rows, trust);
}

static void print_one(cli_bench_session *s, cli_rows *rows, void *of, bench_point *point,
                      const cli_bench_trust *trust) {
    bench_queued_result *result = of;
    bench_queued_limit(&s->ceilings, result);
    *point = cli_bench_point_of(&s->job, &result->ours, result->sheet_rate);
    for (int i = 0; i < BENCH_WAYS; i++)
        if (result->peer_seconds[i] > 0)
            point->peers[i] = result->ours.operations / result->peer_seconds[i] * 1e-9;
    print_cells(s, rows, result, point, trust);
}

static void print_challenge_end(cli_bench_session *s) {
    cli_bench_print_challenge_means(s);
    cli_bench_print_counters(s);
}

static void print_heading(const session *s) {
    bsmm_local_device info = BSMM_INIT(bsmm_local_device);
    bench_device_find(s->base.values->device, &info);
    printf("%s, %u SMs, %s\n", info.title, info.cores, info.features);
    if (s->on.peer) {
        const bench_queued_peer *peer = peer_of(&s->base);
        printf("peers: %s:", peer->version(s->on.peer));
        for (int i = 0; i < BENCH_WAYS && peer->ways[i].name; i++)
            printf("%s %s (%s)", i ? "," : "", peer->ways[i].name, peer->ways[i].work);
        putchar('\n');
    }
    if (s->on.device->kind->is_model)
        printf("times: model, not measured (docs/SIMULATOR.md)%s\n",
               s->base.values->sampled && s->on.device->kind->times_without_results
                   ? "; results: neither computed nor validated"
                   : "");
    else if (s->on.device->kind->is_simulated)
        printf(
            "times: how long simulating took, not how long the device takes (docs/SIMULATOR.md)\n");
    printf("B: %s; operands from memory in each launch\n\n",
           s->base.job.pack_b ? "packed in advance if the kernel packs it" : "packed in each run");
    fflush(stdout);
}

static int measure_one(cli_bench_session *base, void *now, bench_probed *probed) {
    const bench_job *job = &base->job;
    const bench_result *ours = &((const bench_queued_result *)now)->ours;
    const char *why = bench_measure_queued(&((const session *)base)->on, now);
    if (why)
        return cli_fail("M=%lld N=%lld K=%lld: %s", (long long)job->sizes[0],
                        (long long)job->sizes[1], (long long)job->sizes[2], why);
    *probed = ours->probed;
    return ours->failed ? cli_bench_report_failure(job, ours) : CLI_OK;
}

static int draw(const cli_bench_session *s) {
    bsmm_local_device info = BSMM_INIT(bsmm_local_device);
    bench_device_find(s->values->device, &info);
    bench_plot limits = {.unit = ((const bench_queued_result *)s->results)->sheet,
                         .memory = "copy",
                         .bandwidth = s->ceilings.best[BENCH_MEMORY] * 1e-9};
    for (int i = 0; peer_of(s) && i < BENCH_WAYS; i++)
        limits.peers[i] = peer_of(s)->ways[i].name;
    return cli_bench_draw(s, info.title, &limits);
}

static int run(session *s) {
    const cli_bench_values *values = s->base.values;
    const bench_queued_peer *peer = peer_of(&s->base);
    if (values->peer && !(s->on.peer = peer->open())) return cli_fail("--peer: %s", peer->absent);
    if (!values->json) print_heading(s);
    int status = cli_bench_measure_all(&s->base, values->challenge ? cli_bench_challenge_columns
                                                                   : columns_of(s));
    if (status == CLI_OK && values->plot) status = draw(&s->base);
    if (s->on.peer) peer->close(s->on.peer);
    return status;
}

int cli_bench_queued(const cli_bench_values *values) {
    static const cli_bench_parts parts = {.result_bytes = sizeof(bench_queued_result),
                                          .measure = measure_one,
                                          .print_row = print_one,
                                          .print_more = cli_bench_print_counters};
    static const cli_bench_parts challenge = {.result_bytes = sizeof(bench_queued_result),
                                              .measure = measure_one,
                                              .print_row = cli_bench_print_challenge,
                                              .print_more = print_challenge_end};
    session s = {.base = {.values = values,
                          .parts = values->challenge ? &challenge : &parts,
                          .job = cli_bench_job_of(values)}};
    s.on = (bench_queued_job){.job = &s.base.job, .device = bench_device_open(values->device)};
    if (!s.on.device) return cli_fail("%s", cli_option_message(bench_device_error()));
    int status = run(&s);
    cli_bench_session_free(&s.base);
    bench_device_close(s.on.device);
    return status;
}
