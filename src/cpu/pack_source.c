/* Reading rows of any operand for the packers. */
#include "cpu/pack.h"

#include <string.h>

/* ---- elements ---- */

static uint32_t load_code(uint32_t bits, const uint8_t *base, uint64_t index) {
    if (bits == 4) return base[index / 2] >> index % 2 * 4 & 0xf;
    if (bits == 8) return base[index];
    if (bits == 16) return base[2 * index] | (uint32_t)base[2 * index + 1] << 8;
    uint64_t bit = index * 6;
    const uint8_t *at = base + bit / 8;
    uint32_t word = at[0];
    if (bit % 8 > 2) word |= (uint32_t)at[1] << 8;
    return word >> bit % 8 & 0x3f;
}

/* ---- columns that lie apart ---- */

/* How many of n columns from k on have `bytes` behind the code of row r, which may reach beyond
 * their column, but not beyond the last. */
static int64_t columns_with(const bsmm_operand *o, uint32_t bits, int64_t r, int64_t k, int64_t n,
                            uint64_t bytes) {
    uint64_t end = (bsmm_operand_index(o, o->m.rows - 1, o->m.cols - 1) + 1) * bits / 8;
    while (n > 0 && bsmm_operand_index(o, r, k + n - 1) * bits / 8 + bytes > end)
        n--;
    return n;
}

/* Runs of columns give squares of codes to transpose, what is left a code to each row. */
static void gather(const bsmm_pack_isa *isa, const bsmm_operand *o, uint32_t bits, int64_t r,
                   int64_t rows, int64_t k, int64_t n, bsmm_pack_buffer *to) {
    int64_t i = 0, whole = columns_with(o, bits, r, k, n, bits == 16 ? 16 : 8);
    uint8_t *bytes = (uint8_t *)to->codes;
    for (; i + BSMM_PACK_RUN <= whole && rows > 0; i += BSMM_PACK_RUN) {
        const bsmm_pack_columns columns = {o->m.data, bsmm_operand_index(o, r, k + i) * bits,
                                           (uint64_t)o->m.ld * bits, bits};
        isa->columns(&columns, bits == 16 ? (uint8_t *)(to->codes[0] + i) : bytes + i);
    }
    for (; i < n; i++) {
        uint64_t index = bsmm_operand_index(o, r, k + i);
        for (int64_t lane = 0; lane < rows; lane++) {
            uint32_t code = load_code(bits, o->m.data, index + (uint64_t)lane);
            if (bits == 16)
                to->codes[lane][i] = (uint16_t)code;
            else
                bytes[lane * BSMM_PACK_SPAN + i] = (uint8_t)code;
        }
    }
}

void bsmm_pack_read(const bsmm_pack_isa *isa, const bsmm_operand *o, int64_t r, int64_t rows,
                    int64_t k, int64_t n, bsmm_pack_buffer *buffer, bsmm_pack_codes *codes) {
    static const uint8_t zeros[BSMM_PACK_SPAN * sizeof(uint16_t)];
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    bool by_rows = o->m.order == BSMM_ORDER_ROW, halves = bits == 16;
    uint8_t *gathered = (uint8_t *)buffer->codes;
    if (!by_rows) gather(isa, o, bits, r, rows, k, n, buffer);
    codes->bits = by_rows || halves ? bits : 8;
    codes->count = n;
    for (int64_t lane = 0; lane < BSMM_PACK_LANES; lane++) {
        const uint8_t *row = gathered + lane * BSMM_PACK_SPAN * (halves ? 2 : 1);
        if (by_rows && lane < rows)
            row = (const uint8_t *)o->m.data + bsmm_operand_index(o, r + lane, k) * bits / 8;
        codes->row[lane] = lane < rows ? row : zeros;
    }
}

bool bsmm_pack_is_empty(const bsmm_operand *o, int64_t r, int64_t k, int64_t end) {
    uint32_t elem = o->m.format.elem, bits = bsmm_elem_row(elem)->bits;
    const double *values = bsmm_elem_values(elem);
    for (; k < end; k++) {
        uint32_t code = load_code(bits, o->m.data, bsmm_operand_index(o, r, k));
        if ((values ? values[code] : bsmm_elem_decode(elem, code)) != 0) return false;
    }
    return true;
}

/* ---- scales ---- */

/* An offset is the sum of one of the row and one of the column, and the column's repeats, a step
 * further, from tile to tile. */
static void column_offsets(const bsmm_scale_map *map, int64_t c, int64_t n, uint64_t *offsets) {
    int64_t period = map->tile_cols;
    for (int64_t i = 0; i < n; i++)
        offsets[i] = i < period ? bsmm_scale_map_at(map, 0, c + i)
                                : offsets[i - period] + map->tile_col_step;
}

void bsmm_pack_offsets(const bsmm_operand *o, int64_t k, int64_t n, int64_t step,
                       uint64_t *offsets) {
    uint64_t columns[BSMM_PACK_STEPS] = {0};
    int64_t block = o->m.format.block_cols, c = k / block;
    if (n == 0) return;
    column_offsets(&o->map, c, (k + n - 1) / block - c + 1, columns);
    int64_t left = (c + 1) * block - k; /* of K in the block */
    const uint64_t *column = columns;
    for (int64_t i = 0; i * step < n; i++, left -= step) {
        if (left == 0) {
            left = block;
            column++;
        }
        offsets[i] = *column;
    }
}

uint64_t bsmm_pack_row_offset(const bsmm_operand *o, int64_t r) {
    int64_t rows = o->m.format.block_rows;
    if (rows != 1) r /= rows;
    return o->map.digit_count ? bsmm_scale_map_at(&o->map, r, 0)
                              : (uint64_t)r * o->map.tile_row_step; /* a plain pitch */
}
