/* What the packers of the engines share: reading rows of any operand, and the instruction sets that
 * pack them.
 *
 * A panel is filled in tiles of 8 rows (lanes) and spans of K. A group is the 4 bytes that one row
 * gives to one step of an engine's multiply, and a panel interleaves the groups of its rows:
 * packing is decoding codes and transposing 8 rows of 4-byte words. Only those two differ between
 * instruction sets; which scale goes where, what leaves a row and which rows are wide is decided in
 * pack_int8dot.c and pack_bf16dot.c. */
#ifndef BSMM_CPU_PACK_H
#define BSMM_CPU_PACK_H

#include "format/format.h"

#include <string.h>

enum {
    BSMM_PACK_LANES = 8,
    BSMM_PACK_RUN = 64,    /* of K: what an instruction set decodes at once */
    BSMM_PACK_SPAN = 1024, /* of K: bounds the buffers; a multiple of every unit */
    BSMM_PACK_STEP = 16,   /* of K: the shortest run with one scale */
    BSMM_PACK_STEPS = BSMM_PACK_SPAN / BSMM_PACK_STEP,
    BSMM_PACK_PITCH = 2 * BSMM_PACK_SPAN, /* bytes of a row of wide codes in a buffer */
};

/* ---- elements (pack_table.c) ---- */

/* What the codes of an element format stand for. Tables of formats of fewer bits repeat. Formats
 * of more than 8 bits have elem alone. */
typedef struct bsmm_pack_table {
    uint32_t elem;
    _Alignas(64) uint8_t low[256]; /* the bytes of the bf16 that is the element */
    _Alignas(64) uint8_t high[256];
    _Alignas(64) int8_t a[64]; /* e2m1, e2m3: element * multiple */
    _Alignas(64) int8_t b[64]; /* that plus `largest` */
    int32_t log2_multiple, largest;
    int lowest_bit; /* exponent of the smallest subnormal */
} bsmm_pack_table;

const bsmm_pack_table *bsmm_pack_table_of(uint32_t elem);

/* The values of the 256 codes of an e8m0 or e4m3 scale. */
const float *bsmm_pack_scales_of(uint32_t scale);

/* ---- rows (pack_source.c) ---- */

typedef struct bsmm_pack_isa bsmm_pack_isa;

/* Codes of LANES rows over a span, each packed as in memory. */
typedef struct bsmm_pack_codes {
    const uint8_t *row[BSMM_PACK_LANES];
    uint32_t bits; /* of a code: 4, 6, 8, 16 or 32 */
    int64_t count; /* of codes in each row; what lies beyond counts as code 0 */
} bsmm_pack_codes;

/* Columns that lie apart are taken so many at a time, and of each so many bytes of rows. */
enum { BSMM_PACK_STRIP = 128, BSMM_PACK_LINE = 128 };

/* Where codes lie that are not read where they are. Columns [k, k + n) of a matrix in column order
 * are copied side by side, from the column's byte `first` on, for all the tiles that lie there: in
 * memory they are often a power of two apart, of which caches hold few, and a tile would take a few
 * bytes of a line that is gone when the next one needs it. */
typedef struct bsmm_pack_buffer {
    _Alignas(64) uint16_t codes[BSMM_PACK_LANES][BSMM_PACK_SPAN];
    _Alignas(64) uint8_t strip[BSMM_PACK_STRIP][BSMM_PACK_LINE];
    int64_t k, n; /* of the strip; n is 0 at first */
    uint64_t first;
} bsmm_pack_buffer;

/* How many columns bsmm_pack_read takes at once at most. Where they are fewer than SPAN, tiles are
 * to take turns with the same ones. */
int64_t bsmm_pack_columns_at_once(const bsmm_operand *o);

/* Rows [r, r + rows), columns [k, k + n); rows up to LANES are of code 0. k is a multiple of RUN.
 */
void bsmm_pack_read(const bsmm_pack_isa *isa, const bsmm_operand *o, int64_t r, int64_t rows,
                    int64_t k, int64_t n, bsmm_pack_buffer *buffer, bsmm_pack_codes *codes);

/* Whether columns [k, end) of row r are all zeros. */
bool bsmm_pack_is_empty(const bsmm_operand *o, int64_t r, int64_t k, int64_t end);

/* Offsets of the scales of columns k, k + step, ... below k + n, without the row's; there are at
 * most STEPS. A block is a multiple of step, and k too. */
void bsmm_pack_offsets(const bsmm_operand *o, int64_t k, int64_t n, int64_t step,
                       uint64_t *offsets);

/* What a row adds to them. */
static inline uint64_t bsmm_pack_row_offset(const bsmm_operand *o, int64_t r) {
    int64_t rows = o->m.format.block_rows;
    if (rows != 1) r /= rows;
    return o->map.digit_count ? bsmm_scale_map_at(&o->map, r, 0)
                              : (uint64_t)r * o->map.tile_row_step; /* a plain pitch */
}

/* ---- instruction sets (pack_*.c) ---- */

/* Codes of row `lane` from k on, RUN of them; where it has fewer, a copy with zeros behind, in
 * room.
 */
static inline const uint8_t *bsmm_pack_run_at(const bsmm_pack_codes *c, int64_t lane, int64_t k,
                                              uint8_t room[BSMM_PACK_RUN * 4]) {
    const uint8_t *from = c->row[lane] + k / 8 * c->bits;
    int64_t n = c->count - k;
    if (n >= BSMM_PACK_RUN) return from;
    memset(room, 0, BSMM_PACK_RUN * 4);
    if (n > 0) memcpy(room, from, (size_t)(n * c->bits + 7) / 8);
    return room;
}

/* Where a tile of a span goes: group g of lane i is at
 *   to + g / unit_groups * unit_bytes + g % unit_groups * pitch + 4 * i. */
typedef struct bsmm_pack_place {
    uint8_t *to;
    int64_t lanes;       /* that are there: at most LANES */
    int64_t groups;      /* whole units */
    int64_t unit_groups; /* 4 or 8 of integers; a multiple of 16 of bf16 */
    int64_t unit_bytes, pitch;
    bool widened; /* of bf16: a group's odd element as fp32, its even one at + pitch / 2 */
} bsmm_pack_place;

/* What elements are multiplied by; NULL: nothing. A shift is 128 times an exponent, or
 * BSMM_PACK_NAN; zeros, Inf and NaN stay as they are. */
typedef struct bsmm_pack_scaling {
    const int16_t (*shifts)[BSMM_PACK_STEPS / 2]; /* of each lane and 32 of K */
    const float (*factors)[BSMM_PACK_STEPS];      /* of each lane and 16 of K */
} bsmm_pack_scaling;

enum { BSMM_PACK_NAN = INT16_MIN };

/* Where the sums of a unit begin: at `plus` - factor times its own sum. */
typedef struct bsmm_pack_begin {
    int32_t factor, plus;
} bsmm_pack_begin;

/* Columns of codes: one begins at bit `bit` of base, the next one `step` bits on, whole bytes. */
typedef struct bsmm_pack_columns {
    const uint8_t *base;
    uint64_t bit, step;
    uint32_t bits; /* of a code */
} bsmm_pack_columns;

enum { BSMM_PACK_EXPONENTS = 4 };

/* e8m0 codes of LANES rows, of units that lie side by side: as fp32 bits less `lower`, and if
 * `floated` is not 0 that times it, `pitch` bytes on. */
typedef struct bsmm_pack_exponents {
    const uint8_t *const *row;
    uint64_t offset; /* of the first unit */
    int64_t rows;    /* that are there; the others take 1 */
    int32_t lower, floated;
    int64_t unit_bytes, pitch;
} bsmm_pack_exponents;

struct bsmm_pack_isa {
    /* Codes of LANES rows of RUN columns: lane i's go to `to` + i * SPAN, one to a byte, or those
     * of 16 and 32 bits to `to` + i * PITCH. Reads 8 bytes of a column, or LANES codes. */
    void (*columns)(const bsmm_pack_columns *columns, uint8_t *to);
    /* Integers of `table`; where begin's factor is not 0, each unit's groups are followed by where
     * its sums begin. */
    void (*integers)(const bsmm_pack_codes *codes, const int8_t *table,
                     const bsmm_pack_begin *begin, const bsmm_pack_place *at);
    /* bf16 of codes (of `table`, or 16-bit codes themselves) times their scaling. */
    void (*halves)(const bsmm_pack_codes *codes, const bsmm_pack_table *table,
                   const bsmm_pack_scaling *scaling, const bsmm_pack_place *at);
    /* Word i of lane j, to to + i * pitch + 4 * j. */
    void (*words)(const int32_t (*words)[BSMM_PACK_STEPS], int64_t count, int64_t lanes,
                  uint8_t *to, int64_t pitch);
    /* fp32 of codes [k, k + RUN) of a lane, exactly, or where there are factors, one for each STEP,
     * rounded times them. Beyond the codes anything. */
    void (*floats)(const bsmm_pack_codes *codes, const bsmm_pack_table *table, int64_t lane,
                   int64_t k, const float *factors, float *to);
    /* Of n fp32 the largest magnitude, as an integer, and the smallest that is not 0, less 1. */
    void (*reach)(const float *values, int64_t n, int32_t *largest, int32_t *smallest_less_1);
    /* The largest and smallest magnitudes of the finite bf16 that are not 0, as codes; 0 and
     * INT16_MAX if there are none. */
    void (*extent)(const uint16_t *codes, int64_t n, int16_t *largest, int16_t *smallest);
    /* EXPONENTS units' scales; false, and nothing is stored, if one of them is not within 2^-50 and
     * 2^50. NULL: scales are packed one by one. */
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

/* 256-bit vectors; NULL where the processor has none. */
void bsmm_pack_avx2_columns(const bsmm_pack_columns *columns, uint8_t *to);
void bsmm_pack_avx2_floats(const bsmm_pack_codes *codes, const bsmm_pack_table *table, int64_t lane,
                           int64_t k, const float *factors, float *to);
void bsmm_pack_avx2_reach(const float *values, int64_t n, int32_t *largest,
                          int32_t *smallest_less_1);
const bsmm_pack_isa *bsmm_pack_avx2(void);

/* 512-bit vectors with byte permutes (VBMI); NULL where the processor has none. */
void bsmm_pack_avx512_columns(const bsmm_pack_columns *columns, uint8_t *to);
bool bsmm_pack_avx512_exponents(const bsmm_pack_exponents *exponents, uint8_t *to);
const bsmm_pack_isa *bsmm_pack_avx512(void);

/* The best that the processor has. */
const bsmm_pack_isa *bsmm_pack_best(void);

#endif
