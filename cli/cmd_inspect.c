/* Implements `bsmm inspect`, which lists the weights and other tensors of a file. */
#include "common.h"
#include "files.h"
#include "rows.h"
#include "shrink.h"
#include "tables.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct values {
    bool json;
} values;

static const cli_column columns[] = {
    {"name", "name", false, "name of the weight, or of a tensor that belongs to none"},
    {"family", "family", false, "checkpoint family; null: not a weight"},
    {"dtype", "dtype", false, "type of the elements, as the file spells it"},
    {"shape", "shape", false, "logical shape, an array"},
    {"format", "format", false, "format of the weight; null: not a weight"},
    {"layout", "layout", false, "scale layout; null: no block scales"},
    {"scales", "scales", false, "rows and columns of block scales, an array; null: none"},
    {"error", "error", false, "what is wrong with the weight; null: nothing"},
    {0},
};

/* Writes a number in decimal digits that end before `end`. Returns the address of the first digit.
 * printf would take a tenth of the time in which the command lists a million tensors. */
static char *write_digits(char *end, uint64_t number) {
    do
        *--end = (char)('0' + number % 10);
    while (number /= 10);
    return end;
}

/* Shows a shape as an array in JSON and as "2x3" in the table. */
static void shape_cell(cli_rows *rows, uint32_t ndim, const int64_t *shape) {
    char text[BSMM_MAX_DIMS * 21 + 1];
    char *const end = text + sizeof text - 1, *at = end;
    json_t *array = cli_rows_are_json(rows) ? json_array() : NULL;
    *end = '\0';
    for (uint32_t i = ndim; i-- > 0;) {
        at = write_digits(at, (uint64_t)shape[i]);
        if (i) *--at = 'x';
    }
    for (uint32_t i = 0; i < ndim && array; i++)
        json_array_append_new(array, json_integer(shape[i]));
    cli_row_cell(rows, array, ndim ? at : "scalar");
}

static void scale_cells(cli_rows *rows, const bsmm_weight *weight) {
    const bsmm_format *format = &weight->format;
    if (format->scale == BSMM_SCALE_NONE) {
        cli_row_text(rows, NULL);
        cli_row_text(rows, NULL);
        return;
    }
    cli_row_text(rows, cli_layout_name(weight->scale_layout));
    shape_cell(rows, 2,
               (const int64_t[]){(weight->rows + format->block_rows - 1) / format->block_rows,
                                 (weight->cols + format->block_cols - 1) / format->block_cols});
}

static void weight_row(cli_rows *rows, const bsmm_weight *weight, const char *error) {
    const int64_t shape[] = {weight->batch, weight->rows, weight->cols};
    bool batched = weight->batch != 1;
    cli_row_text(rows, weight->name);
    cli_row_text(rows, weight->family);
    cli_row_text(rows, weight->dtype);
    if (error) {
        for (int i = 0; i < 4; i++)
            cli_row_text(rows, NULL);
    } else {
        shape_cell(rows, batched ? 3 : 2, batched ? shape : shape + 1);
        cli_row_text(rows, cli_format_text(weight->format).text);
        scale_cells(rows, weight);
    }
    cli_row_cell(rows, error ? json_string(error) : NULL, error ? error : "");
}

static void tensor_row(cli_rows *rows, const bsmm_tensor *tensor) {
    cli_row_text(rows, tensor->name);
    cli_row_text(rows, NULL);
    cli_row_text(rows, tensor->dtype);
    shape_cell(rows, tensor->ndim, tensor->shape);
    for (int i = 0; i < 3; i++)
        cli_row_text(rows, NULL);
    cli_row_cell(rows, NULL, "");
}

/* Prints the collected rows of the table after every 4096 rows, so that memory use does not grow
 * with the length of the table. */
static void flush_sometimes(cli_rows *rows, uint64_t index) {
    static const uint64_t part = 4096;
    if (index % part == part - 1) cli_rows_flush(rows);
}

/* Lists the weights of a file, and marks in `claimed` the tensors that store them. Returns the
 * number of broken weights. */
static uint64_t list_weights(const bsmm_file *file, cli_rows *rows, bool *claimed) {
    uint64_t broken = 0, tensors[BSMM_WEIGHT_TENSORS];
    for (uint64_t i = 0; i < bsmm_file_weight_count(file); i++) {
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        bool failed = bsmm_file_weight_at(file, i, &weight) != BSMM_OK;
        weight_row(rows, &weight, failed ? bsmm_error_message() : NULL);
        broken += failed;
        flush_sometimes(rows, i);
        if (bsmm_weight_tensors(file, i, tensors)) continue;
        for (int t = 0; t < BSMM_WEIGHT_TENSORS; t++)
            if (tensors[t] != BSMM_NO_TENSOR) claimed[tensors[t]] = true;
    }
    return broken;
}

static void list_others(const bsmm_file *file, cli_rows *rows, const bool *claimed) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    for (uint64_t i = 0; i < bsmm_file_tensor_count(file); i++) {
        if (!claimed[i] && !bsmm_file_tensor_at(file, i, &tensor)) tensor_row(rows, &tensor);
        flush_sometimes(rows, i);
    }
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)count;
    bsmm_file *file = cli_file_open(args[0]);
    if (!file) return CLI_FAILED;
    bool *claimed = cli_alloc(bsmm_file_tensor_count(file) + 1, sizeof *claimed);
    cli_rows *rows = cli_rows_open(columns, options->json);
    cli_rows_collect(rows);
    uint64_t broken = list_weights(file, rows, claimed);
    list_others(file, rows, claimed);
    cli_rows_close(rows);
    free(claimed);
    cli_file_close(file);
    if (cli_fail_shrunk()) return CLI_FAILED;
    if (!broken) return CLI_OK;
    return cli_fail("%s: %llu broken %s", args[0], (unsigned long long)broken,
                    broken == 1 ? "weight" : "weights");
}

static const cli_option options[] = {CLI_OPTION_JSON(values), {0}};

const cli_command cli_inspect = {
    .name = "inspect",
    .args = "FILE",
    .summary = "List the weights of a file: family, shape, format, block scales",
    .text = "FILE is a safetensors file, a sharded model (its index or its folder), a GGUF or a "
            ".npy file. A weight that is recognised but broken is listed with what is wrong, and "
            "makes the exit status 1.",
    .examples = "  bsmm inspect model.safetensors\n"
                "  bsmm inspect model.safetensors.index.json\n"
                "  bsmm inspect model.gguf --json\n",
    .options = options,
    .output = {columns},
    .values_size = sizeof(values),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
