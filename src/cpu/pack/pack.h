/* This file declares the packers' common part: reading rows of any operand, and the functions that
 * each instruction set provides for packing.
 *
 * A panel is filled in tiles of 8 rows (the lanes) and spans of K. A group is the 4 bytes that one
 * row contributes to one step of an engine's multiply. A panel interleaves the groups of its rows.
 * Packing therefore decodes codes and transposes 8 rows of uint32. Only the decoding and the
 * transposition differ between instruction sets. The files pack_int8dot.c, pack_bf16dot.c and
 * pack_f32fma.c decide the order of the scales, the factor that is divided out of a row, and which
 * rows are wide (see engine_gemm.h). */
#ifndef BSMM_CPU_PACK_H
#define BSMM_CPU_PACK_H

#include "format/format.h"

#include <string.h>

enum {
    BSMM_PACK_LANES = 8,
    BSMM_PACK_RUN = 64,    /* columns of K that an instruction set decodes at once */
    BSMM_PACK_SPAN = 1024, /* columns of K in a span: bounds buffers; multiple of every unit */
    BSMM_PACK_STEP = 16,   /* columns of K: the shortest run with one scale */
    BSMM_PACK_STEPS = BSMM_PACK_SPAN / BSMM_PACK_STEP,
    BSMM_PACK_PITCH = 2 * BSMM_PACK_SPAN, /* bytes of a row of 16- or 32-bit codes in a buffer */
};

/* Returns true if the operand has fp32 scales, which apply to segments of K. */
static inline bool bsmm_pack_has_segments(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32;
}

/* ---- tables of elements (pack_table.c) ---- */

/* Holds the values of an element format's codes. The tables of formats of fewer than 8 bits are
 * repeated to fill their arrays. For formats of more than 8 bits, only `elem` is set. */
typedef struct bsmm_pack_table {
    uint32_t elem;
    _Alignas(64) uint8_t low[256]; /* the element as bf16 is low | high << 8 */
    _Alignas(64) uint8_t high[256];
    _Alignas(64) int8_t a[64]; /* integers of e2m1 and e2m3: element * multiple */
    _Alignas(64) int8_t b[64]; /* the integers of a[] plus `largest` */
    int32_t log2_multiple, largest;
    int lowest_bit; /* exponent of the smallest subnormal */
} bsmm_pack_table;

const bsmm_pack_table *bsmm_pack_table_of(uint32_t elem);

/* Returns the values of the 256 codes of an e8m0 or e4m3 scale. */
const float *bsmm_pack_scales_of(uint32_t scale);

/* ---- reading rows (pack_source.c) ---- */

typedef struct bsmm_pack_isa bsmm_pack_isa;

/* Points to codes of LANES rows over a span, each row packed as in memory. */
typedef struct bsmm_pack_codes {
    const uint8_t *row[BSMM_PACK_LANES];
    uint32_t bits; /* bits of a code: 4, 6, 8, 16 or 32 */
    int64_t count; /* codes in each row; those past the end count as code 0 */
} bsmm_pack_codes;

/* The columns of an operand in column order are copied STRIP at a time, and LINE bytes of each
 * column. */
enum { BSMM_PACK_STRIP = 128, BSMM_PACK_LINE = 128 };

/* This is a staging buffer for codes that cannot be read in place. Columns [k, k + n) of a matrix
 * in column order are copied side by side, from the column's byte `first` on, for all the tiles
 * that need these bytes. The stride between columns in memory is often a power of two, and caches
 * hold few lines at such a stride. Without the copy, a tile would use a few bytes of a line, and
 * the line would be evicted before the next tile needs it. */
typedef struct bsmm_pack_buffer {
    _Alignas(64) uint16_t codes[BSMM_PACK_LANES][BSMM_PACK_SPAN];
    _Alignas(64) uint8_t strip[BSMM_PACK_STRIP][BSMM_PACK_LINE];
    int64_t k, n; /* the columns that `strip` holds: n of them, from k on; n is 0 at first */
    uint64_t first;
} bsmm_pack_buffer;

/* Returns the largest number of columns that bsmm_pack_read takes at once. If it is below SPAN, the
 * caller should interleave tiles: all tiles read the same columns before any reads the next
 * ones. */
int64_t bsmm_pack_columns_at_once(const bsmm_operand *o);

/* Reads rows [r, r + rows), columns [k, k + n). Rows from `rows` up to LANES are filled with code
 * 0. k is a multiple of RUN. */
void bsmm_pack_read(const bsmm_pack_isa *isa, const bsmm_operand *o, int64_t r, int64_t rows,
                    int64_t k, int64_t n, bsmm_pack_buffer *buffer, bsmm_pack_codes *codes);

/* Returns true if columns [k, end) of row r are all zeros. */
bool bsmm_pack_is_empty(const bsmm_operand *o, int64_t r, int64_t k, int64_t end);

/* Writes the offsets of the scales of columns k, k + step, ... below k + n, without the row's part.
 * There are at most STEPS of them. The block length and k are multiples of step. */
void bsmm_pack_offsets(const bsmm_operand *o, int64_t k, int64_t n, int64_t step,
                       uint64_t *offsets);

/* Returns the row's part of the offsets of its scales. */
static inline uint64_t bsmm_pack_row_offset(const bsmm_operand *o, int64_t r) {
    int64_t rows = o->m.format.block_rows;
    if (rows != 1) r /= rows;
    return o->map.digit_count ? bsmm_scale_map_at(&o->map, r, 0)
                              /* Rows of scales at a constant distance. */
                              : (uint64_t)r * o->map.tile_row_step;
}

/* ---- functions of each instruction set (pack_*.c) ---- */

/* Returns the codes of row `lane` from k on. If there are fewer than RUN, returns a copy in `room`,
 * padded with zeros. */
static inline const uint8_t *bsmm_pack_run_at(const bsmm_pack_codes *c, int64_t lane, int64_t k,
                                              uint8_t room[BSMM_PACK_RUN * 4]) {
    const uint8_t *from = c->row[lane] + k / 8 * c->bits;
    int64_t n = c->count - k;
    if (n >= BSMM_PACK_RUN) return from;
    memset(room, 0, BSMM_PACK_RUN * 4);
    if (n > 0) memcpy(room, from, (size_t)(n * c->bits + 7) / 8);
    return room;
}

/* Describes the destination of a tile over a span. Group g of lane i is at
 *     to + g / unit_groups * unit_bytes + g % unit_groups * pitch + 4 * i. */
typedef struct bsmm_pack_place {
    uint8_t *to;
    int64_t lanes;       /* number of lanes that are written, at most LANES */
    int64_t groups;      /* groups of the span, in whole units */
    int64_t unit_groups; /* groups of a unit: 4 or 8 for integers, a multiple of 16 for bf16 */
    int64_t unit_bytes, pitch;
    bool widened; /* bf16: store the odd element as fp32, then the even one at + pitch / 2 */
} bsmm_pack_place;

/* Holds the factors of the elements; a NULL member means that there are none. A shift is 128 times
 * an exponent, which adds to the exponent of a bf16 code, or BSMM_PACK_NAN. Zeros, Inf and NaN stay
 * as they are. */
typedef struct bsmm_pack_scaling {
    /* Exponents to add to elements, in the order [lane][32 of K]. */
    const int16_t (*shifts)[BSMM_PACK_STEPS / 2];
    /* Factors of elements, in the order [lane][16 of K]. */
    const float (*factors)[BSMM_PACK_STEPS];
} bsmm_pack_scaling;

enum { BSMM_PACK_NAN = INT16_MIN };

/* A unit's initial sum is `plus` - factor * the sum of the unit's integers. */
typedef struct bsmm_pack_begin {
    int32_t factor, plus;
} bsmm_pack_begin;

/* Describes columns of codes. The first begins at bit `bit` of base, and the stride is `step` bits,
 * which are whole bytes. */
typedef struct bsmm_pack_columns {
    const uint8_t *base;
    uint64_t bit, step;
    uint32_t bits; /* bits of a code */
} bsmm_pack_columns;

enum { BSMM_PACK_EXPONENTS = 4 };

/* Describes e8m0 codes of LANES rows, for units with adjacent codes. They are written as fp32 bits
 * less `lower`. If `floated` is not 0, the product of that value and `floated` is written too,
 * `pitch` bytes further. */
typedef struct bsmm_pack_exponents {
    const uint8_t *const *row;
    uint64_t offset; /* offset of the first unit's code */
    int64_t rows;    /* rows that exist; the other lanes get a scale of 1 */
    int32_t lower, floated;
    int64_t unit_bytes, pitch;
} bsmm_pack_exponents;

struct bsmm_pack_isa {
    /* Reads codes of LANES rows of RUN columns. Lane i is written to `to` + i * SPAN, one code per
     * byte; codes of 16 and 32 bits go to `to` + i * PITCH. It reads 8 bytes of a column, or LANES
     * codes of 16 or 32 bits. */
    void (*columns)(const bsmm_pack_columns *columns, uint8_t *to);
    /* Writes the integers of `table`. If begin's factor is not 0, the initial sums of a unit follow
     * its groups. */
    void (*integers)(const bsmm_pack_codes *codes, const int8_t *table,
                     const bsmm_pack_begin *begin, const bsmm_pack_place *at);
    /* Writes bf16 values of codes, times their scaling. 16-bit codes are bf16 themselves; shorter
     * ones are looked up in `table`. */
    void (*halves)(const bsmm_pack_codes *codes, const bsmm_pack_table *table,
                   const bsmm_pack_scaling *scaling, const bsmm_pack_place *at);
    /* Writes uint32 i of lane j to to + i * pitch + 4 * j. */
    void (*words)(const int32_t (*words)[BSMM_PACK_STEPS], int64_t count, int64_t lanes,
                  uint8_t *to, int64_t pitch);
    /* Writes codes [k, k + RUN) of a lane as fp32, exactly. If there are factors, one for each
     * STEP, it writes the rounded products. Values past the last code are undefined. */
    void (*floats)(const bsmm_pack_codes *codes, const bsmm_pack_table *table, int64_t lane,
                   int64_t k, const float *factors, float *to);
    /* Returns, of n fp32 values, the largest magnitude and the smallest nonzero magnitude less 1,
     * both as integers. */
    void (*reach)(const float *values, int64_t n, int32_t *largest, int32_t *smallest_less_1);
    /* Returns the largest and smallest magnitudes of the finite nonzero bf16 codes; 0 and INT16_MAX
     * if there are none. */
    void (*extent)(const uint16_t *codes, int64_t n, int16_t *largest, int16_t *smallest);
    /* Writes the scales of EXPONENTS units. If a scale is outside of 2^-50 to 2^50, it stores
     * nothing and returns false. NULL: scales are packed one by one. */
    bool (*exponents)(const bsmm_pack_exponents *exponents, uint8_t *to);
};

extern const bsmm_pack_isa bsmm_pack_portable;
void bsmm_pack_portable_halves(const bsmm_pack_codes *codes, const bsmm_pack_table *table,
                               const bsmm_pack_scaling *scaling, const bsmm_pack_place *at);
void bsmm_pack_portable_columns(const bsmm_pack_columns *columns, uint8_t *to);
void bsmm_pack_portable_floats(const bsmm_pack_codes *codes, const bsmm_pack_table *table,
                               int64_t lane, int64_t k, const float *factors, float *to);
void bsmm_pack_portable_extent(const uint16_t *codes, int64_t n, int16_t *largest,
                               int16_t *smallest);

void bsmm_pack_portable_reach(const float *values, int64_t n, int32_t *largest,
                              int32_t *smallest_less_1);

/* These are the functions for 256-bit vectors. bsmm_pack_avx2 returns NULL if the processor lacks
 * AVX2. */
void bsmm_pack_avx2_columns(const bsmm_pack_columns *columns, uint8_t *to);
void bsmm_pack_avx2_floats(const bsmm_pack_codes *codes, const bsmm_pack_table *table, int64_t lane,
                           int64_t k, const float *factors, float *to);
void bsmm_pack_avx2_reach(const float *values, int64_t n, int32_t *largest,
                          int32_t *smallest_less_1);
const bsmm_pack_isa *bsmm_pack_avx2(void);

/* These are the functions for 512-bit vectors with byte permutes. bsmm_pack_avx512 returns NULL if
 * the processor lacks VBMI. */
void bsmm_pack_avx512_columns(const bsmm_pack_columns *columns, uint8_t *to);
bool bsmm_pack_avx512_exponents(const bsmm_pack_exponents *exponents, uint8_t *to);
const bsmm_pack_isa *bsmm_pack_avx512(void);

/* Returns the functions of the best instruction set that the processor has. */
const bsmm_pack_isa *bsmm_pack_best(void);

#endif
