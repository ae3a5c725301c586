/* Implements `bsmm formats`, which prints the tables of element formats, scale formats and
 * presets. */
#include "common.h"
#include "rows.h"
#include "tables.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct values {
    bool json;
} values;

static const cli_column elem_columns[] = {
    {.key = "kind", .help = "\"element\""},
    {"name", "element", false, "name of the format"},
    {"role", "role", false, "what it can be: \"element\", \"scale\" or \"both\""},
    {"bits", "bits", true, "bits of a code"},
    {"exponent_bits", "exp", true, "bits of the exponent field"},
    {"mantissa_bits", "man", true, "bits of the mantissa field"},
    {"bias", "bias", true, "exponent bias"},
    {"max", "max", true, "largest finite value"},
    {"min_normal", "min normal", true, "smallest normal value"},
    {"min_subnormal", "subnormal", true, "smallest subnormal value; null: none"},
    {"nan", "NaN", false, "codes of NaN (s is the sign, x any bit)"},
    {"inf", "Inf", false, "codes of Inf"},
    {"zeros", "zeros", false, "zeros that it has"},
    {"used_by", "used by", false, "who uses it"},
    {0},
};

static const cli_column preset_columns[] = {
    {.key = "kind", .help = "\"preset\""},
    {"name", "preset", false, "name of the preset"},
    {"element", "element", false, "element format"},
    {"scale", "scale", false, "scale format"},
    {.key = "block_rows", .help = "rows that share a scale"},
    {.key = "block_cols", .help = "columns (along K) that share a scale"},
    {NULL, "block", true, NULL},
    {"bits_per_weight", "bits/weight", true, "bits of elements and block scales"},
    {"second_level", "second level", false, "scale of the whole tensor"},
    {"default_recipe", "recipe", false, "recipe used when none is named"},
    {"used_by", "used by", false, "who uses it"},
    {0},
};

static const char *role(const char *name) {
    bsmm_format format;
    /* The library accepts no matrix with this format, so the format is for scales only. */
    if (bsmm_format_from_name(name, &format)) return "scale";
    for (uint32_t scale = 1; strcmp(cli_scale_name(scale), "unknown"); scale++)
        if (!strcmp(name, cli_scale_name(scale))) return "both";
    return "element";
}

/* Shows a value in decimal. A power of two with a long decimal form is shown as a power. */
static void value_cell(cli_rows *rows, double value) {
    int exponent;
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    if (frexp(value, &exponent) == 0.5 && (exponent < -1 || exponent > 17))
        snprintf(text, sizeof text, "2^%d", exponent - 1);
    json_t *number = value == 0 ? NULL : json_real(value);
    cli_row_value(rows, number, "%s", value == 0 ? "none" : text);
}

static void print_elements(bool json) {
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    cli_rows *rows = cli_rows_open(elem_columns, json);
    for (uint32_t i = 0; !bsmm_elem_at(i, &info); i++) {
        cli_row_text(rows, "element");
        cli_row_text(rows, info.name);
        cli_row_text(rows, role(info.name));
        cli_row_integer(rows, info.bits);
        cli_row_integer(rows, info.exponent_bits);
        cli_row_integer(rows, info.mantissa_bits);
        cli_row_integer(rows, info.bias);
        value_cell(rows, info.max);
        value_cell(rows, info.min_normal);
        value_cell(rows, info.min_subnormal);
        cli_row_text(rows, info.nan);
        cli_row_text(rows, info.inf);
        cli_row_text(rows, info.zeros);
        cli_row_text(rows, info.used_by);
    }
    cli_rows_close(rows);
}

static void print_presets(bool json) {
    bsmm_preset_info info = BSMM_INIT(bsmm_preset_info);
    cli_rows *rows = cli_rows_open(preset_columns, json);
    for (uint32_t i = 0; !bsmm_preset_at(i, &info); i++) {
        bsmm_format element = {.elem = info.format.elem};
        cli_row_text(rows, "preset");
        cli_row_text(rows, info.name);
        cli_row_text(rows, bsmm_format_name(element));
        cli_row_text(rows, cli_scale_name(info.format.scale));
        cli_row_integer(rows, info.format.block_rows);
        cli_row_integer(rows, info.format.block_cols);
        cli_row_value(rows, NULL, "%ux%u", info.format.block_rows, info.format.block_cols);
        cli_row_number(rows, info.bits_per_weight, "%.4g");
        cli_row_text(rows, info.second_level);
        cli_row_text(rows, info.default_recipe);
        cli_row_text(rows, info.used_by);
    }
    cli_rows_close(rows);
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)args, (void)count;
    print_elements(options->json);
    if (!options->json) putchar('\n');
    print_presets(options->json);
    return CLI_OK;
}

static const cli_option options[] = {CLI_OPTION_JSON(values), {0}};

const cli_command cli_formats = {
    .name = "formats",
    .summary = "List the element, scale and preset formats",
    .examples = "  bsmm formats\n"
                "  bsmm formats --json\n",
    .options = options,
    .output = {elem_columns, preset_columns},
    .values_size = sizeof(values),
    .run = run,
};
