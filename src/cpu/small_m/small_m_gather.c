/* Gathers the scales of 16 rows of B for the small-M kernels, from any scale layout. */
#include "cpu/small_m/small_m.h"

#include <string.h>

enum { LANES = BSMM_SMALL_M_LANES };

static bool lie_in_runs(const uint64_t *columns, int64_t count, int64_t run) {
    for (int64_t i = 0; i < count; i++)
        if (i % run != 0 && columns[i] != columns[i - 1] + 1) return false;
    return true;
}

/* Returns true if tiles of scales are single columns, as in compact weights. The scales of a tile's
 * rows are then adjacent, and columns have a constant pitch. */
static bool has_column_tiles(const bsmm_operand *o) {
    return o->m.scale_layout == BSMM_LAYOUT_TILE_CONTIGUOUS && o->map.tile_cols == 1;
}

/* Returns the part of the offset of a scale that depends on its column. */
static uint64_t column_at(const bsmm_operand *o, int64_t column) {
    if (has_column_tiles(o)) return (uint64_t)column * o->map.tile_col_step;
    return bsmm_scale_map_at(&o->map, 0, column);
}

int64_t bsmm_small_m_find_columns(const bsmm_product *p, int64_t scale_unit, int64_t units,
                                  uint64_t *columns) {
    const bsmm_operand *b = &p->b;
    const int64_t last = b->map.cols - 1, count = p->a.m.cols / scale_unit;
    int64_t before = -1;
    /* `block` is the scale block along K that contains the first element of unit i, and `end` is
     * the end of this block. A block has a whole number of units or all of K. The loop moves on
     * from block to block, because a division for each unit would take longer. */
    for (int64_t i = 0, block = 0, end = b->m.format.block_cols; i < units; i++) {
        if (i * scale_unit == end) {
            block += block < last;
            end += b->m.format.block_cols;
        }
        columns[i] = block == before ? columns[i - 1] : column_at(b, block);
        before = block;
    }
    return lie_in_runs(columns, count, 16) ? 16 : lie_in_runs(columns, count, 4) ? 4 : 1;
}

static int64_t lane_row(const bsmm_small_m_scales *s, int64_t lane) {
    return s->row + bsmm_min_i64(lane, s->rows - 1);
}

static void gather_floats(const bsmm_small_m_scales *s, const uint64_t *columns,
                          const uint64_t *rows) {
    const float *scales = (const float *)s->p->b.m.scales;
    /* `same` is true if one block of scales covers all 16 rows of the panel, so that these rows
     * share each scale. */
    bool same = true;
    for (int64_t lane = 1; lane < LANES; lane++)
        same = same && rows[lane] == rows[0];
    for (int64_t i = 0; i < s->units; i++) {
        const float *unit = scales + columns[i], first = unit[rows[0]];
        float *to = s->scales + i * LANES;
        for (int64_t lane = 0; lane < LANES; lane++)
            to[lane] = same ? first : unit[rows[lane]];
    }
}

/* Returns true if the scales of the 16 rows of a panel are adjacent in memory. */
static bool are_adjacent(const uint64_t *rows) {
    bool adjacent = rows[LANES - 1] == rows[0] + LANES - 1;
    for (int64_t lane = 1; lane < LANES && adjacent; lane++)
        adjacent = adjacent && rows[lane] == rows[0] + (uint64_t)lane;
    return adjacent;
}

/* Returns true if the 16 rows of a panel are the rows of a tile of scales, as in compact order. The
 * scales of the rows are then adjacent. */
static bool is_tile(const bsmm_small_m_scales *s) {
    const bsmm_operand *b = &s->p->b;
    return has_column_tiles(b) && b->m.format.block_rows == 1 && b->map.tile_rows == LANES &&
           s->row % LANES == 0 && s->rows == LANES;
}

/* Gathers the scale codes of 16 rows of B. The codes of one column of scales must be adjacent in
 * memory for all 16 rows. The offset of a code in the array of scales is the sum of two numbers:
 * `row` for the first of the rows, and one entry of `columns` for the code's column. */
static void gather_adjacent(const bsmm_small_m_scales *s, const uint64_t *columns, uint64_t row) {
    const uint8_t *first = (const uint8_t *)s->p->b.m.scales + row;
    /* The loop prefetches the scales of the panel (16 rows of B) that comes four panels later.
     * `next` is the distance in bytes to them. A prefetch of the next panel's scales would come too
     * late, because the scales of up to four panels are gathered one right after the other. */
    uint64_t next = BSMM_SMALL_M_PANELS * s->p->b.map.tile_row_step;
    /* s->units, the number of scales of a row, is a multiple of 4, because K is padded to a
     * multiple of 128 elements and a scale covers at most 32. */
    for (int64_t i = 0; i < s->units; i += 4) {
        const uint8_t *at = first + columns[i];
        if (columns[i + 3] == columns[i] + 3 * LANES)
            memcpy(s->codes + i * LANES, at, 4 * LANES);
        else
            for (int64_t j = i; j < i + 4; j++)
                memcpy(s->codes + j * LANES, first + columns[j], LANES);
        __builtin_prefetch((const void *)((uintptr_t)at + next), 0, 2);
    }
}

static void gather_codes(const bsmm_small_m_scales *s, const uint64_t *columns, int64_t run,
                         const uint64_t *rows) {
    const uint8_t *row[LANES];
    for (int64_t lane = 0; lane < LANES; lane++)
        row[lane] = (const uint8_t *)s->p->b.m.scales + rows[lane];
    int64_t done = bsmm_small_m_gather_runs(row, columns, s->used, run, s->codes);
    for (int64_t i = done; i < s->units; i++) {
        uint8_t *to = s->codes + i * LANES;
        /* The entries past the end of K are copies of the last scale. */
        if (i > 0 && columns[i] == columns[i - 1])
            memcpy(to, to - LANES, LANES);
        else
            for (int64_t lane = 0; lane < LANES; lane++)
                to[lane] = row[lane][columns[i]];
    }
}

/* Computes the part of a scale's offset that depends on its row, for the 16 rows of B that form a
 * panel. */
static void find_rows(const bsmm_small_m_scales *s, uint64_t rows[LANES]) {
    const bsmm_operand *b = &s->p->b;
    uint32_t block = b->m.format.block_rows;
    if (b->map.digit_count == 0 && block == 1) {
        uint64_t at = (uint64_t)s->row * b->map.tile_row_step;
        for (int64_t lane = 0; lane < LANES; lane++) {
            rows[lane] = at;
            at += lane + 1 < s->rows ? b->map.tile_row_step : 0;
        }
        return;
    }
    const bool adjacent = block == 1 && has_column_tiles(b);
    /* `left` counts the current row and the rows after it that lie in the same tile of the scale
     * layout and have adjacent scales. */
    int64_t left = adjacent ? b->map.tile_rows - s->row % b->map.tile_rows : 0;
    for (int64_t lane = 0; lane < LANES; lane++, left--) {
        if (lane > 0 && lane >= s->rows) {
            rows[lane] = rows[lane - 1];
        } else if (lane > 0 && left > 0) {
            rows[lane] = rows[lane - 1] + 1;
        } else {
            rows[lane] = bsmm_scale_map_at(&b->map, lane_row(s, lane) / block, 0);
            if (adjacent && left <= 0) left = b->map.tile_rows;
        }
    }
}

void bsmm_small_m_gather(const bsmm_small_m_scales *s, const uint64_t *columns, int64_t run) {
    const bsmm_operand *b = &s->p->b;
    uint64_t rows[LANES];
    const bool has_codes = b->m.format.scale != BSMM_SCALE_F32;
    if (has_codes && is_tile(s)) {
        gather_adjacent(s, columns, (uint64_t)(s->row / LANES) * b->map.tile_row_step);
        return;
    }
    find_rows(s, rows);
    if (!has_codes)
        gather_floats(s, columns, rows);
    else if (are_adjacent(rows))
        gather_adjacent(s, columns, rows[0]);
    else
        gather_codes(s, columns, run, rows);
}
