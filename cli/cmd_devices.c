/* Implements `bsmm devices`, which lists the devices of this machine and the data sheets of known
 * devices. */
#include "common.h"
#include "rows.h"
#include <stdio.h>

typedef struct values {
    bool json;
} values;

static const cli_column local_columns[] = {
    {.key = "kind", .help = "\"local\": of this machine"},
    {"name", "device", false, "name for --device of matmul, bench and explain"},
    {"title", "title", false, "what it is"},
    {"cores", "cores", true, "cores or compute units"},
    {"features", "features", false, "instruction sets, or the architecture"},
    {0},
};

static const cli_column known_columns[] = {
    {.key = "kind", .help = "\"known\": a data sheet"},
    {"name", "known device", false, "name for --device of sol"},
    {"title", "title", false, "what it is"},
    {"f32", "f32 TFLOP/s", true, "dense peak in operations per second; null: no such unit"},
    {"f16", "f16 TFLOP/s", true, "the same for f16 and bf16"},
    {"f8", "f8 TFLOP/s", true, "the same for 8-bit floats"},
    {"f6", "f6 TFLOP/s", true, "the same for 6-bit floats"},
    {"f4", "f4 TFLOP/s", true, "the same for 4-bit floats"},
    {"bandwidth", "memory", true, "bytes per second"},
    {"source", "source", false, "where the figures come from"},
    {0},
};

static void print_local(bool json) {
    bsmm_local_device info = BSMM_INIT(bsmm_local_device);
    cli_rows *rows = cli_rows_open(local_columns, json);
    for (uint32_t i = 0; !bsmm_local_device_at(i, &info); i++) {
        cli_row_text(rows, "local");
        cli_row_text(rows, info.name);
        cli_row_text(rows, info.title);
        cli_row_integer(rows, info.cores);
        cli_row_text(rows, info.features);
    }
    cli_rows_close(rows);
}

static void peak_cell(cli_rows *rows, double peak) {
    if (peak > 0)
        cli_row_value(rows, json_real(peak), "%.5g", peak / 1e12);
    else
        cli_row_text(rows, NULL);
}

static void print_known(bool json) {
    bsmm_device_info info = BSMM_INIT(bsmm_device_info);
    cli_rows *rows = cli_rows_open(known_columns, json);
    for (uint32_t i = 0; !bsmm_device_at(i, &info); i++) {
        cli_row_text(rows, "known");
        cli_row_text(rows, info.name);
        cli_row_text(rows, info.title);
        peak_cell(rows, info.f32);
        peak_cell(rows, info.f16);
        peak_cell(rows, info.f8);
        peak_cell(rows, info.f6);
        peak_cell(rows, info.f4);
        cli_row_value(rows, json_real(info.bandwidth), "%s",
                      cli_quantity(info.bandwidth, "B/s").text);
        cli_row_text(rows, info.source);
    }
    cli_rows_close(rows);
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)args, (void)count;
    print_local(options->json);
    if (!options->json) putchar('\n');
    print_known(options->json);
    return CLI_OK;
}

static const cli_option options[] = {CLI_OPTION_JSON(values), {0}};

const cli_command cli_devices = {
    .name = "devices",
    .summary = "List this machine's devices, and known devices with peaks and sources",
    .examples = "  bsmm devices\n"
                "  bsmm devices --json\n",
    .options = options,
    .output = {local_columns, known_columns},
    .values_size = sizeof(values),
    .run = run,
};
