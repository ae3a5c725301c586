/* Reads the codes of any operand's rows for the packers. */
#include "cpu/pack/pack.h"

#include <string.h>

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

int64_t bsmm_pack_columns_at_once(const bsmm_operand *o) {
    return o->m.order == BSMM_ORDER_COL ? BSMM_PACK_STRIP : BSMM_PACK_SPAN;
}

static uint32_t bytes_of(uint32_t bits) {
    return bits > 8 ? bits / 8 : 1;
}

/* Returns the distance in bytes between two rows of bsmm_pack_buffer.codes. */
static int64_t pitch_of(uint32_t bits) {
    return bits > 8 ? BSMM_PACK_PITCH : BSMM_PACK_SPAN;
}

/* AHEAD is the number of columns by which the prefetch of a column-major operand precedes the copy.
 * The hardware prefetcher does not recognize the stride between columns. Without this prefetch, the
 * copy waits twice as long for memory. The prefetch goes to L2, because L1 holds only about a dozen
 * columns if they are 4 KB apart. */
enum { AHEAD = 48, CACHE_LINE = 64 };

static inline void ask_for(const uint8_t *base, uint64_t at) {
    for (uint64_t i = 0; i < BSMM_PACK_LINE; i += CACHE_LINE)
        __builtin_prefetch((const void *)((uintptr_t)base + (uintptr_t)(at + i)), 0, 2);
}

/* Copies a part of a column-major operand to the buffer to->strip: LINE bytes of each of the
 * columns k to k + n - 1, from byte `first` of the column on. Each column goes to one row of the
 * buffer. If fewer than LINE bytes are left before the end of the operand, only these are copied,
 * and the rest of the buffer's row is 0. */
static void copy_strip(const bsmm_operand *o, uint32_t bits, int64_t k, int64_t n, uint64_t first,
                       bsmm_pack_buffer *to) {
    const uint8_t *base = o->m.data;
    uint64_t step = (uint64_t)o->m.ld * bits / 8, at = (uint64_t)k * step + first;
    int64_t i = 0;
    for (; i < n && at + BSMM_PACK_LINE <= o->data_bytes; i++, at += step) {
        ask_for(base, at + AHEAD * step);
        memcpy(to->strip[i], base + at, BSMM_PACK_LINE);
    }
    memset(to->strip[i], 0, (size_t)(bsmm_round_up(n, BSMM_PACK_RUN) - i) * BSMM_PACK_LINE);
    for (; i < n; i++, at += step)
        memcpy(to->strip[i], base + at,
               (size_t)bsmm_min_i64(BSMM_PACK_LINE, (int64_t)(o->data_bytes - at)));
    to->k = k;
    to->n = n;
    to->first = first;
}

/* Reads the codes of BSMM_PACK_LANES rows from row r on, in columns [k, k + n) of a column-major
 * operand, and stores them in row order. Lanes past the last row get arbitrary codes, which no
 * caller uses. */
static void gather(const bsmm_pack_isa *isa, const bsmm_operand *o, uint32_t bits, int64_t r,
                   int64_t k, int64_t n, bsmm_pack_buffer *to) {
    uint32_t bytes = bytes_of(bits);
    uint64_t bit = (uint64_t)r * bits, byte = bit / 8, length = (uint64_t)bytes * 8;
    bool held = n == to->n && k == to->k && byte >= to->first &&
                byte + length <= to->first + BSMM_PACK_LINE;
    if (!held) {
        uint64_t inside = byte % BSMM_PACK_LINE;
        copy_strip(o, bits, k, n, inside + length <= BSMM_PACK_LINE ? byte - inside : byte, to);
    }
    for (int64_t i = 0; i < n; i += BSMM_PACK_RUN) {
        const bsmm_pack_columns columns = {to->strip[i], bit - to->first * 8, BSMM_PACK_LINE * 8,
                                           bits};
        isa->columns(&columns, (uint8_t *)to->codes + i * bytes);
    }
}

static const uint8_t zeros[BSMM_PACK_PITCH];

/* Reads rows of packed weights in compact order, in which the codes of 16 rows are mixed. It copies
 * each row to the buffer in row-major order. Callers read 32-bit codes at most 512 columns at a
 * time, so the copy fits the buffer. The function is not inlined, and bsmm_pack_read tests for
 * row-major operands first, so that packing these does not become slower. */
static __attribute__((noinline)) void read_compact(const bsmm_operand *o, int64_t r, int64_t rows,
                                                   int64_t k, int64_t n, bsmm_pack_buffer *buffer,
                                                   bsmm_pack_codes *codes) {
    codes->bits = bsmm_elem_row(o->m.format.elem)->bits;
    codes->count = n;
    for (int64_t lane = 0; lane < BSMM_PACK_LANES; lane++) {
        uint8_t *row = (uint8_t *)buffer->codes + lane * BSMM_PACK_PITCH;
        if (lane < rows) bsmm_compact_read(o, r + lane, k, n, row);
        codes->row[lane] = lane < rows ? row : zeros;
    }
}

void bsmm_pack_read(const bsmm_pack_isa *isa, const bsmm_operand *o, int64_t r, int64_t rows,
                    int64_t k, int64_t n, bsmm_pack_buffer *buffer, bsmm_pack_codes *codes) {
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    bool by_rows = o->m.order == BSMM_ORDER_ROW;
    uint8_t *gathered = (uint8_t *)buffer->codes;
    if (!by_rows && rows > 0) {
        if (o->m.order == BSMM_ORDER_COMPACT) {
            read_compact(o, r, rows, k, n, buffer, codes);
            return;
        }
        gather(isa, o, bits, r, k, n, buffer);
    }
    codes->bits = by_rows || bits > 8 ? bits : 8;
    codes->count = n;
    for (int64_t lane = 0; lane < BSMM_PACK_LANES; lane++) {
        const uint8_t *row = gathered + lane * pitch_of(bits);
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

/* The offset of a scale is the sum of a part that depends on its row and a part that depends on its
 * column. Computes only the column's part, for the n scales in columns c to c + n - 1 of one row of
 * the scale matrix. From one tile of the scale layout to the next, this part grows by a
 * constant. */
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
    /* `left` is the number of columns of K that are left in the current scale block. */
    int64_t left = (c + 1) * block - k;
    const uint64_t *column = columns;
    for (int64_t i = 0; i * step < n; i++, left -= step) {
        if (left == 0) {
            left = block;
            column++;
        }
        offsets[i] = *column;
    }
}
