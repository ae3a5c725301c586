/* Implements `bsmm layouts`, which lists the scale layouts or draws one of them. */
#include "common.h"
#include "grid.h"
#include "rows.h"
#include "words.h"
#include <stdio.h>
#include <string.h>

static const cli_column list_columns[] = {
    {"name", "layout", false, "name of the layout"},
    {.key = "tile_rows", .help = "rows of scales in a tile; null: none, or the caller's"},
    {.key = "tile_cols", .help = "columns of scales in a tile"},
    {NULL, "tile", true, NULL},
    {"padding", "padding", false, "what the sizes are padded to"},
    {"digits", "digits {axis,extent,stride}", false,
     "digits, innermost of each axis first: arrays of axis (R or C), extent, stride"},
    {.key = "offset", .help = "formula of the offset of scale (r, c) of R x C"},
    {"used_by", "used by", false, "who uses it"},
    {0},
};

static json_t *digit_array(const bsmm_layout_info *info, char *text, size_t size) {
    json_t *array = json_array();
    text[0] = '\0';
    for (uint32_t i = 0; i < info->digit_count; i++) {
        const bsmm_digit *digit = &info->digits[i];
        const char *axis = digit->axis ? "C" : "R";
        size_t length = strlen(text);
        snprintf(text + length, size - length, "%s{%s,%u,%u}", i ? " " : "", axis, digit->extent,
                 digit->stride);
        json_array_append_new(array,
                              json_pack("[sii]", axis, (int)digit->extent, (int)digit->stride));
    }
    return array;
}

/* Returns the number of rows or columns of a layout's tile. Returns null for row-major and
 * column-major layouts, which have no tiles, and for tile_contiguous, whose tile the user
 * chooses. */
static json_t *tile_size(const bsmm_layout_info *info, uint32_t size) {
    return info->digit_count ? json_integer(size) : NULL;
}

static void layout_row(cli_rows *rows, const bsmm_layout_info *info) {
    char digits[160];
    json_t *array = digit_array(info, digits, sizeof digits);
    cli_row_text(rows, info->name);
    cli_row_value(rows, tile_size(info, info->tile_rows), "%s", "");
    cli_row_value(rows, tile_size(info, info->tile_cols), "%s", "");
    if (info->digit_count)
        cli_row_value(rows, NULL, "%ux%u", info->tile_rows, info->tile_cols);
    else
        cli_row_value(rows, NULL, "-");
    cli_row_text(rows, info->padding);
    cli_row_value(rows, array, "%s", digits[0] ? digits : "-");
    cli_row_text(rows, info->offset);
    cli_row_text(rows, info->used_by);
}

static int list_layouts(bool json) {
    bsmm_layout_info info = BSMM_INIT(bsmm_layout_info);
    cli_rows *rows = cli_rows_open(list_columns, json);
    for (uint32_t i = 0; !bsmm_layout_at(i, &info); i++)
        layout_row(rows, &info);
    cli_rows_close(rows);
    return CLI_OK;
}

static int run(const void *arguments, char **args, int count) {
    const cli_grid_values *options = arguments;
    uint32_t layout;
    if (!count) return list_layouts(options->json);
    if (bsmm_layout_from_name(args[0], &layout)) return cli_usage_word("LAYOUT", args[0]);
    return cli_grid_print(layout, options);
}

static const cli_option options[] = {
    {.name = "rows",
     .arg = "COUNT",
     .help = "rows of scales to draw (128)",
     .kind = CLI_SIZE,
     .offset = offsetof(cli_grid_values, rows)},
    {.name = "cols",
     .arg = "COUNT",
     .help = "columns of scales (K / block) to draw (8)",
     .kind = CLI_SIZE,
     .offset = offsetof(cli_grid_values, cols)},
    {.name = "tile-rows",
     .arg = "COUNT",
     .help = "rows of a tile of tile_contiguous (16)",
     .kind = CLI_SIZE,
     .offset = offsetof(cli_grid_values, tile_rows)},
    {.name = "tile-cols",
     .arg = "COUNT",
     .help = "columns of a tile of tile_contiguous (4)",
     .kind = CLI_SIZE,
     .offset = offsetof(cli_grid_values, tile_cols)},
    {.name = "all",
     .help = "draw every row and column",
     .kind = CLI_FLAG,
     .offset = offsetof(cli_grid_values, all)},
    CLI_OPTION_JSON(cli_grid_values),
    {0},
};

static const cli_grid_values defaults = {.rows = 128, .cols = 8, .tile_rows = 16, .tile_cols = 4};

const cli_command cli_layouts = {
    .name = "layouts",
    .args = "[LAYOUT]",
    .summary = "List the scale layouts, or draw where one puts each scale",
    .text = "A drawing has one row per row of scales and one column per block along K; a cell is "
            "the offset of the scale in its buffer. Cells in brackets are padding and hold 0.",
    .examples = "  bsmm layouts\n"
                "  bsmm layouts nv_128x4 --rows 256 --cols 8\n"
                "  bsmm layouts tile_contiguous --rows 40 --tile-rows 16 --tile-cols 4\n",
    .options = options,
    .output = {list_columns, cli_grid_columns},
    .defaults = &defaults,
    .values_size = sizeof(cli_grid_values),
    .max_args = 1,
    .run = run,
};
