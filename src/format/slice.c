/* Parts of matrices, in place. */
#include "format/format.h"

static void *step_bytes(void *base, uint64_t bytes) {
    return base ? (uint8_t *)base + bytes : NULL;
}

/* Moves both pointers to element (row, col). */
static void move_to(bsmm_operand *o, int64_t row, int64_t col) {
    const bsmm_format *f = &o->m.format;
    uint64_t bits = bsmm_elem_row(f->elem)->bits;
    o->m.data = step_bytes(o->m.data, bsmm_operand_index(o, row, col) * bits / 8);
    if (f->scale == BSMM_SCALE_NONE) return;
    uint64_t scale = bsmm_scale_map_at(&o->map, row / f->block_rows, col / f->block_cols);
    o->m.scales = step_bytes(o->m.scales, scale * bsmm_scale_row_of(f->scale)->bytes);
}

void bsmm_operand_keep_rows(bsmm_operand *o, int64_t row, int64_t rows) {
    move_to(o, row, 0);
    o->m.rows = rows;
    if (o->m.format.scale != BSMM_SCALE_NONE)
        o->map.rows = bsmm_ceil_div(rows, o->m.format.block_rows);
}

void bsmm_operand_keep_cols(bsmm_operand *o, int64_t col, int64_t cols) {
    move_to(o, 0, col);
    o->m.cols = cols;
    if (o->m.format.scale != BSMM_SCALE_NONE)
        o->map.cols = bsmm_ceil_div(cols, o->m.format.block_cols);
}
