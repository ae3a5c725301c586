/* Formats: the four tables (elements, scales, presets, layouts), the scalar codecs, and the checked
 * description of a matrix. Slow, exact, branch-light; kernels have their own decoders. */
#ifndef BSMM_FORMAT_H
#define BSMM_FORMAT_H

#include "base/base.h"
#include "format/elem.h"

/* ---- elements (elem.c) ---- */

/* The row of an element format, NULL if there is none. Includes e8m0. */
const bsmm_elem_info *bsmm_elem_row(uint32_t elem);

/* Exact value of a code (extra high bits are ignored). */
double bsmm_elem_decode(uint32_t elem, uint32_t code);

/* The values of all codes of an element format of 8 bits and fewer, e8m0 included (values.c); NULL
 * for wider ones. */
const double *bsmm_elem_values(uint32_t elem);

/* Code of a value, nearest even, see bsmm_encode_elem. One rounding, straight from double. */
uint32_t bsmm_elem_encode(uint32_t elem, double value, bool saturate);

/* Code number `index` of a packed array of elements; loads and stores bytes, so no alignment is
 * needed. A store changes no other element (4- and 6-bit neighbours keep their bits). */
uint32_t bsmm_elem_load(uint32_t elem, const void *base, uint64_t index);
void bsmm_elem_store(uint32_t elem, void *base, uint64_t index, uint32_t code);

/* Bytes of `count` packed elements, whole groups (4-bit: pairs, 6-bit: fours); false on overflow.
 */
bool bsmm_elem_bytes(uint32_t elem, uint64_t count, uint64_t *bytes);

/* Elements per smallest byte-aligned group: 1, 2 (4 bits) or 4 (6 bits). */
uint32_t bsmm_elem_group(uint32_t elem);

/* ---- scales (scale.c) ---- */

typedef struct bsmm_scale_row {
    const char *name;
    uint32_t elem;  /* the element format that its codes have */
    uint32_t bytes; /* of one scale */
} bsmm_scale_row;
const bsmm_scale_row *bsmm_scale_row_of(uint32_t scale); /* NULL if there is none */
double bsmm_scale_load(uint32_t scale, const void *base, uint64_t offset);
uint32_t bsmm_scale_load_code(uint32_t scale, const void *base, uint64_t offset);
void bsmm_scale_store_code(uint32_t scale, void *base, uint64_t offset, uint32_t code);

/* ---- layouts (layout.c) ---- */

/* A layout resolved for one scale matrix: offset(r, c) =
 *   (r / tile_rows) * tile_row_step + (c / tile_cols) * tile_col_step + digits inside the tile.
 * A plain pitch is a tile of 1 x 1. */
typedef struct bsmm_scale_map {
    int64_t rows, cols; /* of the scale matrix, without padding */
    uint32_t tile_rows, tile_cols;
    uint64_t tile_row_step, tile_col_step;
    uint64_t count; /* scales, padding included */
    uint32_t digit_count;
    bsmm_digit digits[6];
} bsmm_scale_map;

/* matrix: validated. Fails when sizes overflow. */
bsmm_status bsmm_scale_map_make(const bsmm_matrix *matrix, const char *what, bsmm_scale_map *map);
uint64_t bsmm_scale_map_at(const bsmm_scale_map *map, int64_t r, int64_t c);

/* Whether the layout has padding of its own, so that a buffer's size must be declared. */
bool bsmm_layout_pads(uint32_t layout);
const char *bsmm_layout_name(uint32_t layout); /* NULL if there is none */

/* ---- presets (preset.c) ---- */

const bsmm_preset_info *bsmm_preset_row(const char *name); /* NULL if there is none */
bool bsmm_format_equal(bsmm_format a, bsmm_format b);

/* ---- matrices (matrix.c) ---- */

/* A validated copy of a caller's matrix with everything derived. */
typedef struct bsmm_operand {
    bsmm_matrix m;      /* ld and scale_ld resolved (never 0 unless the matrix is empty) */
    bsmm_scale_map map; /* zero when unscaled */
    uint64_t data_bytes, scale_bytes;
} bsmm_operand;

/* Copies, checks every field but the pointers, derives. `what` names the matrix in messages
 * ("a", "src"). */
bsmm_status bsmm_operand_take(const bsmm_matrix *from, const char *what, bsmm_operand *to);

/* Checks that data and scales (when scaled and not empty) are there and aligned. */
bsmm_status bsmm_operand_check_memory(const bsmm_operand *operand, const char *what);

/* The second-level factor as a double: g, 1 when NULL; value = element * scale * factor, where a
 * divisor gives 1 / g in double. */
double bsmm_operand_global(const bsmm_operand *operand);

/* Index of element (r, c) in the packed data. */
static inline uint64_t bsmm_operand_index(const bsmm_operand *o, int64_t r, int64_t c) {
    return o->m.order == BSMM_ORDER_ROW ? (uint64_t)r * (uint64_t)o->m.ld + (uint64_t)c
                                        : (uint64_t)c * (uint64_t)o->m.ld + (uint64_t)r;
}

/* ---- parts of matrices (slice.c) ---- */

/* Keeps rows [row, row + rows), or columns. Elements and scales stay where they are, so that a
 * part's first element begins a byte, and its first scale a block and a tile of the layout.
 * Sizes in bytes are what is left of the buffers behind the new pointers, which is all that a
 * reader of whole cache lines has to know. */
void bsmm_operand_keep_rows(bsmm_operand *o, int64_t row, int64_t rows);
void bsmm_operand_keep_cols(bsmm_operand *o, int64_t col, int64_t cols);

/* Moves on by whole matrices of a stack. */
void bsmm_operand_move(bsmm_operand *o, uint64_t elements, uint64_t scales);

/* Gives a part scales of its own, which begin `offset` scales behind the whole's and are laid out
 * as those of a matrix of the part's shape; returns how many they are, padding included. */
uint64_t bsmm_operand_own_scales(bsmm_operand *o, const bsmm_operand *whole, uint64_t offset);

/* ---- values (decode.c) ---- */

/* Values of row r, columns [c0, c0 + n), as doubles: element * block scale * global. The product
 * of element and block scale is exact; NaN where either is. */
void bsmm_operand_decode_row(const bsmm_operand *o, int64_t r, int64_t c0, int64_t n, double *to);

/* Multiplies elements of row r, columns [c, c + n), by their block scales and the global one. */
void bsmm_operand_scale_row(const bsmm_operand *o, int64_t r, int64_t c, int64_t n, double *to);

#endif
