/* Implements `bsmm recipes`, which lists the recipes (rules of quantization) and the projects
 * whose bytes they reproduce. */
#include "common.h"
#include "rows.h"

typedef struct values {
    bool json;
} values;

static const cli_column columns[] = {
    {"name", "recipe", false, "name for --recipe of quantize"},
    {"formats", "formats", false,
     "formats that this row of the recipe writes, separated by spaces"},
    {"pow2", "pow2", false, "true if --pow2 rounds its scales to powers of two"},
    {"one_level", "one-level", false, "true if --one-level leaves out the tensor's scale"},
    {"rule", "rule", false, "how the scale and the elements come about"},
    {.key = "source", .help = "where the rule is from"},
    {0},
};

static void flag_cell(cli_rows *rows, bool set) {
    cli_row_value(rows, json_boolean(set), "%s", set ? "yes" : "-");
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    bsmm_recipe_info info = BSMM_INIT(bsmm_recipe_info);
    (void)args, (void)count;
    cli_rows *rows = cli_rows_open(columns, options->json);
    for (uint32_t i = 0; !bsmm_recipe_at(i, &info); i++) {
        cli_row_text(rows, info.name);
        cli_row_text(rows, info.formats);
        flag_cell(rows, info.flags & BSMM_QUANTIZE_POW2);
        flag_cell(rows, info.flags & BSMM_QUANTIZE_ONE_LEVEL);
        cli_row_text(rows, info.rule);
        cli_row_text(rows, info.source);
    }
    cli_rows_close(rows);
    return CLI_OK;
}

static const cli_option options[] = {CLI_OPTION_JSON(values), {0}};

const cli_command cli_recipes = {
    .name = "recipes",
    .summary = "List the quantization recipes: whose bytes each reproduces, and how",
    .examples = "  bsmm recipes\n"
                "  bsmm recipes --json\n",
    .options = options,
    .output = {columns},
    .values_size = sizeof(values),
    .run = run,
};
