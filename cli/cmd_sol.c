/* Implements `bsmm sol`, which prints the speed of light of a product on a device, i.e. the
 * shortest possible time, and the resource that limits it. */
#include "common.h"
#include "product.h"
#include "rows.h"
#include <string.h>

typedef struct values {
    const char *device;
    cli_format_pair formats;
    int64_t sizes[3];
    bsmm_format out;
    bool json;
} values;

static const cli_column columns[] = {
    {"device", "device", false, "name of the device"},
    {"format", "format", false, "formats as given"},
    {"m", "M", true, "rows of A and D"},
    {"n", "N", true, "rows of B, columns of D"},
    {"k", "K", true, "columns of A and B"},
    {"seconds", "time", true, "the larger of the next two"},
    {"compute_seconds", "compute", true, "operations / peak"},
    {"memory_seconds", "memory", true, "bytes / bandwidth, each byte once"},
    {"unit", "unit", false, "which peak applies: \"f32\", \"f16\", \"f8\", \"f6\" or \"f4\""},
    {"limit", "limit", false, "\"compute\" or \"memory\""},
    {.key = "operations", .help = "2 M N K"},
    {.key = "bytes", .help = "bytes of A, B, D and scales"},
    {0},
};

static void seconds_cell(cli_rows *rows, double seconds) {
    cli_row_value(rows, json_real(seconds), "%s", cli_seconds(seconds).text);
}

static void estimate_row(cli_rows *rows, const char *device, const values *options,
                         const bsmm_sol_estimate *estimate) {
    cli_row_text(rows, device);
    cli_row_text(rows, options->formats.name);
    for (int i = 0; i < 3; i++)
        cli_row_integer(rows, options->sizes[i]);
    seconds_cell(rows, estimate->seconds);
    seconds_cell(rows, estimate->compute_seconds);
    seconds_cell(rows, estimate->memory_seconds);
    cli_row_text(rows, estimate->unit);
    cli_row_text(rows, estimate->limit);
    cli_row_number(rows, estimate->operations, "%.0f");
    cli_row_number(rows, estimate->bytes, "%.0f");
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)args, (void)count;
    bool all = !strcmp(options->device, "all");
    bsmm_device_info info = BSMM_INIT(bsmm_device_info);
    bsmm_sol_estimate estimate = BSMM_INIT(bsmm_sol_estimate);
    cli_product product;
    cli_product_describe(&product, &options->formats, options->sizes, options->out);
    cli_rows *rows = cli_rows_open(columns, options->json);
    int status = CLI_OK;
    for (uint32_t i = 0; !bsmm_device_at(i, &info); i++) {
        if (!all && strcmp(info.name, options->device)) continue;
        if (bsmm_estimate_sol(info.name, &product.desc, &estimate))
            status = cli_fail_library(info.name);
        else
            estimate_row(rows, info.name, options, &estimate);
    }
    cli_rows_close(rows);
    return status;
}

static const cli_option options[] = {
    {.name = "device",
     .letter = 'd',
     .arg = "MODEL",
     .help = "a known device of 'bsmm devices', or all",
     .kind = CLI_TEXT,
     .offset = offsetof(values, device),
     .required = true},
    CLI_OPTION_FORMATS(values),
    CLI_OPTION_SIZES(values),
    CLI_OPTION_OUT(values),
    CLI_OPTION_JSON(values),
    {0},
};

static const values defaults = {.out = {.elem = BSMM_ELEM_BF16}};

const cli_command cli_sol = {
    .name = "sol",
    .summary = "Estimate a product's time at the speed of light, and what limits it",
    .text = "The estimate is the larger of operations / peak and bytes / bandwidth, with the "
            "data-sheet figures that 'bsmm devices' lists.",
    .examples = "  bsmm sol --device mi300x --format fp8_groupwise -M 1024 -N 1536 -K 7168\n"
                "  bsmm sol --device all --format mxfp4 -M 4096 -N 4096 -K 4096\n",
    .options = options,
    .output = {columns},
    .defaults = &defaults,
    .values_size = sizeof(values),
    .run = run,
};
