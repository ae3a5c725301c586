/* Makes operands that describe parts of a matrix, without copying elements. */
#include "format/format.h"

/* Moves *base forward by `bytes` and subtracts them from *left, the number of bytes from *base to
 * the end of the buffer. */
static void advance(void **base, uint64_t *left, uint64_t bytes) {
    if (*base) *base = (uint8_t *)*base + bytes;
    *left = *left > bytes ? *left - bytes : 0;
}

void bsmm_operand_move(bsmm_operand *o, uint64_t elements, uint64_t scales) {
    const bsmm_format *f = &o->m.format;
    advance(&o->m.data, &o->data_bytes, elements * bsmm_elem_row(f->elem)->bits / 8);
    if (f->scale == BSMM_SCALE_NONE) return;
    advance(&o->m.scales, &o->scale_bytes, scales * bsmm_scale_row_of(f->scale)->bytes);
}

static void move_to(bsmm_operand *o, int64_t row, int64_t col) {
    const bsmm_format *f = &o->m.format;
    uint64_t scale = 0;
    if (f->scale != BSMM_SCALE_NONE)
        scale = bsmm_scale_map_at(&o->map, row / f->block_rows, col / f->block_cols);
    bsmm_operand_move(o, bsmm_operand_index(o, row, col), scale);
}

void bsmm_operand_keep_rows(bsmm_operand *o, int64_t row, int64_t rows) {
    move_to(o, row, 0);
    o->more_rows |= row + rows < o->m.rows;
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

uint64_t bsmm_operand_own_scales(bsmm_operand *o, const bsmm_operand *whole, uint64_t offset) {
    if (o->m.format.scale == BSMM_SCALE_NONE) return 0;
    /* This call cannot fail here. It could fail only if a size overflowed, but the sizes of the
     * whole matrix are larger and did not overflow. */
    if (bsmm_scale_map_make(&o->m, "part", &o->map) != BSMM_OK) return 0;
    o->m.scales = whole->m.scales;
    o->scale_bytes = whole->scale_bytes;
    advance(&o->m.scales, &o->scale_bytes, offset * bsmm_scale_row_of(o->m.format.scale)->bytes);
    return o->map.count;
}
