/* Implements `bsmm compare`, which computes the differences of two models, tensor by tensor. */
#include "compare.h"
#include "files.h"
#include "gnuplot.h"
#include "rows.h"
#include <stdlib.h>

typedef struct values {
    const char *plot;
    int64_t threads;
    bool json;
} values;

static const cli_column columns[] = {
    {"name", "tensor", false, "name of the weight, or of a tensor that belongs to none"},
    {"a", "A", false, "format or type in A; null: A has no such tensor"},
    {"b", "B", false, "format or type in B; null: B has no such tensor"},
    {"sqnr_db", "SQNR dB", true,
     "10 log10(sum a^2 / sum (a - b)^2); null: exact, or NaN where max_error is null"},
    {"max_error", "max error", true, "largest |a - b|; null: NaN, or in one model only"},
    {"relative", "relative", true, "max_error divided by the largest |a|"},
    {"clipped", "clipped", true, "share of |a| above the largest value of its block in B"},
    {0},
};

static const char *text_or_null(const cli_text *text) {
    return text->text[0] ? text->text : NULL;
}

static void print_row(cli_rows *rows, const cli_difference *item) {
    cli_row_text(rows, item->name);
    for (int i = 0; i < 2; i++)
        cli_row_text(rows, text_or_null(&item->formats[i]));
    if (!cli_is_shared(item)) {
        for (int i = 0; i < 4; i++)
            cli_row_text(rows, NULL);
        return;
    }
    cli_row_number(rows, item->sqnr_db, "%.2f");
    cli_row_number(rows, item->max_error, "%.4g");
    cli_row_number(rows, item->relative, "%.4g");
    cli_row_value(rows, json_real(item->clipped), "%.3f%%", 100 * item->clipped);
}

static int print(const values *options, const char *const paths[2], const cli_differences *list) {
    cli_rows *rows = cli_rows_open(columns, options->json);
    for (size_t i = 0; i < list->count; i++)
        print_row(rows, &list->items[i]);
    cli_rows_close(rows);
    const char *why = options->plot ? cli_compare_draw(list, paths, options->plot) : NULL;
    return why ? cli_fail("%s: %s", options->plot, why) : CLI_OK;
}

static bool plot_differs(const values *options, const bsmm_file *const models[2],
                         const char *const paths[2]) {
    return !options->plot || (cli_output_differs_from(models[0], paths[0], options->plot) &&
                              cli_output_differs_from(models[1], paths[1], options->plot));
}

static int compare(const values *options, const char *const paths[2]) {
    cli_differences list = {0};
    int status = CLI_FAILED;
    bsmm_file *first = cli_file_open(paths[0]);
    bsmm_file *second = first ? cli_file_open(paths[1]) : NULL;
    const bsmm_file *const models[2] = {first, second};
    if (second && plot_differs(options, models, paths) &&
        cli_compare_models(models, paths, (uint32_t)options->threads, &list))
        status = print(options, paths, &list);
    free(list.items);
    cli_file_close(second);
    cli_file_close(first);
    return status;
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    const char *const paths[2] = {args[0], args[1]};
    (void)count;
    const char *refusal = options->plot ? bench_gnuplot_refusal(options->plot) : NULL;
    return refusal ? cli_fail("%s: %s", options->plot, refusal) : compare(options, paths);
}

static const cli_option options[] = {
    {.name = "plot",
     .arg = "FILE",
     .help = "draw SQNR and largest error of each tensor as an SVG with gnuplot; FILE.gp is a "
             "script for gnuplot instead, which draws FILE.svg",
     .kind = CLI_OUTPUT,
     .offset = offsetof(values, plot)},
    CLI_OPTION_THREADS(values),
    CLI_OPTION_JSON(values),
    {0},
};

const cli_command cli_compare = {
    .name = "compare",
    .args = "A B",
    .summary = "Compare the tensors of two models, the largest errors first",
    .text = "A and B are files or folders of any kind that inspect lists, in any formats and "
            "families. The values of A count as right, and the errors are those of B. Tensors "
            "are matched by their names. Tensors that only one model has come last, without "
            "errors. Tensors of other types than floats are compared byte by byte; their error is "
            "0 or NaN. "
            "Different shapes are an error. The largest matrix must fit into memory.",
    .examples = "  bsmm compare model.safetensors quantized.safetensors\n"
                "  bsmm compare model model-nvfp4 --plot errors.svg\n"
                "  bsmm compare model.gguf model-mxfp4.gguf --json\n",
    .options = options,
    .output = {columns},
    .values_size = sizeof(values),
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
