/* The format room: the four tables (elements, scales, presets, layouts), the scalar codecs, and
 * the validated description of a matrix. This code is exact but slow; kernels have their own
 * decoders. */
#ifndef BSMM_FORMAT_H
#define BSMM_FORMAT_H

#include "base/base.h"
#include "format/elem.h"

#include <string.h>

/* ---- elements (elem.c) ---- */

/* Returns the row of an element format (e8m0 included), or NULL if there is none. */
const bsmm_elem_info *bsmm_elem_row(uint32_t elem);

/* Returns the exact value of a code. Bits above the format's width are ignored. */
double bsmm_elem_decode(uint32_t elem, uint32_t code);

/* Returns 2^exponent, which must be a normal double. */
static inline double bsmm_double_pow2(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns the table of the values of all codes of a format with at most 8 bits, e8m0 included
 * (values.c). It returns NULL for wider formats. */
const double *bsmm_elem_values(uint32_t elem);

/* Returns the code of a value, rounded once from double to nearest even. bsmm_encode_elem describes
 * the special cases. */
uint32_t bsmm_elem_encode(uint32_t elem, double value, bool saturate);

/* These functions load and store code number `index` of a packed array of elements. They access
 * single bytes, so that no alignment is needed. A store changes no other element, not even 4- and
 * 6-bit neighbours in the same byte. */
uint32_t bsmm_elem_load(uint32_t elem, const void *base, uint64_t index);
void bsmm_elem_store(uint32_t elem, void *base, uint64_t index, uint32_t code);

/* Computes the bytes of `count` packed elements, rounded up to whole groups (pairs of 4-bit
 * elements, four 6-bit elements). It returns false on overflow. */
bool bsmm_elem_bytes(uint32_t elem, uint64_t count, uint64_t *bytes);

/* Returns the number of elements in the smallest group that starts at a byte: 2 for 4 bits, 4 for 6
 * bits, else 1. */
uint32_t bsmm_elem_group(uint32_t elem);

/* ---- scales (scale.c) ---- */

typedef struct bsmm_scale_row {
    const char *name;
    uint32_t elem;  /* element format that the codes of this scale format have */
    uint32_t bytes; /* size of one scale in bytes */
} bsmm_scale_row;
/* Returns NULL if the scale format is unknown. */
const bsmm_scale_row *bsmm_scale_row_of(uint32_t scale);
double bsmm_scale_load(uint32_t scale, const void *base, uint64_t offset);
uint32_t bsmm_scale_load_code(uint32_t scale, const void *base, uint64_t offset);
void bsmm_scale_store_code(uint32_t scale, void *base, uint64_t offset, uint32_t code);

/* ---- layouts (layout.c) ---- */

/* A scale layout with all sizes of one scale matrix filled in. The offset of scale (r, c) is (r /
 * tile_rows) * tile_row_step + (c / tile_cols) * tile_col_step + the digits' offset inside the
 * tile. A layout without tiles (row-major or column-major) counts as tiles of 1 x 1. */
typedef struct bsmm_scale_map {
    int64_t rows, cols; /* size of the scale matrix, without padding */
    uint32_t tile_rows, tile_cols;
    uint64_t tile_row_step, tile_col_step;
    uint64_t count; /* number of scales of the matrix, padding included */
    uint32_t digit_count;
    bsmm_digit digits[6];
} bsmm_scale_map;

/* Makes the map of a validated matrix. It fails if a size overflows. */
bsmm_status bsmm_scale_map_make(const bsmm_matrix *matrix, const char *what, bsmm_scale_map *map);
uint64_t bsmm_scale_map_at(const bsmm_scale_map *map, int64_t r, int64_t c);

/* Tells whether the layout has padding of its own. If it has, callers must declare the size of the
 * scale buffer. */
bool bsmm_layout_pads(uint32_t layout);
const char *bsmm_layout_name(uint32_t layout); /* returns NULL if the layout is unknown */

/* ---- presets (preset.c) ---- */

/* Returns NULL if no preset has this name. */
const bsmm_preset_info *bsmm_preset_row(const char *name);
bool bsmm_format_equal(bsmm_format a, bsmm_format b);

/* ---- matrices (matrix.c) ---- */

/* A validated copy of a caller's matrix, with all sizes that follow from it. */
typedef struct bsmm_operand {
    /* The caller's matrix. Its ld and scale_ld are filled in; they are 0 only if the matrix is
     * empty. */
    bsmm_matrix m;
    bsmm_scale_map map; /* map of the scales; all zero if unscaled */
    uint64_t data_bytes, scale_bytes;
} bsmm_operand;

/* Copies a matrix, checks every field except the pointers, and computes the derived fields. `what`
 * names the matrix in error messages, such as "a" or "src". */
bsmm_status bsmm_operand_take(const bsmm_matrix *from, const char *what, bsmm_operand *to);

/* Checks that the elements and scales are present and aligned. Empty matrices need no elements,
 * unscaled ones no scales. */
bsmm_status bsmm_operand_check_memory(const bsmm_operand *operand, const char *what);

/* Returns the second-level factor as a double, so that value = element * scale * factor. The factor
 * is g, 1 / g in double if g is a divisor, or 1 if g is NULL. */
double bsmm_operand_global(const bsmm_operand *operand);

/* The order of packed weights in compact form (compact.c). Callers cannot give it. */
enum { BSMM_ORDER_COMPACT = BSMM_ORDER_COL + 1 };
uint64_t bsmm_compact_index(const bsmm_operand *operand, int64_t r, int64_t c);

/* Returns the index of element (r, c) in the packed data. */
static inline uint64_t bsmm_operand_index(const bsmm_operand *o, int64_t r, int64_t c) {
    if (o->m.order == BSMM_ORDER_ROW) return (uint64_t)r * (uint64_t)o->m.ld + (uint64_t)c;
    if (o->m.order == BSMM_ORDER_COMPACT) return bsmm_compact_index(o, r, c);
    return (uint64_t)c * (uint64_t)o->m.ld + (uint64_t)r;
}

/* ---- the compact form of packed weights (compact.c) ---- */

enum { BSMM_COMPACT_ROWS = 16 /* number of rows in a strip */ };

/* Returns the number of adjacent elements of one row: those of 4 bytes, or of 3 bytes with 6-bit
 * codes. */
int64_t bsmm_compact_piece(uint32_t elem);

/* Describes a matrix in compact form, without memory. Its scales have the layout tile_contiguous
 * with tiles of 16 x 1, or of fewer rows if there are fewer. */
bsmm_status bsmm_compact_view(const bsmm_operand *stored, bsmm_operand *to);

/* Copies codes of row r, columns [c, c + n), to `to` in row order. c must begin a piece. */
void bsmm_compact_read(const bsmm_operand *operand, int64_t r, int64_t c, int64_t n, void *to);

/* Copy a matrix to its compact form, writing every byte of it, and back. */
bsmm_status bsmm_compact_pack(const bsmm_operand *from, const bsmm_operand *to, int threads,
                              const bsmm_pool *pool);
void bsmm_compact_unpack(const bsmm_operand *from, const bsmm_operand *to);

/* ---- parts of matrices (slice.c) ---- */

/* These functions keep rows [row, row + rows) of an operand, or columns. Elements and scales stay
 * in place. The first element of the part must therefore be at the start of a byte, and its first
 * scale at the start of a block and of a tile of the layout. The sizes in bytes become the bytes
 * from the new pointers to the ends of the buffers. A reader of whole cache lines must not read
 * past these ends. */
void bsmm_operand_keep_rows(bsmm_operand *o, int64_t row, int64_t rows);
void bsmm_operand_keep_cols(bsmm_operand *o, int64_t col, int64_t cols);

/* Advances the pointers of an operand by this many elements and scales, to another matrix of a
 * stack. */
void bsmm_operand_move(bsmm_operand *o, uint64_t elements, uint64_t scales);

/* Gives a part of a matrix its own scales. They begin `offset` scales after the scales of the whole
 * matrix and are laid out as those of a matrix of the part's shape. Returns the number of these
 * scales, padding included. */
uint64_t bsmm_operand_own_scales(bsmm_operand *o, const bsmm_operand *whole, uint64_t offset);

/* ---- values (decode.c) ---- */

/* Decodes row r, columns [c0, c0 + n), to doubles: element * block scale * global scale. The
 * product of the element and the block scale is exact. It is NaN if either is NaN. */
void bsmm_operand_decode_row(const bsmm_operand *o, int64_t r, int64_t c0, int64_t n, double *to);

/* Multiplies elements of row r, columns [c, c + n), by their block scales and by the global
 * scale. */
void bsmm_operand_scale_row(const bsmm_operand *o, int64_t r, int64_t c, int64_t n, double *to);

#endif
