/* Measures the products of AMD's FP8 groupwise challenge, a competition of kernels for the MI300X.
 * A has one fp32 scale for each 1 x 128 elements, and B has one for each 128 x 128 elements. A, B
 * and their scales are column-major, and D is bf16. The challenge ranks kernels by the geometric
 * mean of their times. */
#include "bench_session.h"
#include "device.h"
#include <math.h>
#include <stdio.h>

/* Lists the shapes (M, N, K) of the challenge, and the times in us that other people have
 * published for their kernels on an MI300X. */
static const struct {
    int64_t sizes[3];
    double published;
} shapes[] = {
    {{1024, 1536, 7168}, 76.33}, {{1024, 4608, 7168}, 136.35}, {{6144, 1536, 7168}, 239.3},
    {{6144, 4608, 7168}, 723},   {{1024, 7168, 256}, 20.37},   {{6144, 7168, 256}, 77.0},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

const cli_column cli_bench_challenge_columns[] = {
    CLI_BENCH_JOB_COLUMNS,
    {"seconds", "   time", true, "median time of one product"},
    {.key = "modelled", .help = "the time comes from a model of the device"},
    {"light_seconds", "  light", true,
     "time at the speed of light: a GPU's by its data sheet ('bsmm sol'), the CPU's at the best "
     "rate of its arithmetic unit in this run"},
    {"share", "share", true, "light_seconds / seconds"},
    {"published_seconds", "published", true,
     "time that others have published for their kernel on an MI300X; null for other shapes"},
    {"checked", "checked", true, "outputs that were compared with sums in double"},
    {"max_error", "max error", true, "largest |d - exact| / max(1, |exact|) over these outputs"},
    CLI_BENCH_TRUST_COLUMNS,
    {0},
};

const cli_column cli_bench_mean_columns[] = {
    {"shapes", "shapes", true, "with --challenge, the number of shapes in the geometric means"},
    {"mean_seconds", "   time", true, "geometric mean of `seconds`, by which the challenge ranks"},
    {"mean_light_seconds", "  light", true, "geometric mean of `light_seconds`"},
    {"mean_share", "share", true, "mean_light_seconds / mean_seconds"},
    {"mean_published_seconds", "published", true, "geometric mean of `published_seconds`"},
    {"published_note", "note on published", false,
     "\"not comparable: ...\" if the times of this row were not measured"},
    {0},
};

int64_t cli_bench_challenge_shapes(void) {
    return SHAPES;
}

void cli_bench_challenge_shape_at(int64_t index, int64_t sizes[3]) {
    for (int i = 0; i < 3; i++)
        sizes[i] = shapes[index].sizes[i];
}

static double published_seconds(const int64_t sizes[3]) {
    for (int i = 0; i < SHAPES; i++)
        if (shapes[i].sizes[0] == sizes[0] && shapes[i].sizes[1] == sizes[1] &&
            shapes[i].sizes[2] == sizes[2])
            return shapes[i].published * 1e-6;
    return NAN;
}

static bool is_operand(const bsmm_format *f, uint32_t block_rows) {
    return (f->elem == BSMM_ELEM_E4M3FNUZ || f->elem == BSMM_ELEM_E4M3) &&
           f->scale == BSMM_SCALE_F32 && f->block_rows == block_rows && f->block_cols == 128;
}

int cli_bench_check_challenge(const cli_bench_values *values) {
    const bench_device_kind *kind = bench_device_kind_of(values->device);
    const bsmm_format *a = &values->formats.a, *b = &values->formats.b;
    const struct {
        const char *name;
        bool given;
    } others[] = {{"--quantize", values->quantize},
                  {"--dequantize", values->dequantize},
                  {"--relayout", values->relayout != NULL},
                  {"--quantized-data", values->quantized},
                  {"--plot", values->plot != NULL},
                  {"--peer", values->peer != NULL},
                  {"--m-range", values->m_range[0] != values->m_range[1]},
                  {"--k-range", values->k_range[0] != values->k_range[1]}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].given) return cli_usage("%s: is not for --challenge", others[i].name);
    if (!is_operand(a, 1) || !is_operand(b, 128) || a->elem != b->elem)
        return cli_usage("--format: value is %s; must be %s or fp8_groupwise for --challenge",
                         values->formats.name, CLI_CHALLENGE_FORMATS);
    if (values->out.elem != BSMM_ELEM_BF16)
        return cli_usage("--out: value is %s; must be bf16 for --challenge",
                         bsmm_format_name(values->out));
    if (values->all_shapes && kind->is_simulated && !kind->is_model)
        return cli_usage("--challenge: %s has no model of time, and simulating the challenge's "
                         "shapes would take hours; -M, -N and -K give a small shape",
                         values->device);
    return CLI_OK;
}

static void print_time(cli_rows *rows, double seconds, const char *note) {
    if (isnan(seconds))
        cli_row_value(rows, json_null(), "-");
    else
        cli_row_value(rows, json_real(seconds), "%.2f us%s", seconds * 1e6, note);
}

void cli_bench_print_challenge(cli_bench_session *s, cli_rows *rows, void *result,
                               bench_point *point, const cli_bench_trust *trust) {
    const bench_result *ours = result;
    const bench_device_kind *kind = bench_device_kind_of(s->values->device);
    (void)point;
    cli_bench_job_cells(s, rows, ours->kernel);
    print_time(rows, ours->seconds, bench_device_time_note(kind));
    cli_row_value(rows, json_boolean(kind->is_model), "%s", "");
    print_time(rows, ours->light_seconds, "");
    cli_bench_share_cell(rows, ours->light_seconds / ours->seconds, trust);
    print_time(rows, published_seconds(s->job.sizes), "");
    cli_row_integer(rows, ours->checked);
    cli_row_number(rows, ours->max_error, "%.2g");
    cli_bench_trust_cells(rows, trust);
}

static const char *published_note(const bench_device_kind *kind) {
    if (kind->is_model) return "not comparable: model";
    if (kind->is_simulated) return "not comparable: simulating";
    return "measured by others on an MI300X";
}

void cli_bench_print_challenge_means(cli_bench_session *s) {
    const bench_device_kind *kind = bench_device_kind_of(s->values->device);
    double seconds = 0, light = 0, published = 0;
    if (s->kept == 0 || (int64_t)s->kept < cli_bench_shapes(s->values)) return;
    for (size_t i = 0; i < s->kept; i++) {
        const void *of = (const char *)s->results + i * s->parts->result_bytes;
        const bench_result *result = of;
        int64_t sizes[3];
        cli_bench_shape_at(s->values, (int64_t)i, sizes);
        seconds += log(result->seconds) / (double)s->kept;
        light += log(result->light_seconds) / (double)s->kept;
        published += log(published_seconds(sizes)) / (double)s->kept;
    }
    if (!s->values->json) printf("\ngeometric means\n");
    cli_rows *rows = cli_rows_open(cli_bench_mean_columns, s->values->json);
    cli_row_integer(rows, (int64_t)s->kept);
    print_time(rows, exp(seconds), bench_device_time_note(kind));
    print_time(rows, exp(light), "");
    cli_row_number(rows, exp(light - seconds), "%.3f");
    print_time(rows, exp(published), "");
    cli_row_text(rows, published_note(kind));
    cli_rows_close(rows);
}
