/* Declares the tables of element formats, scale formats, presets and scale layouts, the scalar
 * functions for single elements and scales, and the validated description of a matrix. The
 * functions are exact but slow; kernels decode by their own vector code. */
#ifndef BSMM_FORMAT_H
#define BSMM_FORMAT_H

#include "base/base.h"
#include "format/elem.h"

#include <string.h>

/* The functions from here on are in elem.c. They handle elements. */

/* Returns the table entry of an element format (e8m0 included), or NULL if `elem` is not one. */
const bsmm_elem_info *bsmm_elem_row(uint32_t elem);

/* Returns the exact value of a code. Bits above the format's width are ignored. */
double bsmm_elem_decode(uint32_t elem, uint32_t code);

/* Returns 2^exponent. The exponent must be that of a normal double, -1022 to 1023. */
static inline double bsmm_double_pow2(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns an array with the value of each code of a format with at most 8 bits, e8m0 included
 * (values.c). It returns NULL for wider formats. */
const double *bsmm_elem_values(uint32_t elem);

/* Returns the code of `value` after one rounding to nearest even. bsmm.h describes the special
 * cases (bsmm_encode_elem). */
uint32_t bsmm_elem_encode(uint32_t elem, double value, bool saturate);

/* These functions load and store code number `index` of a packed array of elements. They access
 * single bytes, so `base` needs no alignment. A store preserves all other codes, even a 4-bit or
 * 6-bit code in the same byte. */
uint32_t bsmm_elem_load(uint32_t elem, const void *base, uint64_t index);
void bsmm_elem_store(uint32_t elem, void *base, uint64_t index, uint32_t code);

/* Computes the size in bytes of `count` packed elements. The size is rounded up to a whole pair of
 * 4-bit elements or to four 6-bit elements. The function returns false on overflow. */
bool bsmm_elem_bytes(uint32_t elem, uint64_t count, uint64_t *bytes);

/* Returns the smallest number of elements that fill whole bytes: 2 for 4-bit elements, 4 for 6-bit
 * elements (in 3 bytes), else 1. */
uint32_t bsmm_elem_group(uint32_t elem);

/* The functions from here on are in scale.c. They handle scales. */

typedef struct bsmm_scale_row {
    const char *name;
    uint32_t elem;  /* `elem` is the element format of the scale's codes. */
    uint32_t bytes; /* `bytes` is the size of one scale in bytes. */
} bsmm_scale_row;
/* Returns the table entry of a scale format, or NULL if the number is not one. */
const bsmm_scale_row *bsmm_scale_row_of(uint32_t scale);
double bsmm_scale_load(uint32_t scale, const void *base, uint64_t offset);
uint32_t bsmm_scale_load_code(uint32_t scale, const void *base, uint64_t offset);
void bsmm_scale_store_code(uint32_t scale, void *base, uint64_t offset, uint32_t code);

/* The functions from here on are in layout.c. They handle scale layouts. */

/* This struct is a scale layout together with the sizes of one scale matrix. A tile is a rectangle
 * of scales that are adjacent in memory. The offset of scale (r, c) is (r / tile_rows) *
 * tile_row_step + (c / tile_cols) * tile_col_step + the offset inside the tile. The offset inside
 * the tile is the sum of digit * stride over the mixed-radix digits of r and c (bsmm_digit). A
 * layout without tiles (row-major or column-major) has tiles of 1 x 1. */
typedef struct bsmm_scale_map {
    /* `rows` and `cols` are the size of the scale matrix in scales, without padding. */
    int64_t rows, cols;
    uint32_t tile_rows, tile_cols;
    uint64_t tile_row_step, tile_col_step;
    uint64_t count; /* `count` is the number of scales in memory, padding included. */
    uint32_t digit_count;
    bsmm_digit digits[6];
} bsmm_scale_map;

/* Computes the map of a validated matrix's scales, from which bsmm_scale_map_at computes the offset
 * of scale (r, c). It fails if a size overflows; `what` names the matrix in the message. */
bsmm_status bsmm_scale_map_make(const bsmm_matrix *matrix, const char *what, bsmm_scale_map *map);
uint64_t bsmm_scale_map_at(const bsmm_scale_map *map, int64_t r, int64_t c);

/* Tells whether the layout pads the scale matrix. A caller must then declare the size of the scale
 * buffer, so that a buffer without the padding is noticed. */
bool bsmm_layout_pads(uint32_t layout);
/* Returns the name of a scale layout, or NULL if the layout is unknown. */
const char *bsmm_layout_name(uint32_t layout);

/* The functions from here on are in preset.c. They handle presets, i.e. named formats. */

/* Returns the table entry of a preset, or NULL if no preset has this name. */
const bsmm_preset_info *bsmm_preset_row(const char *name);
bool bsmm_format_equal(bsmm_format a, bsmm_format b);

/* The functions from here on are in matrix.c. They validate matrices. */

/* This struct is a validated copy of a caller's bsmm_matrix, with sizes that are computed from
 * it. */
typedef struct bsmm_operand {
    /* `m` is the caller's matrix. If its ld or scale_ld was 0, the default value has been filled
     * in; they remain 0 only in an empty matrix. */
    bsmm_matrix m;
    /* `map` has the numbers from which bsmm_scale_map_at computes the offset of a scale. All of its
     * fields are 0 if there are no scales. */
    bsmm_scale_map map;
    uint64_t data_bytes, scale_bytes;
    /* `more_rows` is true if the operand is a part of a larger matrix, whose next rows follow the
     * last row in memory (slice.c). */
    bool more_rows;
} bsmm_operand;

/* Copies a caller's matrix, checks every field except the pointers, and computes the sizes. `what`
 * names the matrix in error messages, such as "a" or "src". */
bsmm_status bsmm_operand_take(const bsmm_matrix *from, const char *what, bsmm_operand *to);

/* Checks that the pointers to elements and scales are given and aligned. An empty matrix needs no
 * elements; a matrix without scales needs no pointer to scales. */
bsmm_status bsmm_operand_check_memory(const bsmm_operand *operand, const char *what);

/* Returns the second-level scale (one scale for the whole matrix) as a factor, so that value =
 * element * block scale * factor. A scale that is stored as a divisor g gives 1 / g in double.
 * Without a second-level scale the factor is 1. */
double bsmm_operand_global(const bsmm_operand *operand);

/* BSMM_ORDER_COMPACT is the order of elements in packed weights of form compact (compact.c). A
 * caller's matrix cannot have this order. */
enum { BSMM_ORDER_COMPACT = BSMM_ORDER_COL + 1 };
uint64_t bsmm_compact_index(const bsmm_operand *operand, int64_t r, int64_t c);

/* Returns the index of element (r, c) in the packed array of elements. */
static inline uint64_t bsmm_operand_index(const bsmm_operand *o, int64_t r, int64_t c) {
    if (o->m.order == BSMM_ORDER_ROW) return (uint64_t)r * (uint64_t)o->m.ld + (uint64_t)c;
    if (o->m.order == BSMM_ORDER_COMPACT) return bsmm_compact_index(o, r, c);
    return (uint64_t)c * (uint64_t)o->m.ld + (uint64_t)r;
}

/* The functions from here on are in compact.c. They handle the compact form of packed weights. */

/* BSMM_COMPACT_ROWS is the number of rows that are stored together in compact order. These rows are
 * called a strip. */
enum { BSMM_COMPACT_ROWS = 16 };

/* Returns the number of columns of one piece. In compact order, pieces of 16 rows are interleaved.
 * A piece is adjacent codes of one row that fill 4 bytes, or 3 bytes if codes have 6 bits. */
int64_t bsmm_compact_piece(uint32_t elem);

/* Makes the operand that describes the matrix `stored` in compact order (the element order of
 * packed weights, compact.c). The operand's pointers are NULL. Its scales have the layout
 * tile_contiguous. A tile of scales has one column and 16 rows, or fewer rows if the scale matrix
 * has fewer than 16. */
bsmm_status bsmm_compact_view(const bsmm_operand *stored, bsmm_operand *to);

/* Copies the codes of row r, columns [c, c + n), from compact order (pieces of 16 rows are
 * interleaved) to the array `to`, in which codes of fewer than 8 bits follow each other without
 * gaps. c must be a multiple of bsmm_compact_piece. */
void bsmm_compact_read(const bsmm_operand *operand, int64_t r, int64_t c, int64_t n, void *to);

/* These functions copy the codes and scales of a matrix. bsmm_compact_pack copies them on several
 * threads from *from to *to, which has compact order (BSMM_ORDER_COMPACT, the order of elements in
 * packed weights of form compact). It writes every byte of the codes and scales of *to.
 * bsmm_compact_unpack copies in the other direction: *from has compact order, and *to is row-major
 * or column-major. */
bsmm_status bsmm_compact_pack(const bsmm_operand *from, const bsmm_operand *to, int threads,
                              const bsmm_pool *pool);
void bsmm_compact_unpack(const bsmm_operand *from, const bsmm_operand *to);

/* The functions from here on are in slice.c. They describe parts of matrices. */

/* These functions reduce an operand to some of its rows or columns by moving its pointers; nothing
 * is copied. The first remaining element must begin a byte. The first remaining scale must begin a
 * block and a tile of the scale layout. data_bytes and scale_bytes become the number of bytes from
 * the new pointers to the ends of the buffers, so that a reader that loads whole cache lines knows
 * where it must stop. */
void bsmm_operand_keep_rows(bsmm_operand *o, int64_t row, int64_t rows);
void bsmm_operand_keep_cols(bsmm_operand *o, int64_t col, int64_t cols);

/* Moves the pointers of an operand to the matrix of another group, which is `elements` elements and
 * `scales` scales further. */
void bsmm_operand_move(bsmm_operand *o, uint64_t elements, uint64_t scales);

/* Points a part of a matrix to scales that are stored separately for that part. These scales begin
 * `offset` scales after the first scale of `whole`, in the layout of a matrix with the part's rows
 * and columns. The function returns the number of these scales, padding included. */
uint64_t bsmm_operand_own_scales(bsmm_operand *o, const bsmm_operand *whole, uint64_t offset);

/* The functions from here on are in decode.c. They decode values. */

/* Decodes row r, columns [c0, c0 + n), to doubles: element * block scale * second-level scale (the
 * scale of the whole matrix). The product of element and block scale is exact in double; it is NaN
 * if either of the two is NaN. */
void bsmm_operand_decode_row(const bsmm_operand *o, int64_t r, int64_t c0, int64_t n, double *to);

/* Multiplies n decoded elements of row r, which begin at column c, by their block scales and by the
 * second-level scale (the scale of the whole matrix). */
void bsmm_operand_scale_row(const bsmm_operand *o, int64_t r, int64_t c, int64_t n, double *to);

#endif
