/* Implements `bsmm mfma`, which lists AMD's matrix instructions or draws the registers of one
 * operand. */
#include "common.h"
#include "mfma.h"
#include "rows.h"
#include <stdio.h>
#include <string.h>

enum { ALL = -1 }; /* ALL means that the user did not give --cdna. */

static const cli_column list_columns[] = {
    {"instruction", "instruction", false, "name of the instruction, as LLVM's assembler writes it"},
    {"cdna", "cdna", true, "generation of the matrix cores"},
    {.key = "m", .help = "rows of A and D"},
    {.key = "n", .help = "columns of B and D"},
    {.key = "k", .help = "columns of A"},
    {NULL, "m x n x k", true, NULL},
    {"blocks", "blocks", true, "independent products in one instruction"},
    {"a", "A", false, "type of A; several: the instruction has a choice"},
    {"b", "B", false, "type of B"},
    {"d", "D", false, "type of C and D"},
    {"cycles", "cycles", true, "cycles until the matrix core takes another"},
    {"passes", "passes", true, "the same in passes, four cycles each"},
    {"cu_operations", "op/CU/cycle", true, "operations of a compute unit in a cycle"},
    {"peaks", "peak TFLOP/s", false, "operations per second of each known device, by its name"},
    {"source", "cycles by", false, "where the cycles come from"},
    {0},
};

/* Adds the instruction's peak rate for each device that has the instruction, in operations per
 * second. It is 2 m n k * number of matrix cores * clock / cycles of one instruction. The source is
 * section 3 of AMD's article on matrix instructions. */
static void peaks_cell(cli_rows *rows, const bsmm_mfma_info *info) {
    bsmm_device_info device = BSMM_INIT(bsmm_device_info);
    json_t *peaks = json_object();
    char text[160] = "";
    for (uint32_t i = 0; !bsmm_device_at(i, &device); i++) {
        if (device.cdna != info->cdna) continue;
        const double peak =
            info->cu_operations / 4.0 * device.matrix_cores * (device.megahertz * 1e6);
        const size_t length = strlen(text);
        json_object_set_new(peaks, device.name, json_real(peak));
        snprintf(text + length, sizeof text - length, "%s%s %.1f", length ? ", " : "", device.name,
                 peak / 1e12);
    }
    cli_row_value(rows, peaks, "%s", text);
}

static void instruction_row(cli_rows *rows, const bsmm_mfma_info *info) {
    cli_row_text(rows, info->name);
    cli_row_integer(rows, info->cdna);
    cli_row_value(rows, json_integer(info->m), "%s", "");
    cli_row_value(rows, json_integer(info->n), "%s", "");
    cli_row_value(rows, json_integer(info->k), "%s", "");
    cli_row_value(rows, NULL, "%ux%ux%u", info->m, info->n, info->k);
    cli_row_integer(rows, info->blocks);
    cli_row_text(rows, info->a);
    cli_row_text(rows, info->b);
    cli_row_text(rows, info->d);
    cli_row_integer(rows, info->cycles);
    cli_row_integer(rows, info->cycles / 4);
    cli_row_integer(rows, info->cu_operations);
    peaks_cell(rows, info);
    cli_row_text(rows, info->source);
}

static int list_instructions(const cli_mfma_values *options) {
    bsmm_mfma_info info = BSMM_INIT(bsmm_mfma_info);
    if (options->cdna != ALL && (options->cdna < 1 || options->cdna > 4))
        return cli_usage("--cdna: value is %lld; must be 1 to 4", (long long)options->cdna);
    cli_rows *rows = cli_rows_open(list_columns, options->json);
    for (uint32_t i = 0; !bsmm_mfma_at(i, &info); i++)
        if (options->cdna == ALL || options->cdna == info.cdna) instruction_row(rows, &info);
    cli_rows_close(rows);
    return CLI_OK;
}

static int run(const void *arguments, char **args, int count) {
    const cli_mfma_values *options = arguments;
    if (count) return cli_mfma_draw(args[0], options);
    if (options->operand || options->type || options->svg || options->block)
        return cli_usage("--operand, --type, --block and --svg need an INSTRUCTION");
    return list_instructions(options);
}

static const cli_option options[] = {
    {.name = "operand",
     .letter = 'o',
     .arg = "OPERAND",
     .help = "what to draw: A (the default), B, C, D, scale_a or scale_b",
     .kind = CLI_TEXT,
     .offset = offsetof(cli_mfma_values, operand)},
    {.name = "type",
     .letter = 't',
     .arg = "TYPE",
     .help = "type of A or B where the instruction has a choice (its first)",
     .kind = CLI_TEXT,
     .offset = offsetof(cli_mfma_values, type)},
    {.name = "block",
     .arg = "COUNT",
     .help = "which of the products of an instruction to draw (0)",
     .kind = CLI_SIZE,
     .offset = offsetof(cli_mfma_values, block)},
    {.name = "cdna",
     .arg = "COUNT",
     .help = "list the instructions of one generation only, 1 to 4",
     .kind = CLI_SIZE,
     .offset = offsetof(cli_mfma_values, cdna)},
    {.name = "svg",
     .help = "draw an SVG with axes and a legend, colored by lane and register",
     .kind = CLI_FLAG,
     .offset = offsetof(cli_mfma_values, svg)},
    CLI_OPTION_JSON(cli_mfma_values),
    {0},
};

static const cli_mfma_values defaults = {.cdna = ALL};

const cli_command cli_mfma = {
    .name = "mfma",
    .args = "[INSTRUCTION]",
    .summary = "List AMD's matrix instructions, or draw which lane holds each element",
    .text =
        "A drawing has one row for each i of A, C and D, or for each j of B. Its cells are runs "
        "of elements: where one lane holds several in order, or several lanes one each in the "
        "same register. Registers count from the operand's first.",
    .examples = "  bsmm mfma --cdna 4\n"
                "  bsmm mfma v_mfma_f32_16x16x32_fp8_fp8 --operand D\n"
                "  bsmm mfma v_mfma_scale_f32_16x16x128_f8f6f4 --operand A --type e2m1\n",
    .options = options,
    .output = {list_columns, cli_mfma_places},
    .defaults = &defaults,
    .values_size = sizeof(cli_mfma_values),
    .max_args = 1,
    .run = run,
};
