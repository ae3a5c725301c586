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

/* One after another they give a word of codes, of as many rows; a square of those, transposed, is a
 * word of each row. */

/* What lies above `low` in x moves to where it lies in y, and back. */
static inline void exchange(uint64_t *x, uint64_t *y, int shift, uint64_t low) {
    uint64_t moved = (*x >> shift ^ *y) & low;
    *y ^= moved;
    *x ^= moved << shift;
}

enum { BYTES = 8, HALVES = 4 }; /* of a word */

static inline void transpose_bytes(uint64_t x[BYTES]) {
    for (int i = 0; i < 4; i++)
        exchange(&x[i], &x[i + 4], 32, 0x00000000ffffffff);
    for (int i = 0; i < 8; i += i % 2 ? 3 : 1)
        exchange(&x[i], &x[i + 2], 16, 0x0000ffff0000ffff);
    for (int i = 0; i < 8; i += 2)
        exchange(&x[i], &x[i + 1], 8, 0x00ff00ff00ff00ff);
}

static inline void transpose_halves(uint64_t x[HALVES]) {
    for (int i = 0; i < 2; i++)
        exchange(&x[i], &x[i + 2], 32, 0x00000000ffffffff);
    for (int i = 0; i < 4; i += 2)
        exchange(&x[i], &x[i + 1], 16, 0x0000ffff0000ffff);
}

/* 8 codes, one to a byte. */
static inline uint64_t spread(uint64_t codes, uint32_t bits) {
    if (bits == 4) {
        codes &= 0x00000000ffffffff;
        codes = (codes | codes << 16) & 0x0000ffff0000ffff;
        codes = (codes | codes << 8) & 0x00ff00ff00ff00ff;
        return (codes | codes << 4) & 0x0f0f0f0f0f0f0f0f;
    }
    if (bits == 6) {
        codes = (codes & 0x0000000000ffffff) | (codes & 0x0000ffffff000000) << 8;
        codes = (codes & 0x00000fff00000fff) | (codes & 0x00fff00000fff000) << 4;
        return (codes & 0x003f003f003f003f) | (codes & 0x0fc00fc00fc00fc0) << 2;
    }
    return codes;
}

static inline uint64_t load_word(uint32_t bits, const uint8_t *base, uint64_t index) {
    uint64_t word;
    memcpy(&word, base + index * bits / 8, sizeof word);
    return spread(word >> index * bits % 8, bits);
}

/* How many of n columns from k on have a whole word behind the code of row r, which may reach
 * beyond a column, but not beyond the last. */
static int64_t whole_words(const bsmm_operand *o, uint32_t bits, int64_t r, int64_t k, int64_t n) {
    uint64_t end = (bsmm_operand_index(o, o->m.rows - 1, o->m.cols - 1) + 1) * bits / 8;
    while (n > 0 && bsmm_operand_index(o, r, k + n - 1) * bits / 8 + sizeof(uint64_t) > end)
        n--;
    return n;
}

/* A square of BYTES columns. */
static inline void gather_bytes(const bsmm_operand *o, uint32_t bits, int64_t r, int64_t k,
                                uint8_t *to) {
    uint64_t words[BYTES];
    for (int i = 0; i < BYTES; i++)
        words[i] = load_word(bits, o->m.data, bsmm_operand_index(o, r, k + i));
    transpose_bytes(words);
    for (int lane = 0; lane < BYTES; lane++)
        memcpy(to + lane * BSMM_PACK_SPAN, &words[lane], sizeof words[lane]);
}

static void gather_all_bytes(const bsmm_operand *o, uint32_t bits, int64_t r, int64_t rows,
                             int64_t k, int64_t n, uint8_t *to) {
    int64_t i = 0, whole = whole_words(o, bits, r, k, n);
    for (; i + BYTES <= whole && bits == 4; i += BYTES)
        gather_bytes(o, 4, r, k + i, to + i);
    for (; i + BYTES <= whole && bits == 6; i += BYTES)
        gather_bytes(o, 6, r, k + i, to + i);
    for (; i + BYTES <= whole && bits == 8; i += BYTES)
        gather_bytes(o, 8, r, k + i, to + i);
    for (; i < n; i++) {
        uint64_t index = bsmm_operand_index(o, r, k + i);
        for (int64_t lane = 0; lane < rows; lane++)
            to[lane * BSMM_PACK_SPAN + i] =
                (uint8_t)load_code(bits, o->m.data, index + (uint64_t)lane);
    }
}

static void gather_all_halves(const bsmm_operand *o, int64_t r, int64_t rows, int64_t k, int64_t n,
                              uint16_t *to) {
    int64_t i = 0, whole = whole_words(o, 16, r + bsmm_min_i64(rows - 1, HALVES), k, n);
    for (; i + HALVES <= whole; i += HALVES)
        for (int64_t lane = 0; lane < rows; lane += HALVES) {
            uint64_t words[HALVES];
            for (int c = 0; c < HALVES; c++)
                words[c] = load_word(16, o->m.data, bsmm_operand_index(o, r + lane, k + i + c));
            transpose_halves(words);
            for (int c = 0; c < HALVES; c++)
                memcpy(to + (lane + c) * BSMM_PACK_SPAN + i, &words[c], sizeof words[c]);
        }
    for (; i < n; i++) {
        uint64_t index = bsmm_operand_index(o, r, k + i);
        for (int64_t lane = 0; lane < rows; lane++)
            to[lane * BSMM_PACK_SPAN + i] =
                (uint16_t)load_code(16, o->m.data, index + (uint64_t)lane);
    }
}

void bsmm_pack_read(const bsmm_operand *o, int64_t r, int64_t rows, int64_t k, int64_t n,
                    bsmm_pack_buffer *buffer, bsmm_pack_codes *codes) {
    static const uint8_t zeros[BSMM_PACK_SPAN * sizeof(uint16_t)];
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    bool by_rows = o->m.order == BSMM_ORDER_ROW, halves = bits == 16;
    uint8_t *gathered = (uint8_t *)buffer->codes;
    if (!by_rows && halves) gather_all_halves(o, r, rows, k, n, buffer->codes[0]);
    if (!by_rows && !halves) gather_all_bytes(o, bits, r, rows, k, n, gathered);
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
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    for (; k < end; k++) {
        uint32_t code = load_code(bits, o->m.data, bsmm_operand_index(o, r, k));
        if (bsmm_elem_decode(o->m.format.elem, code) != 0) return false;
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
    return bsmm_scale_map_at(&o->map, r / o->m.format.block_rows, 0);
}
