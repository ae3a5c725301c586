/* Implements `bsmm encode`, which converts values to element codes, and shows the rounding error
 * and the neighboring values. */
#include "common.h"
#include "rows.h"
#include "tables.h"
#include "words.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct values {
    bool json, no_saturate;
} values;

static const cli_column columns[] = {
    {"format", "format", false, "element format"},
    {"value", "value", true, "the value asked for"},
    {"code", "code", true, "its code, as an integer"},
    {"result", "result", true, "the value of the code"},
    {"error", "error", true, "result - value"},
    {"below", "next below", true, "largest value of the format below the value; null: none"},
    {"above", "next above", true, "smallest value of the format above the value; null: none"},
    {0},
};

/* Converts a double to f32 with rounding to odd. The library later rounds the f32 number to the
 * element format. Rounding to odd makes these two roundings equal to one rounding, for every
 * format except f32. */
static float to_odd(double value) {
    float nearest = (float)value;
    if (!isfinite(value) || (double)nearest == value) return nearest;
    if (fabs((double)nearest) > fabs(value)) nearest = nextafterf(nearest, 0);
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    bits |= 1;
    memcpy(&nearest, &bits, sizeof bits);
    return value < 0 ? -fabsf(nearest) : nearest;
}

static void value_row(cli_rows *rows, const bsmm_elem_info *info, double value, uint32_t code) {
    double result = 0, below = NAN, above = NAN;
    bsmm_decode_elem(info->elem, code, &result);
    if (!isnan(value)) cli_elem_neighbours(info, value, &below, &above);
    cli_row_text(rows, info->name);
    cli_row_number(rows, value, "%.9g");
    cli_row_value(rows, json_integer(code), "0x%0*x", (int)(info->bits + 3) / 4, code);
    cli_row_number(rows, result, "%.9g");
    cli_row_number(rows, result - value, "%.4g");
    cli_row_number(rows, below, isnan(below) ? "none" : "%.9g");
    cli_row_number(rows, above, isnan(above) ? "none" : "%.9g");
}

static bool parse_value(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end;
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    bsmm_elem_info info;
    double value;
    if (!cli_elem_find(args[0], &info)) return cli_usage_word("ELEM", args[0]);
    for (int i = 1; i < count; i++)
        if (!parse_value(args[i], &value))
            return cli_usage("value: value is %s; must be a number, inf or nan", args[i]);
    cli_rows *rows = cli_rows_open(columns, options->json);
    for (int i = 1; i < count; i++) {
        uint32_t code = 0;
        parse_value(args[i], &value);
        float single = info.elem == BSMM_ELEM_F32 ? (float)value : to_odd(value);
        if (bsmm_encode_elem(info.elem, single, !options->no_saturate, &code))
            return cli_fail_library(NULL);
        value_row(rows, &info, value, code);
    }
    cli_rows_close(rows);
    return CLI_OK;
}

static const cli_option options[] = {
    {.name = "no-saturate",
     .help = "overflow gives Inf, or NaN where there is no Inf (OCP's other mode)",
     .kind = CLI_FLAG,
     .offset = offsetof(values, no_saturate)},
    CLI_OPTION_JSON(values),
    {0},
};

const cli_command cli_encode = {
    .name = "encode",
    .args = "ELEM VALUE...",
    .summary = "Round values to codes, to nearest even, with the error and the neighbours",
    .text = "ELEM is an element or scale format of 'bsmm formats'. Overflow saturates to the "
            "largest finite value unless --no-saturate is given.",
    .examples = "  bsmm encode e2m1 0.2505\n"
                "  bsmm encode e4m3 --no-saturate 464 465 -inf\n",
    .options = options,
    .output = {columns},
    .values_size = sizeof(values),
    .min_args = 2,
    .max_args = -1,
    .takes_negative_numbers = true,
    .run = run,
};
