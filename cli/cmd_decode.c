/* Implements `bsmm decode`, which shows the sign, exponent, mantissa and value of element codes. */
#include "common.h"
#include "rows.h"
#include "tables.h"
#include "words.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct values {
    bool json;
} values;

static const cli_column columns[] = {
    {"format", "format", false, "element format"},
    {"code", "code", true, "the code, as an integer"},
    {"sign", "sign", false, "sign bit; empty if there is none"},
    {"exponent", "exponent", false, "exponent field in binary"},
    {"mantissa", "mantissa", false, "mantissa field in binary; empty if there is none"},
    {"class", "class", false, "\"zero\", \"subnormal\", \"normal\", \"inf\" or \"nan\""},
    {.key = "value", .help = "the value; null for inf and nan"},
    {NULL, "formula", false, NULL},
    {"exact", "value", false, "the value's exact decimal digits, as a string"},
    {0},
};

typedef struct fields {
    uint32_t sign_bits, sign, exponent, mantissa;
} fields;

static fields split_fields(const bsmm_elem_info *info, uint32_t code) {
    uint32_t magnitude_bits = info->exponent_bits + info->mantissa_bits;
    return (fields){
        .sign_bits = info->bits - magnitude_bits,
        .sign = (uint32_t)((uint64_t)code >> magnitude_bits),
        .exponent = (code >> info->mantissa_bits) & ((1u << info->exponent_bits) - 1),
        .mantissa = code & ((1u << info->mantissa_bits) - 1),
    };
}

static const char *class_of(const bsmm_elem_info *info, const fields *parts, double value) {
    if (isnan(value)) return "nan";
    if (isinf(value)) return "inf";
    if (value == 0) return "zero";
    return parts->exponent == 0 && info->mantissa_bits ? "subnormal" : "normal";
}

static void binary_cell(cli_rows *rows, uint32_t value, uint32_t bits) {
    char text[33] = "";
    for (uint32_t i = 0; i < bits; i++)
        text[i] = (char)('0' + (value >> (bits - 1 - i) & 1));
    cli_row_text(rows, text);
}

/* Shows the formula of a value, such as "-(1 + 3/8) * 2^-6". */
static void formula_cell(cli_rows *rows, const bsmm_elem_info *info, const fields *parts,
                         double value) {
    const char *sign = parts->sign ? "-" : "";
    bool normal = parts->exponent || !info->mantissa_bits;
    int power = (normal ? (int)parts->exponent : 1) - info->bias;
    if (!isfinite(value) || value == 0)
        cli_row_value(rows, NULL, "-");
    else if (!parts->mantissa)
        cli_row_value(rows, NULL, "%s2^%d", sign, power);
    else
        cli_row_value(rows, NULL, "%s%s%u/%u%s * 2^%d", sign, normal ? "(1 + " : "",
                      parts->mantissa, 1u << info->mantissa_bits, normal ? ")" : "", power);
}

static void code_row(cli_rows *rows, const bsmm_elem_info *info, uint32_t code, double value) {
    fields parts = split_fields(info, code);
    char exact[160];
    snprintf(exact, sizeof exact, "%.140g", value);
    cli_row_text(rows, info->name);
    cli_row_value(rows, json_integer(code), "0x%0*x", (int)(info->bits + 3) / 4, code);
    binary_cell(rows, parts.sign, parts.sign_bits);
    binary_cell(rows, parts.exponent, info->exponent_bits);
    binary_cell(rows, parts.mantissa, info->mantissa_bits);
    cli_row_text(rows, class_of(info, &parts, value));
    cli_row_number(rows, value, "%g");
    formula_cell(rows, info, &parts, value);
    cli_row_text(rows, isnan(value) ? "nan" : exact);
}

/* Parses an element code, which is hexadecimal with 0x, binary with 0b, else decimal. */
static bool parse_code(const char *text, uint32_t *code) {
    char *end;
    bool prefixed = text[0] == '0' && (text[1] == 'x' || text[1] == 'b');
    int base = !prefixed ? 10 : text[1] == 'x' ? 16 : 2;
    const char *digits = prefixed ? text + 2 : text;
    unsigned long long parsed = strtoull(digits, &end, base);
    *code = (uint32_t)parsed;
    return digits[0] >= '0' && end != digits && !*end && parsed <= UINT32_MAX;
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    bsmm_elem_info info;
    uint32_t code;
    double value;
    if (!cli_elem_find(args[0], &info)) return cli_usage_word("ELEM", args[0]);
    for (int i = 1; i < count; i++) {
        if (!parse_code(args[i], &code))
            return cli_usage("code: value is %s; must be a whole number, 0x... or 0b...", args[i]);
        if (bsmm_decode_elem(info.elem, code, &value)) return cli_usage("%s", bsmm_error_message());
    }
    cli_rows *rows = cli_rows_open(columns, options->json);
    for (int i = 1; i < count; i++) {
        parse_code(args[i], &code);
        bsmm_decode_elem(info.elem, code, &value);
        code_row(rows, &info, code, value);
    }
    cli_rows_close(rows);
    return CLI_OK;
}

static const cli_option options[] = {CLI_OPTION_JSON(values), {0}};

const cli_command cli_decode = {
    .name = "decode",
    .args = "ELEM CODE...",
    .summary = "Take codes apart: sign, exponent, mantissa and exact value",
    .text = "ELEM is an element or scale format of 'bsmm formats'. Codes are decimal, "
            "hexadecimal (0x7e) or binary (0b101).",
    .examples = "  bsmm decode e4m3fnuz 0x83 0x80\n"
                "  bsmm decode e2m1 0 1 2 3 4 5 6 7\n"
                "  bsmm decode e8m0 0b1111111\n",
    .options = options,
    .output = {columns},
    .values_size = sizeof(values),
    .min_args = 2,
    .max_args = -1,
    .run = run,
};
