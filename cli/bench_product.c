/* Measures products of several shapes on the CPU. Compares each product with its ceiling, i.e. the
 * measured peak of the arithmetic unit or of memory, and with other libraries (peers). */
#include "bench_session.h"
#include "memory.h"
#include <math.h>
#include <stdio.h>

const cli_column cli_bench_product_columns[] = {
    CLI_BENCH_JOB_COLUMNS,
    {"seconds", "   time", true, "median time of one product"},
    {"gflops", "GFLOP/s", true, "2 M N K / seconds / 10^9"},
    {"ceiling_gflops", "ceiling", true, "what `ceiling` allowed, the best of the run"},
    {"share", "share", true, "gflops / ceiling_gflops, the share of the speed of light"},
    {"ceiling", "of", false,
     "the fastest unit of the processor that keeps these formats exact or, with --cold and where "
     "it is lower, dram_read: reading B as stored from memory"},
    {.key = "peers",
     .help = "GFLOP/s of others on the same shape in the same run, by name: openblas, onednn_bf16"},
    {NULL, " sgemm", true, NULL},
    {NULL, "ratio", true, NULL},
    {NULL, "  bf16", true, NULL},
    {NULL, "ratio", true, NULL},
    {"max_error", "max error", true,
     "largest |d - exact| / max(1, |exact|) over the validated outputs"},
    {.key = "threads", .help = "threads that all of them had"},
    {.key = "b_packed",
     .help = "B was packed in advance; false: it was packed in each run, or not at all"},
    {.key = "pack_b_seconds", .help = "how long that took, once; null if it was not"},
    {.key = "cold", .help = "B came from memory in each run"},
    {.key = "b_gbs", .help = "bytes of B as stored / seconds / 10^9"},
    {.key = "intensity", .help = "operations per byte of A, B, their scales and D"},
    CLI_BENCH_LEVEL_COLUMN,
    CLI_BENCH_TRUST_COLUMNS,
    {0},
};

static void print_peers(cli_rows *rows, const bench_job *job, const bench_point *point) {
    json_t *peers = json_object();
    for (int i = 0; i < BENCH_PEERS; i++)
        if (point->peers[i] > 0)
            json_object_set_new(peers, job->peers[i].peer->name, json_real(point->peers[i]));
    cli_row_value(rows, peers, "%s", "");
    for (int i = 0; i < BENCH_PEERS; i++) {
        bool there = point->peers[i] > 0;
        const char *absent = job->peers[i].library ? "-" : "";
        cli_row_value(rows, NULL, there ? "%.1f" : absent, point->peers[i]);
        cli_row_value(rows, NULL, there ? "%.2f" : absent, point->gflops / point->peers[i]);
    }
}

static void print_row(const cli_bench_session *s, cli_rows *rows, const bench_result *result,
                      const bench_point *point, const cli_bench_trust *trust) {
    const bench_job *job = &s->job;
    cli_bench_job_cells(s, rows, result->kernel);
    cli_row_value(rows, json_real(result->seconds), "%s", cli_seconds(result->seconds).text);
    cli_row_number(rows, point->gflops, "%.1f");
    cli_row_number(rows, point->ceiling, "%.0f");
    cli_bench_share_cell(rows, point->gflops / point->ceiling, trust);
    cli_row_text(rows, result->ceiling);
    print_peers(rows, job, point);
    cli_row_number(rows, result->max_error, "%.2g");
    cli_row_integer(rows, job->threads);
    cli_row_value(rows, json_boolean(result->packed), "%s", "");
    cli_row_number(rows, result->packed ? result->pack_seconds : NAN, "%.3g");
    cli_row_value(rows, json_boolean(job->cold), "%s", "");
    cli_row_number(rows, result->b_bytes / result->seconds * 1e-9, "%.1f");
    cli_row_number(rows, result->intensity, "%.1f");
    cli_row_number(rows, result->error_level, "%.3g");
    cli_bench_trust_cells(rows, trust);
}

enum { MOST_PROBES = 8 };

/* Holds the rates that bench measures for its heading. They are operations per second of each
 * probe, i.e. of each loop that measures an arithmetic unit (0 if it was not measured), and bytes
 * per second for reading memory. */
typedef struct first_rates {
    double probes[MOST_PROBES], read;
} first_rates;

static void print_ceilings(int threads, first_rates *first) {
    const char *last = "";
    printf("ceilings, GFLOP/s:");
    for (uint32_t i = 0; bench_probe_at(i); i++) {
        const bench_probe *probe = bench_probe_at(i);
        if (probe != bench_probe_of(probe->unit) || probe->name == last) continue;
        double rate = bench_probe_best(probe, threads);
        if (i < MOST_PROBES) first->probes[i] = rate;
        printf(" %s %.0f,", probe->name, rate * 1e-9);
        last = probe->name;
    }
    first->read = bench_memory_best(1, 0, threads);
    printf(" memory, GB/s: read %.1f, copied %.1f\n", first->read * 1e-9,
           bench_memory_best(1, 1, threads) * 1e-9);
}

static void print_peer(const bench_found *found) {
    const bench_peer *peer = found->peer;
    if (found->library)
        printf("peer %s: %s, %s\n", peer->name, found->version, peer->work);
    else if (*found->file)
        printf("peer %s: none (%s cannot be loaded)\n", peer->name, found->file);
    else
        printf("peer %s: none (%s is empty)\n", peer->name, peer->variable);
}

static void print_heading(const bench_job *job, first_rates *first) {
    bsmm_local_device cpu = BSMM_INIT(bsmm_local_device);
    bsmm_local_device_at(0, &cpu);
    printf("%s, %d threads\n", cpu.title, job->threads);
    print_ceilings(job->threads, first);
    bsmm_packed_form_info form = BSMM_INIT(bsmm_packed_form_info);
    if (job->form)
        /* BSMM_PACKED_NONE is 0 and has no entry in the library's table of packed formats. The
         * index of any other form is therefore the form minus 1. */
        bsmm_packed_form_at(job->form - 1, &form);
    printf("B: %s%s, %s\n",
           job->form     ? "packed in advance as "
           : job->pack_b ? "packed in advance if the kernel packs it"
                         : "as stored, packed in each run",
           job->form ? form.name : "",
           job->cold ? "from memory in each run" : "in caches if it fits");
    for (int i = 0; i < BENCH_PEERS; i++)
        if (job->peers[i].peer) print_peer(&job->peers[i]);
    putchar('\n');
    fflush(stdout);
}

typedef struct session {
    cli_bench_session base;
    first_rates first;
} session;

int cli_bench_report_failure(const bench_job *job, const bench_result *result) {
    return cli_fail("validation failed: M=%lld N=%lld K=%lld, kernel %s: %lld of %lld outputs are "
                    "not within 1e-3 and 1e-3 relative; d[%lld, %lld] is %.9g, exact %.9g",
                    (long long)job->sizes[0], (long long)job->sizes[1], (long long)job->sizes[2],
                    result->kernel, (long long)result->failed, (long long)result->checked,
                    (long long)result->worst_row, (long long)result->worst_col, result->worst,
                    result->worst_exact);
}

/* Raises the ceilings (the best measured peak rates) to the rates that the heading printed,
 * because otherwise a row could show a lower ceiling than the heading. */
static void count_first(session *s) {
    bench_probed known = {.best = {[BENCH_MEMORY] = s->first.read}};
    for (uint32_t i = 0; i < MOST_PROBES && bench_probe_at(i); i++)
        if (bench_probe_at(i)->work == s->base.job.probe->work)
            known.best[BENCH_UNIT] = fmax(known.best[BENCH_UNIT], s->first.probes[i]);
    bench_ceilings_raise(&s->base.ceilings, &known);
}

/* Measures one shape. For the first shape, bench also finds the fastest arithmetic unit, and
 * compares all shapes with the peak rate of this unit. The fastest unit is the same for all shapes,
 * because they have the same formats. */
static int measure_one(cli_bench_session *base, void *now, bench_probed *probed) {
    bench_job *job = &base->job;
    const bench_result *result = now;
    bsmm_status status = bench_measure(job, now);
    if (status == BSMM_E_MEMORY)
        return cli_fail("no memory for M=%lld N=%lld K=%lld", (long long)job->sizes[0],
                        (long long)job->sizes[1], (long long)job->sizes[2]);
    if (status) return cli_fail_library(NULL);
    if (result->failed) return cli_bench_report_failure(job, result);
    if (!job->probe) {
        job->probe = result->probe;
        count_first((session *)base);
    }
    *probed = result->probed;
    return CLI_OK;
}

static void print_one(cli_bench_session *s, cli_rows *rows, void *of, bench_point *point,
                      const cli_bench_trust *trust) {
    bench_result *result = of;
    bench_measure_limit(&s->ceilings, result);
    *point = cli_bench_point_of(&s->job, result, result->unit_rate);
    for (int i = 0; i < BENCH_PEERS; i++)
        if (result->peer_seconds[i] > 0)
            point->peers[i] = result->operations / result->peer_seconds[i] * 1e-9;
    print_row(s, rows, result, point, trust);
}

static void print_challenge(cli_bench_session *s, cli_rows *rows, void *of, bench_point *point,
                            const cli_bench_trust *trust) {
    bench_measure_limit(&s->ceilings, of);
    cli_bench_print_challenge(s, rows, of, point, trust);
}

static int draw(const cli_bench_session *s) {
    bsmm_local_device cpu = BSMM_INIT(bsmm_local_device);
    bsmm_local_device_at(0, &cpu);
    const double read = bench_memory_best(1, 0, s->job.threads);
    const bench_plot limits = {.unit = ((const bench_result *)s->results)->unit,
                               .memory = "memory",
                               .peers = {s->job.peers[0].peer->name, s->job.peers[1].peer->name},
                               .bandwidth = fmax(read, s->ceilings.best[BENCH_MEMORY]) * 1e-9};
    return cli_bench_draw(s, cpu.title, &limits);
}

static int run(session *s) {
    cli_bench_session *base = &s->base;
    if (!base->values->json) print_heading(&base->job, &s->first);
    int status = cli_bench_measure_all(base, base->values->challenge ? cli_bench_challenge_columns
                                                                     : cli_bench_product_columns);
    return status == CLI_OK && base->values->plot ? draw(base) : status;
}

int cli_bench_products(const cli_bench_values *values) {
    static const cli_bench_parts parts = {
        .result_bytes = sizeof(bench_result), .measure = measure_one, .print_row = print_one};
    static const cli_bench_parts challenge = {.result_bytes = sizeof(bench_result),
                                              .measure = measure_one,
                                              .print_row = print_challenge,
                                              .print_more = cli_bench_print_challenge_means};
    bench_found peers[BENCH_PEERS] = {0};
    session s = {.base = {.values = values,
                          .parts = values->challenge ? &challenge : &parts,
                          .job = cli_bench_job_of(values)}};
    s.base.job.threads = (int)values->threads;
    s.base.job.cold = values->cold;
    s.base.job.peers = peers;
    if (!values->challenge) bench_peers_open(peers, s.base.job.threads);
    int status = run(&s);
    bench_peers_close(peers);
    cli_bench_session_free(&s.base);
    return status;
}
