#include "grid.h"
#include "common.h"
#include "rows.h"
#include <stdio.h>

const cli_column cli_grid_columns[] = {
    {.key = "layout", .help = "name of the layout drawn"},
    {.key = "row", .help = "row of the scale"},
    {.key = "col", .help = "column of the scale"},
    {.key = "offset", .help = "offset of the scale, in scales"},
    {.key = "padding", .help = "whether the cell is padding"},
    {0},
};

typedef struct grid {
    /* `matrix` has a scale for each position of the scale layout, positions of padding included, so
     * that bsmm_scale_offset also gives the offsets of the padding. */
    bsmm_matrix matrix;
    bsmm_layout_info info;
    /* `tile_rows` is the number of rows of a tile. The offsets of scales in consecutive rows jump
     * after each `step` rows. */
    int64_t tile_rows, step;
    /* `rows` and `cols` are the size of the scale matrix that the user requested. */
    int64_t rows, cols;
    /* `padded_rows` and `padded_cols` are the size of the scale matrix with its padding. */
    int64_t padded_rows, padded_cols;
    bool all;
} grid;

enum { MOST = 65536 }; /* MOST is the largest number of rows or columns of a picture. */

static bsmm_status count_scales(grid *drawing, int64_t rows, int64_t cols, uint64_t *count) {
    drawing->matrix.rows = rows;
    drawing->matrix.cols = cols * drawing->matrix.format.block_cols;
    /* Each scale of this matrix is one byte, so bsmm_scale_bytes returns the number of scales. */
    return bsmm_scale_bytes(&drawing->matrix, count);
}

/* Finds the size of the scale matrix with its padding. The function tries numbers of rows in
 * ascending order. The result is the first size that needs no further padding and has as many
 * scales as the layout stores for the requested matrix. */
static bool find_padded(grid *drawing) {
    uint64_t count, padded;
    if (count_scales(drawing, drawing->rows, drawing->cols, &count)) return false;
    for (int64_t rows = drawing->rows;; rows++) {
        int64_t cols = (int64_t)count / rows;
        if ((int64_t)count % rows || cols < drawing->cols) continue;
        if (count_scales(drawing, rows, cols, &padded)) return false;
        if (padded != count) continue;
        drawing->padded_rows = rows;
        drawing->padded_cols = cols;
        return true;
    }
}

static bool is_padding(const grid *drawing, int64_t row, int64_t col) {
    return row >= drawing->rows || col >= drawing->cols;
}

static uint64_t offset_of(const grid *drawing, int64_t row, int64_t col) {
    uint64_t offset = 0;
    bsmm_scale_offset(&drawing->matrix, row, col, &offset);
    return offset;
}

/* Tells whether the drawing shows a row of scales. A large drawing shows only the first and last
 * rows, and the rows before and after a jump of the offsets. The offsets jump at multiples of
 * `step` rows. */
static bool shows_row(const grid *drawing, int64_t row) {
    int64_t step = drawing->step, near = 2 * drawing->tile_rows;
    if (drawing->all || drawing->padded_rows <= 32 || row + 1 == drawing->padded_rows) return true;
    if (row == drawing->rows - 1 || row == drawing->rows) return true;
    if (step < 4) return row < 8;
    return row < near && (row % step < 2 || row % step == step - 1);
}

static bool shows_col(const grid *drawing, int64_t col) {
    return drawing->all || drawing->padded_cols <= 16 || col < 8 || col + 1 == drawing->padded_cols;
}

static int digits_of(uint64_t value) {
    return snprintf(NULL, 0, "%llu", (unsigned long long)value);
}

static void print_cells(const grid *drawing, int64_t row, int width) {
    bool elided = false;
    for (int64_t col = 0; col < drawing->padded_cols; col++) {
        if (!shows_col(drawing, col)) {
            if (!elided) printf("  ...");
            elided = true;
            continue;
        }
        bool padding = row >= 0 && is_padding(drawing, row, col);
        bool last = col + 1 == drawing->padded_cols;
        uint64_t number = row < 0 ? (uint64_t)col : offset_of(drawing, row, col);
        printf("%*s%llu%s", 1 + width - digits_of(number), padding ? "[" : " ",
               (unsigned long long)number,
               padding ? "]"
               : last  ? ""
                       : " ");
    }
    putchar('\n');
}

static void set_steps(grid *drawing) {
    bool by_caller = drawing->matrix.scale_tile_rows > 0;
    drawing->tile_rows =
        by_caller ? drawing->matrix.scale_tile_rows : (int64_t)drawing->info.tile_rows;
    drawing->step = drawing->tile_rows;
    for (uint32_t i = drawing->info.digit_count; i-- > 0;)
        if (!drawing->info.digits[i].axis) drawing->step = drawing->info.digits[i].extent;
}

static void draw(const grid *drawing) {
    int width = digits_of((uint64_t)(drawing->padded_rows * drawing->padded_cols));
    int margin = digits_of((uint64_t)drawing->padded_rows);
    bool elided = false;
    printf("%s, %lld x %lld scales", drawing->info.name, (long long)drawing->rows,
           (long long)drawing->cols);
    if (drawing->rows != drawing->padded_rows || drawing->cols != drawing->padded_cols)
        printf(", padded to %lld x %lld", (long long)drawing->padded_rows,
               (long long)drawing->padded_cols);
    printf("\nscale (r, c) lies at %s\n", drawing->info.offset);
    printf("\n%*s |", margin < 3 ? 3 : margin, "r\\c");
    print_cells(drawing, -1, width);
    for (int64_t row = 0; row < drawing->padded_rows; row++) {
        if (shows_row(drawing, row)) {
            printf("%*lld |", margin < 3 ? 3 : margin, (long long)row);
            print_cells(drawing, row, width);
        } else if (!elided) {
            printf("%*s |\n", margin < 3 ? 3 : margin, "...");
        }
        elided = !shows_row(drawing, row);
    }
}

static void list_cells(const grid *drawing) {
    cli_rows *rows = cli_rows_open(cli_grid_columns, true);
    for (int64_t row = 0; row < drawing->padded_rows; row++)
        for (int64_t col = 0; col < drawing->padded_cols; col++) {
            cli_row_text(rows, drawing->info.name);
            cli_row_integer(rows, row);
            cli_row_integer(rows, col);
            cli_row_integer(rows, (int64_t)offset_of(drawing, row, col));
            cli_row_value(rows, json_boolean(is_padding(drawing, row, col)), "%s", "");
        }
    cli_rows_close(rows);
}

/* Converts a size to 32 bits. A size that does not fit becomes the largest 32-bit number, because
 * the library refuses that number. Plain truncation could give a valid size. */
static uint32_t tile_size(int64_t size) {
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

int cli_grid_print(uint32_t layout, const cli_grid_values *options) {
    grid drawing = {.matrix = BSMM_INIT(bsmm_matrix),
                    .info = BSMM_INIT(bsmm_layout_info),
                    .rows = options->rows,
                    .cols = options->cols,
                    .all = options->all};
    if (options->rows < 1 || options->rows > MOST || options->cols < 1 || options->cols > MOST)
        return cli_usage("--rows x --cols: value is %lld x %lld; must be 1 to %d each",
                         (long long)options->rows, (long long)options->cols, MOST);
    drawing.matrix.scale_layout = layout;
    drawing.matrix.format = (bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 2};
    if (layout == BSMM_LAYOUT_TILE_CONTIGUOUS) {
        drawing.matrix.scale_tile_rows = tile_size(options->tile_rows);
        drawing.matrix.scale_tile_cols = tile_size(options->tile_cols);
    }
    bsmm_layout_at(layout, &drawing.info);
    set_steps(&drawing);
    if (!find_padded(&drawing)) return cli_fail_library(NULL);
    if (options->json)
        list_cells(&drawing);
    else
        draw(&drawing);
    return CLI_OK;
}
