/* Implements `bsmm bench`, which validates the result of a product or conversion and then times
 * it. The command compares the time with the ceiling (the measured peak of the hardware) and with
 * the times of other libraries (peers). */
#include "bench.h"
#include "device.h"
#include "device_texts.h"
#include "fidelity.h"
#include "fit.h"
#include "gnuplot.h"
#include "product.h"
#include "surface/surface.h"
#include "tables.h"
#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

typedef cli_bench_values values;

/* Chooses the default format of D. If B has fp32 scales, D is bf16, as in AMD's FP8 groupwise
 * challenge. Otherwise D is f16, as in Triton's block-scaled tutorial. */
static uint32_t result_of(const values *options) {
    return options->formats.b.scale == BSMM_SCALE_F32 ? BSMM_ELEM_BF16 : BSMM_ELEM_F16;
}

static bool has_range(const int64_t range[2]) {
    return range[0] || range[1];
}

/* Fills in the sizes that the user left out. A negative size means that the user gave none. */
static void complete_sizes(values *options) {
    options->all_shapes = options->challenge && options->m < 0 && options->n < 0 && options->k < 0;
    if (options->m < 0) options->m = 1024;
    if (options->n < 0) options->n = 1024;
    if (options->k < 0) options->k = 512;
}

/* Fills in the options that the user left out. A single -M or -K becomes a range of one value.
 * --challenge without -M, -N and -K measures six large shapes. If the times of the device come from
 * a model, the function then sets --sampled, because a complete run of these shapes would take too
 * long. */
static values complete(const values *given) {
    values options = *given;
    complete_sizes(&options);
    if (!options.formats.name)
        cli_parse_format_pair(options.challenge ? CLI_CHALLENGE_FORMATS : "nvfp4",
                              &options.formats);
    if (options.all_shapes && bench_device_kind_of(options.device)->is_model)
        options.sampled = true;
    if (!has_range(options.m_range)) options.m_range[0] = options.m_range[1] = options.m;
    if (!has_range(options.k_range)) options.k_range[0] = options.k_range[1] = options.k;
    if (!options.out.elem) options.out.elem = result_of(&options);
    if (!options.from.elem) options.from.elem = BSMM_ELEM_F32;
    if (!options.threads) options.threads = omp_get_num_procs();
    return options;
}

/* Checks that the sizes in the options are valid. */
static int check_sizes(const values *options) {
    static const int64_t largest = 1 << 24;
    const int64_t *m = options->m_range, *k = options->k_range;
    const struct {
        const char *name;
        int64_t size;
        bool is_given;
    } sizes[] = {
        {"-N", options->n, options->n >= 0},
        {"-M", options->m, options->m >= 0 && !has_range(m)},
        {"-K", options->k, options->k >= 0 && !has_range(k)},
        {"--m-range", m[0], has_range(m)},
        {"--m-range", m[1], has_range(m)},
        {"--k-range", k[0], has_range(k)},
        {"--k-range", k[1], has_range(k)},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].is_given && (sizes[i].size < 1 || sizes[i].size > largest))
            return cli_usage("%s: value is %lld; must be 1 to %lld", sizes[i].name,
                             (long long)sizes[i].size, (long long)largest);
    return CLI_OK;
}

static int check_ranges(const values *options) {
    static const int64_t most = 1 << 16;
    const struct {
        const char *name;
        const int64_t *range;
    } ranges[] = {{"--m-range", options->m_range}, {"--k-range", options->k_range}};
    for (int i = 0; i < 2; i++)
        if (ranges[i].range[0] > ranges[i].range[1])
            return cli_usage("%s: value is %lld %lld; the first must not be above the second",
                             ranges[i].name, (long long)ranges[i].range[0],
                             (long long)ranges[i].range[1]);
    if (options->k_step < 1) return cli_usage("--k-step: value is 0; must be 1 or more");
    if (options->plot && options->m_range[0] != options->m_range[1] &&
        options->k_range[0] != options->k_range[1])
        return cli_usage("--plot: draws a range of M or of K; both are given");
    if (cli_bench_shapes(options) > most)
        return cli_usage("--k-range: more than %lld shapes", (long long)most);
    return CLI_OK;
}

static bool is_conversion(const values *options) {
    return options->quantize || options->dequantize || options->relayout;
}

static int check_conversion(const values *options) {
    const bsmm_format *a = &options->formats.a, *b = &options->formats.b;
    if (options->quantize + options->dequantize + (options->relayout != NULL) > 1)
        return cli_usage("--quantize, --dequantize, --relayout: only one of them can be measured");
    if (a->elem != b->elem || !a->scale || a->block_rows != b->block_rows)
        return cli_usage("--format: value is %s; must be one block-scaled format",
                         options->formats.name);
    if (cli_bench_shapes(options) > 1)
        return cli_usage("--k-range: conversions are of one shape, -M x -K");
    if (options->plot || options->peer)
        return cli_usage("%s: is for products, not for conversions",
                         options->plot ? "--plot" : "--peer");
    if ((options->dequantize || options->relayout) && options->threads != omp_get_num_procs())
        return cli_usage("--threads: value is %lld; dequantizing and moving scales take every "
                         "processor that the process may use (%d)",
                         (long long)options->threads, omp_get_num_procs());
    const char *why = options->quantize && options->recipe
                          ? cli_recipe_refusal(options->recipe, *b, BSMM_GLOBAL_MULTIPLIER)
                          : NULL;
    if (why && cli_recipe_refusal(options->recipe, *b, BSMM_GLOBAL_DIVISOR))
        return cli_usage("--recipe: %s", why);
    return CLI_OK;
}

static bool has_peer(const values *options) {
    const bench_queued_peer *peer = bench_device_kind_of(options->device)->peer;
    return peer && strcmp(options->peer, peer->option) == 0;
}

/* Fails with a list of the libraries with which bench can compare (peers), and of their devices. */
static int no_such_peer(const char *name) {
    char known[128] = "";
    size_t used = 0;
    const bench_device_kind *kind;
    for (size_t i = 0; (kind = bench_device_kind_at(i)) && used < sizeof known; i++)
        if (kind->peer)
            used +=
                (size_t)snprintf(known + used, sizeof known - used, "%s%s, beside --device %s:0",
                                 used ? ", and " : "", kind->peer->option, kind->name);
    return cli_usage("--peer: value is %s; there is only %s; the cpu's peers need no option", name,
                     known);
}

static int check_values(const values *options) {
    if (options->repeats < 1 || options->repeats > 1000)
        return cli_usage("--repeats: value is %lld; must be 1 to 1000",
                         (long long)options->repeats);
    if (options->peer && !has_peer(options)) return no_such_peer(options->peer);
    if (options->packed && options->no_pack_b) return cli_usage("--packed: is not for --no-pack-b");
    if (options->counters && !bench_device_kind_of(options->device)->count)
        return cli_usage("--counters: the times of the device %s do not come from a model",
                         options->device);
    if (options->sampled &&
        (!bench_device_kind_of(options->device)->is_model || is_conversion(options)))
        return cli_usage("--sampled: is for products on devices whose times come from a model");
    if (options->check && is_conversion(options))
        return cli_usage("--check: is for products, not for conversions");
    if (options->surface && (is_conversion(options) || options->challenge || options->plot))
        return cli_usage("--surface: takes the products of a file; give only --device and "
                         "--threads beside it");
    if (options->amax && !options->quantize) return cli_usage("--amax: is for --quantize");
    if (!cli_is_plain(options->out))
        return cli_usage("--out: value is %s; must be f32, f16 or bf16",
                         bsmm_format_name(options->out));
    if (!cli_is_plain(options->from))
        return cli_usage("--from: value is %s; must be f32, f16 or bf16",
                         bsmm_format_name(options->from));
    return CLI_OK;
}

static int check(const values *options) {
    int status = check_ranges(options);
    if (status == CLI_OK) status = check_values(options);
    if (status == CLI_OK && options->challenge) status = cli_bench_check_challenge(options);
    if (status == CLI_OK && is_conversion(options)) status = check_conversion(options);
    const char *refusal =
        status == CLI_OK && options->plot ? bench_gnuplot_refusal(options->plot) : NULL;
    return refusal ? cli_fail("%s: %s", options->plot, refusal) : status;
}

/* Times the products that a file lists, one per line; "-" is standard input. */
static int run_surface(const values *options) {
    bool is_input = strcmp(options->surface, "-") == 0;
    FILE *cells = is_input ? stdin : fopen(options->surface, "r");
    if (!cells) return cli_fail("%s: %s", options->surface, strerror(errno));
    int status = surface_run_all(options->device, cells);
    if (!is_input) fclose(cells);
    return status;
}

static int run(const void *arguments, char **args, int count) {
    (void)args, (void)count;
    const values options = complete(arguments);
    int status = check_sizes(arguments);
    if (status == CLI_OK) status = check(&options);
    if (status != CLI_OK) return status;
    /* Peers such as oneDNN take the number of threads from OpenMP. */
    omp_set_num_threads((int)options.threads);
    if (options.surface) return run_surface(&options);
    if (is_conversion(&options)) return cli_bench_recode(&options);
    return bench_device_kind_of(options.device)->is_host ? cli_bench_products(&options)
                                                         : cli_bench_queued(&options);
}

#define SIZE(field, key, what)                                                                     \
    {                                                                                              \
        .letter = key, .arg = "COUNT", .help = what, .kind = CLI_SIZE,                             \
        .offset = offsetof(values, field)                                                          \
    }
#define FLAG(spelling, field_, what)                                                               \
    { .name = spelling, .help = what, .kind = CLI_FLAG, .offset = offsetof(values, field_) }
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
     .help =
         "format of D, or format into which --dequantize writes: f32, f16 or bf16; unless given, "
         "f16, or bf16 if there are fp32 scales",
     .kind = CLI_FORMAT,
     .offset = offsetof(values, out)},
    FLAG("challenge", challenge,
         "measure the six products of AMD's FP8 groupwise challenge, or the one of -M, -N and -K"),
    SIZE(m, 'M', "rows of A and D; 1024 unless given"),
    SIZE(n, 'N', "rows of B, columns of D; 1024 unless given"),
    SIZE(k, 'K', "columns of A and B; 512 unless given"),
    {.name = "m-range",
     .arg = "LO HI",
     .help = "M from LO, doubling, to HI",
     .kind = CLI_RANGE,
     .offset = offsetof(values, m_range)},
    K_RANGE("k-range", false),
    K_RANGE("K_range", true),
    K_STEP("k-step", false),
    K_STEP("K_step", true),
    {.name = "bench",
     .help = "does nothing; Triton's tutorial has this option",
     .kind = CLI_FLAG,
     .offset = offsetof(values, bench),
     .hidden = true},
    CLI_OPTION_PACKED(values),
    FLAG("no-pack-b", no_pack_b, "pack B in every timed run, as a B that changes needs"),
    FLAG("cold", cold, "read B from memory: each run uses another copy of B, which no cache holds"),
    FLAG("counters", counters,
         "if times come from a model of the device, tell what the time of each launch consists "
         "of"),
    FLAG("sampled", sampled,
         "if times come from a model of the device, execute only the workgroups that the model "
         "needs, and validate only their results"),
    FLAG("check", check,
         "also compare the typical error of each shape with the largest one that was measured for "
         "its kernel; fail if it is more than twice as large"),
    FLAG("quantized-data", quantized,
         "quantize normally distributed operands by the format's default recipe"),
    FLAG("quantize", quantize, "measure quantizing an M x K matrix into --format instead"),
    FLAG("dequantize", dequantize, "measure dequantizing an M x K matrix of --format instead"),
    {.name = "relayout",
     .arg = "LAYOUT",
     .help =
         "measure moving the scales of an M x K matrix of --format from row_major into a layout",
     .kind = CLI_TEXT,
     .offset = offsetof(values, relayout)},
    {.name = "from",
     .arg = "FORMAT",
     .help = "format that --quantize reads: f32, f16 or bf16; f32 unless given",
     .kind = CLI_FORMAT,
     .offset = offsetof(values, from)},
    {.name = "recipe",
     .letter = 'r',
     .arg = "RECIPE",
     .help = "recipe of --quantize; the format's default unless given",
     .kind = CLI_TEXT,
     .offset = offsetof(values, recipe)},
    FLAG("amax", amax,
         "pass the largest magnitude to --quantize, so that a format with a tensor scale reads the "
         "matrix only once"),
    {.name = "repeats",
     .arg = "COUNT",
     .help = "rounds of measuring; 5 unless given",
     .kind = CLI_SIZE,
     .offset = offsetof(values, repeats)},
    {.name = "kernel",
     .arg = "KERNEL",
     .help = "use this kernel instead of the first that accepts",
     .kind = CLI_TEXT,
     .offset = offsetof(values, kernel)},
    {.name = "device",
     .arg = "DEVICE",
     .help = "device of this machine, cpu unless given",
     .kind = CLI_TEXT,
     .offset = offsetof(values, device)},
    {.name = "surface",
     .arg = "FILE",
     .help = "measure the products that a file lists, as bench/surface.py makes it (- is standard "
             "input), and print a JSON line for each",
     .kind = CLI_TEXT,
     .offset = offsetof(values, surface)},
    CLI_OPTION_FIDELITY(values),
    {.name = "peer",
     .arg = "PEER",
     .help = "on a GPU, measure " BENCH_PEER_HELP,
     .kind = CLI_TEXT,
     .offset = offsetof(values, peer)},
    CLI_OPTION_FAST(values),
    {.name = "plot",
     .arg = "FILE",
     .help = "draw GFLOP/s over K or M and a roofline, as SVG, by gnuplot; for FILE.gp, write a "
             "script with which gnuplot draws FILE.svg",
     .kind = CLI_OUTPUT,
     .offset = offsetof(values, plot)},
    CLI_OPTION_THREADS(values),
    CLI_OPTION_JSON(values),
    {0},
};

static const values defaults = {
    .m = -1, .n = -1, .k = -1, .k_step = 512, .repeats = 5, .device = "cpu"};

const cli_command cli_bench = {
    .name = "bench",
    .summary = "Validate a product, then measure its speed",
    .text =
        "Each shape is multiplied once, and the result is compared with sums in double. The data "
        "is "
        "that of Triton's block-scaled tutorial, and an error of 1e-3 absolute plus 1e-3 relative "
        "is "
        "allowed. If the result is wrong, nothing is timed, and the exit status is 1.\n\n"
        "Then three things are timed in turn, in several rounds: the product, the same product by "
        "other libraries (peers), and a loop that measures the peak of the arithmetic unit. Times "
        "are medians. The ceiling is the best that the loop reached in any round of any shape. If "
        "the loop of a shape is more than 10% below the ceiling, the shape is measured again, up "
        "to "
        "twice; if it still is, the shape is marked with a *. B is packed before the timing if the "
        "kernel packs it, because weights are constant.\n\n"
        "The peers are OpenBLAS's sgemm (libopenblas.so.0) and oneDNN's bf16 matmul (libdnnl.so.3 "
        "or "
        ".2), whose B is packed before the timing too. The variables BSMM_BENCH_OPENBLAS and "
        "BSMM_BENCH_ONEDNN name other files; an empty one leaves the peer out.\n\n"
        "With --cold, the ceiling is the lower of the arithmetic peak and of reading B at the "
        "memory "
        "bandwidth; this suits few rows of A. On a GPU, each time is that of one launch in a graph "
        "of launches with different operands. The ceilings there are " BENCH_PEER_TITLE
        "'s product (with --peer) or the peak of the data sheet (that of the H200 for an unknown "
        "device), and the bandwidth of a copy in device memory.\n\n"
        "With --challenge, A, B and their scales are column-major, elements and scales are "
        "normally "
        "distributed, and D is bf16. The elements are e4m3fnuz, or e4m3 with --format "
        "fp8_groupwise. "
        "The table ends with the geometric mean. If the times come from a model of the device, "
        "--sampled is the default for the six shapes.\n\n"
        "The spellings of Triton's tutorial, --K_range, --K_step and --bench, work as well.",
    .examples =
        "  bsmm bench --format mxfp4 -M 512 -N 4096 -K 4096\n"
        "  bsmm bench --format mixed --k-range 512 8192 --k-step 512 --plot mixed.svg\n"
        "  bsmm bench --format fp8_groupwise -M 1024 -N 1536 -K 7168 --json\n"
        "  bsmm bench --format mxfp4 --m-range 1 1024 -N 4096 -K 4096 --plot m.svg\n"
        "  bsmm bench --format bf16:nvfp4 -M 1 -N 4096 -K 4096 --cold --threads 1\n"
        "  bsmm bench --device " BENCH_EXAMPLE_DEVICE " --peer " BENCH_EXAMPLE_PEER
        " --format fp8_groupwise -M 4096 \\\n"
        "      -N 4096 -K 4096\n"
        "  bsmm bench --device " BENCH_EXAMPLE_DEVICE " --peer " BENCH_EXAMPLE_PEER
        " --format mxfp4 \\\n"
        "      --m-range 1 4096 -N 4096 -K 4096 --plot m.gp\n"
        "  bsmm bench --challenge --device " BENCH_EXAMPLE_DEVICE " --format fp8_groupwise\n"
        "  bsmm bench --quantize --from bf16 --format mxfp4 -M 8192 -K 8192\n"
        "  bench/surface.py cells --host --sample 100 | bsmm bench --surface - --threads 1\n"
        "  bsmm bench --relayout nv_128x4 --format mxfp8 -M 8192 -K 8192 "
        "--device " BENCH_EXAMPLE_DEVICE "\n",
    .options = options,
    .output = {cli_bench_product_columns, cli_bench_recode_columns, cli_bench_queued_columns,
               cli_bench_counter_columns, cli_bench_line_columns, cli_bench_challenge_columns,
               cli_bench_mean_columns, cli_fidelity_columns},
    .defaults = &defaults,
    .values_size = sizeof(values),
    .run = run,
};
