/* bsmm bench: validate a product, then time it beside its ceiling and OpenBLAS. */
#include "common.h"
#include "measure.h"
#include "plot.h"
#include "progress.h"
#include "rows.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct values {
    cli_format_pair formats;
    bsmm_format out;
    int64_t m, n, k, k_range[2], k_step, threads, repeats;
    const char *kernel, *device, *plot;
    bool json, bench;
} values;

static const cli_column columns[] = {
    {"format", "format", false, "the formats as they were given"},
    {"m", "    M", true, "rows of A and D"},
    {"n", "    N", true, "rows of B, columns of D"},
    {"k", "    K", true, "columns of A and B"},
    {"device", NULL, false, "device that ran it"},
    {"kernel", "kernel", false, "kernel that ran it"},
    {"seconds", "   time", true, "median time of one product"},
    {"gflops", "GFLOP/s", true, "2 M N K / seconds / 10^9"},
    {"ceiling_gflops", "ceiling", true,
     "what the fastest unit of the processor that keeps these formats exact did beside it"},
    {"share", "share", true, "gflops / ceiling_gflops, the share of the speed of light"},
    {"peers", NULL, false,
     "GFLOP/s of others on the same shape in the same run, by name: openblas"},
    {NULL, " sgemm", true, NULL},
    {NULL, "ratio", true, NULL},
    {"max_error", "max error", true,
     "largest |d - exact| / max(1, |exact|) over the validated outputs"},
    {0},
};

static bench_point print_row(cli_rows *rows, const values *options, const bench_job *job,
                             const bench_result *result) {
    double gflops = result->operations / result->seconds * 1e-9;
    double ceiling = result->ceiling_rate * 1e-9;
    bool peer = job->peer != NULL;
    double peer_gflops = peer ? result->operations / result->peer_seconds * 1e-9 : 0;
    json_t *peers = json_object();
    if (peer) json_object_set_new(peers, "openblas", json_real(peer_gflops));
    cli_row_text(rows, options->formats.name);
    for (int i = 0; i < 3; i++)
        cli_row_integer(rows, job->sizes[i]);
    cli_row_text(rows, job->device);
    cli_row_text(rows, result->kernel);
    cli_row_value(rows, json_real(result->seconds), "%s", cli_seconds(result->seconds).text);
    cli_row_number(rows, gflops, "%.1f");
    cli_row_number(rows, ceiling, "%.0f");
    cli_row_value(rows, json_real(gflops / ceiling), "%.1f%%", 100 * gflops / ceiling);
    cli_row_value(rows, peers, "-");
    cli_row_value(rows, NULL, peer ? "%.1f" : "-", peer_gflops);
    cli_row_value(rows, NULL, peer ? "%.2f" : "-", peer ? gflops / peer_gflops : 0);
    cli_row_number(rows, result->max_error, "%.2g");
    cli_rows_flush(rows);
    return (bench_point){job->sizes[2], gflops, ceiling, peer_gflops};
}

/* What the figures are to be compared with. */
static void print_machine(const bench_job *job, const char *missing) {
    bsmm_local_device cpu = BSMM_INIT(bsmm_local_device);
    const char *last = "";
    bsmm_local_device_at(0, &cpu);
    printf("%s, %d threads\nceilings, GFLOP/s:", cpu.title, job->threads);
    for (uint32_t i = 0; bench_probe_at(i); i++) {
        const bench_probe *probe = bench_probe_at(i);
        if (probe != bench_probe_of(probe->unit) || probe->name == last) continue;
        printf(" %s %.0f,", probe->name, bench_probe_best(probe, job->threads) * 1e-9);
        last = probe->name;
    }
    printf(" memory %.1f GB/s\n", bench_probe_memory(job->threads) * 1e-9);
    if (job->peer)
        printf("peer: sgemm of %s, on the fp32 values, the same shape, in turns\n\n",
               job->peer->version);
    else
        printf("peer: none (%s cannot be loaded)\n\n", *missing ? missing : "OpenBLAS");
    fflush(stdout);
}

static int report_failure(const bench_job *job, const bench_result *result) {
    return cli_fail("validation failed: M=%lld N=%lld K=%lld, kernel %s: %lld of %lld outputs are "
                    "not within 1e-3 and 1e-3 relative; d[%lld, %lld] is %.9g, exact %.9g",
                    (long long)job->sizes[0], (long long)job->sizes[1], (long long)job->sizes[2],
                    result->kernel, (long long)result->failed, (long long)result->checked,
                    (long long)result->worst_row, (long long)result->worst_col, result->worst,
                    result->worst_exact);
}

static void tick(void *context) {
    cli_progress_add(context, 1);
}

static int count_steps(const values *options) {
    return (int)((options->k_range[1] - options->k_range[0]) / options->k_step + 1);
}

static int measure_one(const bench_job *job, bench_result *result) {
    bsmm_status status = bench_measure(job, result);
    if (status == BSMM_E_MEMORY)
        return cli_fail("no memory for M=%lld N=%lld K=%lld", (long long)job->sizes[0],
                        (long long)job->sizes[1], (long long)job->sizes[2]);
    if (status) return cli_fail_library(NULL);
    return result->failed ? report_failure(job, result) : CLI_OK;
}

/* A bar that is being drawn gives way to the rows. */
static void clear_line(const cli_progress *progress) {
    if (progress->active) fputs("\r\033[K", stderr);
}

/* Measures every K; result keeps the last. */
static int measure_all(const values *options, const bench_job *given, bench_point *points,
                       bench_result *result) {
    bench_job job = *given;
    int steps = count_steps(options), status = CLI_OK;
    cli_rows *rows = cli_rows_open(columns, options->json);
    cli_progress progress = cli_progress_begin("measuring", (uint64_t)steps * (uint64_t)job.rounds);
    job.tick = tick;
    job.tick_context = &progress;
    for (int i = 0; i < steps && status == CLI_OK; i++) {
        job.sizes[2] = options->k_range[0] + i * options->k_step;
        status = measure_one(&job, result);
        clear_line(&progress);
        if (status == CLI_OK) points[i] = print_row(rows, options, &job, result);
    }
    cli_progress_end(&progress);
    cli_rows_close(rows);
    return status;
}

static int draw(const values *options, const bench_job *job, const bench_result *last,
                const bench_point *points) {
    char title[128];
    snprintf(title, sizeof title, "bsmm bench: %s, M=%lld, N=%lld, %d threads",
             options->formats.name, (long long)options->m, (long long)options->n, job->threads);
    bench_plot plot = {.path = options->plot,
                       .title = title,
                       .kernel = last->kernel,
                       .ceiling = last->ceiling,
                       .peer = job->peer ? job->peer->version : NULL,
                       .points = points,
                       .count = (size_t)count_steps(options)};
    return bench_plot_draw(&plot) ? CLI_OK : cli_fail("%s: gnuplot failed", options->plot);
}

static int run_job(const values *options, const bench_job *job) {
    bench_result last = {0};
    bench_point *points = cli_alloc((size_t)count_steps(options), sizeof *points);
    int status = measure_all(options, job, points, &last);
    if (status == CLI_OK && options->plot) status = draw(options, job, &last, points);
    free(points);
    return status;
}

/* What has no option of its own: -K is a range of one; results as the tutorial's and the
 * challenge's, f16 and, for fp32 scales, bf16. */
static values complete(const values *given) {
    values options = *given;
    if (!options.formats.name) cli_parse_format_pair("nvfp4", &options.formats);
    if (!options.k_range[1]) options.k_range[0] = options.k_range[1] = options.k;
    if (!options.out.elem)
        options.out.elem =
            options.formats.b.scale == BSMM_SCALE_F32 ? BSMM_ELEM_BF16 : BSMM_ELEM_F16;
    return options;
}

static int check(const values *options) {
    static const int64_t largest = 1 << 24, most = 1 << 16;
    const int64_t sizes[] = {options->m, options->n, options->k_range[0], options->k_range[1]};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i] < 1 || sizes[i] > largest)
            return cli_usage("a size is %lld; M, N and K must be 1 to %lld", (long long)sizes[i],
                             (long long)largest);
    if (options->k_range[0] > options->k_range[1])
        return cli_usage("--k-range: value is %lld %lld; the first must not be above the second",
                         (long long)options->k_range[0], (long long)options->k_range[1]);
    if (options->k_step < 1) return cli_usage("--k-step: value is 0; must be 1 or more");
    if (count_steps(options) > most)
        return cli_usage("--k-range: more than %lld values of K", (long long)most);
    if (options->repeats < 1 || options->repeats > 1000)
        return cli_usage("--repeats: value is %lld; must be 1 to 1000",
                         (long long)options->repeats);
    if (options->threads > 1024)
        return cli_usage("--threads: value is %lld; must be 0 to 1024",
                         (long long)options->threads);
    if (options->out.scale || options->out.elem < BSMM_ELEM_F32 ||
        options->out.elem > BSMM_ELEM_BF16)
        return cli_usage("--out: value is %s; must be f32, f16 or bf16",
                         bsmm_format_name(options->out));
    const char *refusal = options->plot ? bench_plot_refusal(options->plot) : NULL;
    return refusal ? cli_fail("%s: %s", options->plot, refusal) : CLI_OK;
}

static int run(const void *arguments, char **args, int count) {
    (void)args, (void)count;
    const values options = complete(arguments);
    int status = check(&options);
    if (status != CLI_OK) return status;
    bench_openblas blas;
    const char *library;
    bench_job job = {.a = options.formats.a,
                     .b = options.formats.b,
                     .out = options.out,
                     .sizes = {options.m, options.n},
                     .kernel = options.kernel,
                     .device = options.device,
                     .threads = options.threads ? (int)options.threads : omp_get_num_procs(),
                     .rounds = (int)options.repeats};
    if (bench_openblas_open(&blas, job.threads, &library)) job.peer = &blas;
    if (!options.json) print_machine(&job, library);
    status = run_job(&options, &job);
    bench_openblas_close(&blas);
    return status;
}

#define SIZE(field, key, what)                                                                     \
    {                                                                                              \
        .letter = key, .arg = "COUNT", .help = what, .kind = CLI_SIZE,                             \
        .offset = offsetof(values, field)                                                          \
    }
#define K_RANGE(spelling, hide)                                                                    \
    {                                                                                              \
        .name = spelling, .arg = "LO HI", .help = "every K from LO to HI", .kind = CLI_RANGE,      \
        .offset = offsetof(values, k_range), .hidden = hide                                        \
    }
#define K_STEP(spelling, hide)                                                                     \
    {                                                                                              \
        .name = spelling, .arg = "COUNT",                                                          \
        .help = "distance between values of K; 512 unless given", .kind = CLI_SIZE,                \
        .offset = offsetof(values, k_step), .hidden = hide                                         \
    }

static const cli_option options[] = {
    {.name = "format",
     .letter = 'f',
     .arg = "FORMATS",
     .help = "formats of A and B: one for both, A:B, mixed or fp8_groupwise; nvfp4 unless given",
     .kind = CLI_FORMAT_PAIR,
     .offset = offsetof(values, formats)},
    {.name = "out",
     .arg = "FORMAT",
     .help = "format of D: f32, f16 or bf16; f16, or bf16 beside fp32 scales, unless given",
     .kind = CLI_FORMAT,
     .offset = offsetof(values, out)},
    SIZE(m, 'M', "rows of A and D; 1024 unless given"),
    SIZE(n, 'N', "rows of B, columns of D; 1024 unless given"),
    SIZE(k, 'K', "columns of A and B; 512 unless given"),
    K_RANGE("k-range", false),
    K_RANGE("K_range", true),
    K_STEP("k-step", false),
    K_STEP("K_step", true),
    {.name = "bench",
     .help = "accepted for the tutorial's sake; bench always measures",
     .kind = CLI_FLAG,
     .offset = offsetof(values, bench),
     .hidden = true},
    {.name = "repeats",
     .arg = "COUNT",
     .help = "rounds of measuring; 5 unless given",
     .kind = CLI_SIZE,
     .offset = offsetof(values, repeats)},
    {.name = "kernel",
     .arg = "NAME",
     .help = "this kernel instead of the first that accepts",
     .kind = CLI_TEXT,
     .offset = offsetof(values, kernel)},
    {.name = "device",
     .arg = "DEVICE",
     .help = "device of this machine, cpu unless given",
     .kind = CLI_TEXT,
     .offset = offsetof(values, device)},
    {.name = "plot",
     .arg = "FILE",
     .help = "draw GFLOP/s over K as SVG, with gnuplot",
     .kind = CLI_TEXT,
     .offset = offsetof(values, plot)},
    CLI_OPTION_THREADS(values),
    CLI_OPTION_JSON(values),
    {0},
};

static const values defaults = {
    .m = 1024, .n = 1024, .k = 512, .k_step = 512, .repeats = 5, .device = "cpu"};

const cli_command cli_bench = {
    .name = "bench",
    .summary = "Validate a product, then measure its speed",
    .text = "Every shape is multiplied once and compared with sums in double (within 1e-3 and 1e-3 "
            "relative, on the data of Triton's block-scaled tutorial); a difference ends the "
            "command with status 1. Then, in turns, the product, OpenBLAS's sgemm of the same "
            "shape and a loop that only keeps the arithmetic units busy are timed. Times are "
            "medians, the ceiling is the best round. OpenBLAS is libopenblas.so.0, or the file "
            "that BSMM_BENCH_OPENBLAS names (empty: none). The tutorial's spellings --K_range, "
            "--K_step and --bench work too.",
    .examples = "  bsmm bench --format mxfp4 -M 512 -N 4096 -K 4096\n"
                "  bsmm bench --format mixed --k-range 512 8192 --k-step 512 --plot mixed.svg\n"
                "  bsmm bench --format fp8_groupwise -M 1024 -N 1536 -K 7168 --json\n"
                "  bsmm bench --format bf16:nvfp4 -M 1 -N 4096 -K 4096 --threads 1\n",
    .options = options,
    .output = {columns},
    .defaults = &defaults,
    .values_size = sizeof(values),
    .run = run,
};
