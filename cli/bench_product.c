/* Measures products over shapes on the CPU, and compares them with their ceilings (the measured
 * peak of the arithmetic unit) and peers (other libraries). */
#include "bench.h"
#include "memory.h"
#include "plot.h"
#include "progress.h"
#include "rows.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const cli_column cli_bench_product_columns[] = {
    {"format", "format", false, "the formats as they were given"},
    {"m", "    M", true, "rows of A and D"},
    {"n", "    N", true, "rows of B, columns of D"},
    {"k", "    K", true, "columns of A and B"},
    {"device", NULL, false, "device that ran it"},
    {"kernel", "kernel", false, "kernel that ran it"},
    {"seconds", "   time", true, "median time of one product"},
    {"gflops", "GFLOP/s", true, "2 M N K / seconds / 10^9"},
    {"ceiling_gflops", "ceiling", true, "what `ceiling` allowed beside it"},
    {"share", "share", true, "gflops / ceiling_gflops, the share of the speed of light"},
    {"ceiling", "of", false,
     "the fastest unit of the processor that keeps these formats exact or, with --cold and where "
     "it is lower, dram_read: reading B as stored from memory"},
    {"peers", NULL, false,
     "GFLOP/s of others on the same shape in the same run, by name: openblas, onednn_bf16"},
    {NULL, " sgemm", true, NULL},
    {NULL, "ratio", true, NULL},
    {NULL, "  bf16", true, NULL},
    {NULL, "ratio", true, NULL},
    {"max_error", "max error", true,
     "largest |d - exact| / max(1, |exact|) over the validated outputs"},
    {"threads", NULL, true, "threads that all of them had"},
    {"b_packed", NULL, false, "B was packed ahead; false: in each run, or the kernel does not"},
    {"pack_b_seconds", NULL, true, "how long that took, once; null if it was not"},
    {"cold", NULL, false, "B came from memory in each run"},
    {"b_gbs", NULL, true, "bytes of B as stored / seconds / 10^9"},
    {"intensity", NULL, true, "operations per byte of A, B, their scales and D"},
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

static void print_row(cli_rows *rows, const char *formats, const bench_job *job,
                      const bench_result *result, const bench_point *point) {
    cli_row_text(rows, formats);
    for (int i = 0; i < 3; i++)
        cli_row_integer(rows, job->sizes[i]);
    cli_row_text(rows, job->device);
    cli_row_text(rows, result->kernel);
    cli_row_value(rows, json_real(result->seconds), "%s", cli_seconds(result->seconds).text);
    cli_row_number(rows, point->gflops, "%.1f");
    cli_row_number(rows, point->ceiling, "%.0f");
    double share = point->gflops / point->ceiling;
    cli_row_value(rows, json_real(share), "%.1f%%", 100 * share);
    cli_row_text(rows, result->ceiling);
    print_peers(rows, job, point);
    cli_row_number(rows, result->max_error, "%.2g");
    cli_row_integer(rows, job->threads);
    cli_row_value(rows, json_boolean(result->packed), "%s", "");
    cli_row_number(rows, result->packed ? result->pack_seconds : NAN, "%.3g");
    cli_row_value(rows, json_boolean(job->cold), "%s", "");
    cli_row_number(rows, result->b_bytes / result->seconds * 1e-9, "%.1f");
    cli_row_number(rows, result->intensity, "%.1f");
    cli_rows_flush(rows);
}

static bench_point point_of(const bench_job *job, const bench_result *result) {
    bench_point point = {.m = job->sizes[0],
                         .k = job->sizes[2],
                         .gflops = result->operations / result->seconds * 1e-9,
                         .ceiling = result->ceiling_rate * 1e-9,
                         .unit = result->unit_rate * 1e-9,
                         .intensity = result->intensity};
    snprintf(point.kernel, sizeof point.kernel, "%s", result->kernel);
    snprintf(point.limit, sizeof point.limit, "%s", result->ceiling);
    for (int i = 0; i < BENCH_PEERS; i++)
        if (result->peer_seconds[i] > 0)
            point.peers[i] = result->operations / result->peer_seconds[i] * 1e-9;
    return point;
}

/* ---- the heading: ceilings and peers that the results are compared with ---- */

static void print_ceilings(int threads) {
    const char *last = "";
    printf("ceilings, GFLOP/s:");
    for (uint32_t i = 0; bench_probe_at(i); i++) {
        const bench_probe *probe = bench_probe_at(i);
        if (probe != bench_probe_of(probe->unit) || probe->name == last) continue;
        printf(" %s %.0f,", probe->name, bench_probe_best(probe, threads) * 1e-9);
        last = probe->name;
    }
    printf(" memory, GB/s: read %.1f, copied %.1f\n", bench_memory_best(1, 0, threads) * 1e-9,
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

static void print_heading(const bench_job *job) {
    bsmm_local_device cpu = BSMM_INIT(bsmm_local_device);
    bsmm_local_device_at(0, &cpu);
    printf("%s, %d threads\n", cpu.title, job->threads);
    print_ceilings(job->threads);
    printf("B: %s, %s\n",
           job->pack_b ? "packed ahead where the kernel packs it" : "as stored, packed in each run",
           job->cold ? "from memory in each run" : "in caches as far as it fits");
    for (int i = 0; i < BENCH_PEERS; i++)
        print_peer(&job->peers[i]);
    putchar('\n');
    fflush(stdout);
}

/* ---- measuring ---- */

int cli_bench_report_failure(const bench_job *job, const bench_result *result) {
    return cli_fail("validation failed: M=%lld N=%lld K=%lld, kernel %s: %lld of %lld outputs are "
                    "not within 1e-3 and 1e-3 relative; d[%lld, %lld] is %.9g, exact %.9g",
                    (long long)job->sizes[0], (long long)job->sizes[1], (long long)job->sizes[2],
                    result->kernel, (long long)result->failed, (long long)result->checked,
                    (long long)result->worst_row, (long long)result->worst_col, result->worst,
                    result->worst_exact);
}

static int measure_one(const bench_job *job, bench_result *result) {
    bsmm_status status = bench_measure(job, result);
    if (status == BSMM_E_MEMORY)
        return cli_fail("no memory for M=%lld N=%lld K=%lld", (long long)job->sizes[0],
                        (long long)job->sizes[1], (long long)job->sizes[2]);
    if (status) return cli_fail_library(NULL);
    return result->failed ? cli_bench_report_failure(job, result) : CLI_OK;
}

static void tick(void *context) {
    cli_progress_add(context, 1);
}

/* Erases a progress bar before rows are printed. */
static void clear_line(const cli_progress *progress) {
    if (progress->active) fputs("\r\033[K", stderr);
}

static int64_t steps_of_k(const cli_bench_values *values) {
    return (values->k_range[1] - values->k_range[0]) / values->k_step + 1;
}

int64_t cli_bench_shapes(const cli_bench_values *values) {
    int64_t steps = 1;
    for (int64_t m = values->m_range[0]; m <= values->m_range[1] / 2; m *= 2)
        steps++;
    return steps * steps_of_k(values);
}

void cli_bench_shape_at(const cli_bench_values *values, int64_t index, int64_t sizes[3]) {
    int64_t ks = steps_of_k(values);
    sizes[0] = values->m_range[0] << index / ks;
    sizes[1] = values->n;
    sizes[2] = values->k_range[0] + index % ks * values->k_step;
}

/* Measures every M and K. `result` keeps the last result. */
static int measure_all(const cli_bench_values *values, const bench_job *given, bench_point *points,
                       bench_result *result) {
    bench_job job = *given;
    int64_t shapes = cli_bench_shapes(values);
    int status = CLI_OK;
    cli_rows *rows = cli_rows_open(cli_bench_product_columns, values->json);
    cli_progress progress =
        cli_progress_begin("measuring", (uint64_t)shapes * (uint64_t)job.rounds);
    job.tick = tick;
    job.tick_context = &progress;
    for (int64_t i = 0; i < shapes && status == CLI_OK; i++) {
        cli_bench_shape_at(values, i, job.sizes);
        status = measure_one(&job, result);
        clear_line(&progress);
        if (status != CLI_OK) break;
        points[i] = point_of(&job, result);
        print_row(rows, values->formats.name, &job, result, &points[i]);
    }
    cli_progress_end(&progress);
    cli_rows_close(rows);
    return status;
}

void cli_bench_title(const cli_bench_values *values, const char *where, char *title, size_t size) {
    bool by_m = values->m_range[0] != values->m_range[1];
    snprintf(title, size, "bsmm bench: %s, N=%lld, %c=%lld, %s", values->formats.name,
             (long long)values->n, by_m ? 'K' : 'M',
             (long long)(by_m ? values->k_range[0] : values->m_range[0]), where);
}

static int draw(const cli_bench_values *values, const bench_job *job, const bench_result *last,
                const bench_point *points) {
    char title[256], threads[32];
    snprintf(threads, sizeof threads, "%d threads", job->threads);
    cli_bench_title(values, threads, title, sizeof title);
    bench_plot plot = {.path = values->plot,
                       .title = title,
                       .unit = last->unit,
                       .memory = "memory",
                       .peers = {job->peers[0].peer->name, job->peers[1].peer->name},
                       .points = points,
                       .count = (size_t)cli_bench_shapes(values),
                       .bandwidth = bench_memory_best(1, 0, job->threads) * 1e-9};
    const char *why = bench_plot_draw(&plot);
    return why ? cli_fail("%s: %s", values->plot, why) : CLI_OK;
}

int cli_bench_products(const cli_bench_values *values) {
    bench_found peers[BENCH_PEERS];
    bench_result last = {0};
    bench_job job = {.a = values->formats.a,
                     .b = values->formats.b,
                     .out = values->out,
                     .sizes = {values->m, values->n, values->k},
                     .kernel = values->kernel,
                     .device = values->device,
                     .threads = (int)values->threads,
                     .rounds = (int)values->repeats,
                     .pack_b = !values->no_pack_b,
                     .cold = values->cold,
                     .quantized = values->quantized,
                     .fast = values->fast,
                     .peers = peers};
    bench_point *points = cli_alloc((size_t)cli_bench_shapes(values), sizeof *points);
    bench_peers_open(peers, job.threads);
    if (!values->json) print_heading(&job);
    int status = measure_all(values, &job, points, &last);
    if (status == CLI_OK && values->plot) status = draw(values, &job, &last, points);
    bench_peers_close(peers);
    free(points);
    return status;
}
