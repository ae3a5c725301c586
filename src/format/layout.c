/* This file has the table of scale layouts, and the functions that compute the offset of a scale in
 * any of them. */
#include "format/format.h"

#include <string.h>

/* These are the kinds of scale layouts. PITCH_ROWS stores rows of scales at a constant pitch,
 * PITCH_COLS stores columns of scales at a constant pitch, and TILED stores rectangular tiles of
 * scales. */
typedef enum line_kind { PITCH_ROWS, PITCH_COLS, TILED } line_kind;

typedef struct layout_row {
    bsmm_layout_info info;
    line_kind kind;
    /* `pad` is used only for the kinds PITCH_ROWS and PITCH_COLS: the length of a row or column of
     * scales is rounded up to a multiple of `pad` scales. */
    uint32_t pad;
} layout_row;

#define R 0
#define C 1

static const layout_row rows[] = {
#define LAYOUT(id, form, padded, ...)                                                              \
    {.info = {.layout = BSMM_LAYOUT_##id, __VA_ARGS__}, .kind = form, .pad = padded},
#include "format/layout.def"
#undef LAYOUT
};

#define LAYOUT(id, ...)                                                                            \
    _Static_assert((int)BSMM_LAYOUT_##id == (int)BSMM_LAYOUT_ROW_##id,                             \
                   #id " is not in the order of bsmm_layout");
#include "format/layout.def"
#undef LAYOUT

/* Computes the strides and the size of a scale matrix in a layout without tiles, i.e. in row-major
 * or column-major order. The pitch is the number of scales from one line (row or column) to the
 * next. It is scale_ld if the caller sets scale_ld. Otherwise it is the number of scales in a line,
 * rounded up to a multiple of the layout's `pad`. */
static bsmm_status resolve_pitch(const layout_row *row, const bsmm_matrix *matrix, const char *what,
                                 bsmm_scale_map *map) {
    bool by_rows = row->kind == PITCH_ROWS;
    int64_t contiguous = by_rows ? map->cols : map->rows;
    int64_t lines = by_rows ? map->rows : map->cols;
    int64_t padded = bsmm_round_up(contiguous, row->pad);
    uint64_t pitch = (uint64_t)(matrix->scale_ld ? matrix->scale_ld : padded);
    if (matrix->scale_ld && (row->pad != 1 || matrix->scale_ld < contiguous))
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.scale_ld: value is %lld; must be 0 or, for row_major and col_major, "
                         "at least the %lld scales of a line",
                         what, (long long)matrix->scale_ld, (long long)contiguous);
    map->tile_rows = map->tile_cols = 1;
    map->tile_row_step = by_rows ? pitch : 1;
    map->tile_col_step = by_rows ? 1 : pitch;
    if (lines == 0 || contiguous == 0) return BSMM_OK;
    /* How long is the last line (row or column) of scales? If the caller chose the pitch between
     * lines, the buffer may end with the last scale of the last line. If the layout itself
     * prescribes padding at the end of each line, the padding after the last line belongs to the
     * buffer, too. */
    uint64_t last = (uint64_t)(matrix->scale_ld ? contiguous : padded);
    if (!bsmm_mul_u64((uint64_t)lines - 1, pitch, &map->count) ||
        !bsmm_add_u64(map->count, last, &map->count))
        return bsmm_fail(BSMM_E_INVALID, "%s.scale_ld: value is %llu; the scales' size overflows",
                         what, (unsigned long long)pitch);
    return BSMM_OK;
}

static void resolve_digits(const layout_row *row, bsmm_scale_map *map) {
    /* For the layout tile_contiguous, the table lists no digits (the mixed-radix digits of a
     * scale's row and column, bsmm_digit), because the caller chose the tile's size. The scales of
     * such a tile are in row-major order. */
    if (row->info.digit_count == 0) {
        map->digit_count = 2;
        map->digits[0] = (bsmm_digit){R, map->tile_rows, map->tile_cols};
        map->digits[1] = (bsmm_digit){C, map->tile_cols, 1};
        return;
    }
    map->digit_count = row->info.digit_count;
    memcpy(map->digits, row->info.digits, sizeof map->digits);
}

static bsmm_status resolve_tiles(const layout_row *row, const bsmm_matrix *matrix, const char *what,
                                 bsmm_scale_map *map) {
    bool by_caller = matrix->scale_layout == BSMM_LAYOUT_TILE_CONTIGUOUS;
    map->tile_rows = by_caller ? matrix->scale_tile_rows : row->info.tile_rows;
    map->tile_cols = by_caller ? matrix->scale_tile_cols : row->info.tile_cols;
    if (map->tile_rows < 1 || map->tile_cols < 1 || map->tile_rows > 65536 ||
        map->tile_cols > 65536)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.scale_tile_rows x scale_tile_cols: value is %u x %u; tile_contiguous "
                         "needs 1 to 65536 each",
                         what, map->tile_rows, map->tile_cols);
    if (matrix->scale_ld)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.scale_ld: value is %lld; must be 0 for the layout %s, which has no "
                         "pitch",
                         what, (long long)matrix->scale_ld, row->info.name);
    uint64_t tile = (uint64_t)map->tile_rows * map->tile_cols;
    uint64_t across = (uint64_t)bsmm_ceil_div(map->cols, map->tile_cols);
    uint64_t down = (uint64_t)bsmm_ceil_div(map->rows, map->tile_rows);
    map->tile_col_step = tile;
    if (!bsmm_mul_u64(across, tile, &map->tile_row_step) ||
        !bsmm_mul_u64(down, map->tile_row_step, &map->count))
        return bsmm_fail(BSMM_E_INVALID, "%s.rows x cols: the scales' size overflows", what);
    resolve_digits(row, map);
    return BSMM_OK;
}

bsmm_status bsmm_scale_map_make(const bsmm_matrix *matrix, const char *what, bsmm_scale_map *map) {
    *map = (bsmm_scale_map){
        .rows = bsmm_ceil_div(matrix->rows, matrix->format.block_rows),
        .cols = bsmm_ceil_div(matrix->cols, matrix->format.block_cols),
    };
    const layout_row *row = &rows[matrix->scale_layout];
    if (matrix->scale_layout != BSMM_LAYOUT_TILE_CONTIGUOUS &&
        (matrix->scale_tile_rows || matrix->scale_tile_cols))
        return bsmm_fail(
            BSMM_E_INVALID,
            "%s.scale_tile_rows x scale_tile_cols: value is %u x %u; must be 0 for the "
            "layout %s",
            what, matrix->scale_tile_rows, matrix->scale_tile_cols, row->info.name);
    if (row->kind == TILED) return resolve_tiles(row, matrix, what, map);
    return resolve_pitch(row, matrix, what, map);
}

uint64_t bsmm_scale_map_at(const bsmm_scale_map *map, int64_t r, int64_t c) {
    /* If the map has no digits, the layout has no tiles: it stores rows or columns of scales at a
     * constant pitch. */
    if (map->digit_count == 0)
        return (uint64_t)r * map->tile_row_step + (uint64_t)c * map->tile_col_step;
    uint64_t at[2] = {(uint64_t)r, (uint64_t)c};
    uint64_t offset =
        at[R] / map->tile_rows * map->tile_row_step + at[C] / map->tile_cols * map->tile_col_step;
    for (uint32_t i = 0; i < map->digit_count; i++) {
        const bsmm_digit *digit = &map->digits[i];
        offset += at[digit->axis] % digit->extent * digit->stride;
        at[digit->axis] /= digit->extent;
    }
    return offset;
}

bool bsmm_layout_pads(uint32_t layout) {
    return rows[layout].kind == TILED || rows[layout].pad > 1;
}

/* The switch below lists all layouts of layout.def. With -Wswitch as an error, the code does not
 * compile if a value of the enum bsmm_layout has no entry in layout.def. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
static bool has_row(bsmm_layout layout) {
    switch (layout) {
#define LAYOUT(id, ...) case BSMM_LAYOUT_##id:
#include "format/layout.def"
#undef LAYOUT
        return true;
    }
    return false;
}
#pragma GCC diagnostic pop

const char *bsmm_layout_name(uint32_t layout) {
    return has_row((bsmm_layout)layout) ? rows[layout].info.name : NULL;
}

bsmm_status bsmm_layout_at(uint32_t index, bsmm_layout_info *info) {
    if (index >= BSMM_COUNT(rows))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu layouts", index,
                         BSMM_COUNT(rows));
    return bsmm_give_struct(info, &rows[index].info, sizeof rows[index].info, "info");
}

bsmm_status bsmm_layout_from_name(const char *name, uint32_t *layout) {
    if (!name || !layout)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is NULL; must be given",
                         name ? "layout" : "name");
    for (uint32_t i = 0; i < BSMM_COUNT(rows); i++)
        if (strcmp(rows[i].info.name, name) == 0) {
            *layout = i;
            return BSMM_OK;
        }
    return bsmm_fail(BSMM_E_NOT_FOUND, "layout: value is \"%s\"; `bsmm layouts` lists the names",
                     name);
}

bsmm_status bsmm_scale_offset(const bsmm_matrix *matrix, int64_t block_row, int64_t block_col,
                              uint64_t *offset) {
    bsmm_operand operand;
    BSMM_TRY(bsmm_operand_take(matrix, "matrix", &operand));
    if (!offset) return bsmm_fail(BSMM_E_INVALID, "offset: value is NULL; must be given");
    if (operand.m.format.scale == BSMM_SCALE_NONE)
        return bsmm_fail(BSMM_E_INVALID, "matrix.format.scale: value is none; must have scales");
    if (block_row < 0 || block_row >= operand.map.rows)
        return bsmm_fail(BSMM_E_INVALID, "block_row: value is %lld; must be 0 to %lld",
                         (long long)block_row, (long long)operand.map.rows - 1);
    if (block_col < 0 || block_col >= operand.map.cols)
        return bsmm_fail(BSMM_E_INVALID, "block_col: value is %lld; must be 0 to %lld",
                         (long long)block_col, (long long)operand.map.cols - 1);
    *offset = bsmm_scale_map_at(&operand.map, block_row, block_col);
    return BSMM_OK;
}
