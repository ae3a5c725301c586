/* Implements `bsmm families`, which lists the ways in which checkpoints store quantized weights. */
#include "common.h"
#include "rows.h"

typedef struct values {
    bool json;
} values;

static const cli_column columns[] = {
    {"name", "family", false, "name for --family of quantize and convert"},
    {.key = "writes", .help = "true if it can be written, false if only read"},
    {"formats", "reads", false, "formats that are read, separated by spaces"},
    {"written", "writes", false, "formats that are written, separated by spaces"},
    {.key = "detected_by", .help = "tensors that tell it"},
    {"source", "source", false, "where the convention is from"},
    {0},
};

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    bsmm_family_info info = BSMM_INIT(bsmm_family_info);
    (void)args, (void)count;
    cli_rows *rows = cli_rows_open(columns, options->json);
    for (uint32_t i = 0; !bsmm_family_at(i, &info); i++) {
        cli_row_text(rows, info.name);
        cli_row_value(rows, json_boolean(info.writes), "%s", info.writes ? "yes" : "-");
        cli_row_text(rows, info.formats);
        cli_row_text(rows, info.written);
        cli_row_text(rows, info.detected_by);
        cli_row_text(rows, info.source);
    }
    cli_rows_close(rows);
    return CLI_OK;
}

static const cli_option options[] = {CLI_OPTION_JSON(values), {0}};

const cli_command cli_families = {
    .name = "families",
    .summary = "List the checkpoint families, and the formats that are read and written",
    .examples = "  bsmm families\n"
                "  bsmm families --json\n",
    .options = options,
    .output = {columns},
    .values_size = sizeof(values),
    .run = run,
};
