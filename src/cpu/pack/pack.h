/* Declares the functions that all packers of operands share: functions that read rows of any
 * operand, and the packing functions of each instruction set.
 *
 * A panel is filled in tiles of 8 rows (also called lanes) and spans of up to 1024 elements of K. A
 * group is the 4 bytes that one row contributes to one multiply instruction: 4 integers, 2 bf16 or
 * 1 fp32. A panel stores group 0 of all its rows, then group 1 of all rows, and so on. Packing
 * therefore decodes codes and transposes 8 rows of 32-bit groups. Only decoding and transposing
 * differ between instruction sets. pack_int8dot.c, pack_bf16dot.c and pack_f32fma.c determine where
 * scales are stored, the factor that is divided out of each row, and the rows whose results must be
 * summed in double (engine_gemm.h). */
#ifndef BSMM_CPU_PACK_H
#define BSMM_CPU_PACK_H

#include "core/kernel.h"

#include <string.h>

enum {
    BSMM_PACK_LANES = 8,
    /* BSMM_PACK_RUN is the number of elements of K that are decoded at once. */
    BSMM_PACK_RUN = 64,
    /* A row is packed in spans along K, one after another, so that buffers can have a fixed size.
     * BSMM_PACK_SPAN is the number of elements in a span. It is a multiple of the length of every
     * packed unit (a range of K with one scale per row). */
    BSMM_PACK_SPAN = 1024,
    /* BSMM_PACK_STEP is the smallest number of elements along K that share a scale. */
    BSMM_PACK_STEP = 16,
    BSMM_PACK_STEPS = BSMM_PACK_SPAN / BSMM_PACK_STEP,
    /* BSMM_PACK_PITCH is the number of bytes of a row of 16-bit or 32-bit codes in a buffer. */
    BSMM_PACK_PITCH = 2 * BSMM_PACK_SPAN,
};

/* Returns NULL if a kernel can pack an operand, else the reason for refusing the operand. `what` is
 * the operand's name in the reason. */
typedef const char *bsmm_pack_refuser(const bsmm_operand *o, const char *what, char *why,
                                      size_t size);

/* Returns NULL if a kernel can pack both operands of a product, else the reason for refusing the
 * product. */
static inline const char *bsmm_pack_refuse(const bsmm_product *p, bsmm_pack_refuser *refuse,
                                           char *why, size_t size) {
    const char *reason = refuse(&p->a, "A", why, size);
    if (!reason) reason = refuse(&p->b, "B", why, size);
    if (reason || p->a.m.cols <= 1 << 20) return reason;
    return "K is above 2^20: fp32 sums might leave their range";
}

/* Returns true if the operand has fp32 scales. Such a scale multiplies the sum of a segment (128
 * elements of K) instead of single elements. */
static inline bool bsmm_pack_has_segments(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32;
}

/* Divides K into segments of `length` elements. Returns true if each segment of a row lies in a
 * single block of fp32 scales. This is also true if one block has all of K, and K is no multiple of
 * `length`. */
static inline bool bsmm_pack_has_whole_segments(const bsmm_operand *o, int64_t length) {
    return o->m.format.block_cols % length == 0 || o->m.format.block_cols >= o->m.cols;
}

/* `bsmm_pack_table` holds tables of the values of an element format's codes. The entries of formats
 * with fewer than 8 bits are repeated to fill the arrays. For formats with more than 8 bits, only
 * `elem` is set. */
typedef struct bsmm_pack_table {
    uint32_t elem;
    /* `low` and `high` hold, for each code, the low byte and the high byte of the code's value in
     * bf16. */
    _Alignas(64) uint8_t low[256];
    _Alignas(64) uint8_t high[256];
    /* For e2m1 and e2m3, `a` holds each code's value times 2^log2_multiple. These products are
     * integers. */
    _Alignas(64) int8_t a[64];
    /* `b` holds the integers of a[] plus `largest`, which is their largest magnitude, so that none
     * is negative. */
    _Alignas(64) int8_t b[64];
    int32_t log2_multiple, largest;
    int lowest_bit; /* `lowest_bit` is the exponent of the format's smallest subnormal. */
} bsmm_pack_table;

const bsmm_pack_table *bsmm_pack_table_of(uint32_t elem);

/* Returns a table with the values of the 256 codes of e8m0 or e4m3 scales. */
const float *bsmm_pack_scales_of(uint32_t scale);

typedef struct bsmm_pack_isa bsmm_pack_isa;

/* A packer handles a tile at a time, i.e. LANES (8) rows over up to SPAN elements of K. This struct
 * points to the codes of a tile. row[i] points to the first code of row i. The codes of a row are
 * stored without gaps, as in the operand. */
typedef struct bsmm_pack_codes {
    const uint8_t *row[BSMM_PACK_LANES];
    uint32_t bits; /* `bits` is the number of bits of a code: 4, 6, 8, 16 or 32. */
    /* `count` is the number of codes in each row. Columns past the last code count as code 0. */
    int64_t count;
} bsmm_pack_codes;

/* A column-major operand is copied in parts of BSMM_PACK_STRIP columns and BSMM_PACK_LINE bytes of
 * each column (bsmm_pack_buffer). */
enum { BSMM_PACK_STRIP = 128, BSMM_PACK_LINE = 128 };

/* Holds copies of codes of an operand that cannot be read in place. `codes` has rows of codes in
 * row-major order. `strip` is used for column-major operands: it holds a part of each of the
 * columns k to k + n - 1, one part after another. The part of a column has BSMM_PACK_LINE bytes,
 * beginning with byte number `first` of the column.
 *
 * All tiles of rows that need these bytes read the copy in `strip`. In memory, columns are often a
 * power of two of bytes apart, and a cache holds only few cache lines at such a stride. Without the
 * copy, each tile would use a few bytes of a cache line, and the line would be evicted before the
 * next tile needs it. */
typedef struct bsmm_pack_buffer {
    _Alignas(64) uint16_t codes[BSMM_PACK_LANES][BSMM_PACK_SPAN];
    _Alignas(64) uint8_t strip[BSMM_PACK_STRIP][BSMM_PACK_LINE];
    /* The array strip[] holds columns k to k + n - 1 of the operand, and n is 0 at first. */
    int64_t k, n;
    uint64_t first;
} bsmm_pack_buffer;

/* Returns the largest number of columns of K that one call of bsmm_pack_read can read. If the
 * operand is column-major, this is less than SPAN. The caller should then read these columns for
 * several tiles of rows before it goes on along K, because a cache line holds several rows of the
 * same column. */
int64_t bsmm_pack_columns_at_once(const bsmm_operand *o);

/* Makes *codes point to the codes of rows [r, r + rows) and columns [k, k + n). If there are fewer
 * than LANES rows, the remaining lanes get code 0. k must be a multiple of RUN. */
void bsmm_pack_read(const bsmm_pack_isa *isa, const bsmm_operand *o, int64_t r, int64_t rows,
                    int64_t k, int64_t n, bsmm_pack_buffer *buffer, bsmm_pack_codes *codes);

/* Returns true if all elements of row r in columns k to end - 1 are zero. */
bool bsmm_pack_is_empty(const bsmm_operand *o, int64_t r, int64_t k, int64_t end);

/* Computes offsets of scales of a row, for the columns k, k + step, k + 2 * step and so on, up to
 * column k + n - 1. An offset is an index into the array of scales. It is the sum of a part that
 * depends on the row and a part that depends on the column, and the function stores only the
 * column's part. There may be at most STEPS offsets. k must be a multiple of step. The block length
 * must be a multiple of step, too, unless a block has all of K. */
void bsmm_pack_offsets(const bsmm_operand *o, int64_t k, int64_t n, int64_t step,
                       uint64_t *offsets);

/* Returns the part of a scale's offset (its index in the array of scales) that depends on row r.
 * bsmm_pack_offsets computes the part that depends on the column. */
static inline uint64_t bsmm_pack_row_offset(const bsmm_operand *o, int64_t r) {
    int64_t rows = o->m.format.block_rows;
    if (rows != 1) r /= rows;
    return o->map.digit_count ? bsmm_scale_map_at(&o->map, r, 0)
                              /* A layout without tiles stores rows of scales at a constant
                               * pitch. */
                              : (uint64_t)r * o->map.tile_row_step;
}

/* Returns the address of a row's codes from column k on. If fewer than RUN codes are left, it
 * copies them to `room`, pads them with zeros and returns `room`. */
static inline const uint8_t *bsmm_pack_run_at(const bsmm_pack_codes *c, int64_t lane, int64_t k,
                                              uint8_t room[BSMM_PACK_RUN * 4]) {
    const uint8_t *from = c->row[lane] + k / 8 * c->bits;
    int64_t n = c->count - k;
    if (n >= BSMM_PACK_RUN) return from;
    memset(room, 0, BSMM_PACK_RUN * 4);
    if (n > 0) memcpy(room, from, (size_t)(n * c->bits + 7) / 8);
    return room;
}

/* This struct is the place in a panel where a tile of rows is stored, over a range of K. Row i of
 * the tile is called lane i. A group is 4 bytes of a row, i.e. 4 packed integers, 2 bf16 or 1 fp32.
 * The range of K is divided into units of unit_groups groups. In the panel, a unit begins
 * unit_bytes bytes after the unit before it. In a unit, a group of a lane is stored `pitch` bytes
 * after the lane's previous group. Group number g of lane i is therefore stored at
 *      to + g / unit_groups * unit_bytes + g % unit_groups * pitch + 4 * i. */
typedef struct bsmm_pack_place {
    uint8_t *to;
    int64_t lanes; /* `lanes` is the number of rows of the tile that are stored, at most LANES. */
    /* In a panel, each row is stored as groups of 4 bytes: 4 integers, 2 bf16 numbers or 1 fp32
     * number. `groups` is the number of groups of one row. It is rounded up to whole units; a unit
     * is a range of K in which each row has one scale. */
    int64_t groups;
    /* A unit is a range of K in which each row has one scale. In a unit, a row has `unit_groups`
     * groups of 4 bytes: 4 or 8 groups of integers, or a multiple of 16 groups of bf16. */
    int64_t unit_groups;
    int64_t unit_bytes, pitch;
    /* `widened` is true if bf16 elements are stored as fp32. The odd element of each pair is stored
     * first, and the even element pitch / 2 bytes later. */
    bool widened;
} bsmm_pack_place;

/* This struct holds factors by which bf16 elements are multiplied. A member is NULL if there are no
 * such factors. A shift stands for a power of two. It is the power's exponent times 128, i.e. the
 * number that must be added to the bits of a bf16 to multiply it by the power. Zeros, Inf and NaN
 * are not changed. The shift BSMM_PACK_NAN makes every element NaN. */
typedef struct bsmm_pack_scaling {
    /* If `shifts` is not NULL, elements are multiplied by powers of two. `shifts` has one shift for
     * each row (lane) and each 32 elements of K, in the order [lane][block of 32 elements]. */
    const int16_t (*shifts)[BSMM_PACK_STEPS / 2];
    /* `factors` has one factor for each row (lane) and each 16 elements of K, in the order
     * [lane][block of 16 elements]. */
    const float (*factors)[BSMM_PACK_STEPS];
} bsmm_pack_scaling;

enum { BSMM_PACK_NAN = INT16_MIN };

/* A unit is 16 or 32 elements of K. Packing adds the constant `factor` to B's integers, because the
 * dot product instruction needs an operand without negative numbers. This makes the sum of a unit's
 * products too large by factor * (sum of A's integers in the unit). The integer sum of the unit
 * therefore begins not at 0 but at plus - factor * (sum of A's integers). */
typedef struct bsmm_pack_begin {
    int32_t factor, plus;
} bsmm_pack_begin;

/* Describes consecutive columns of a column-major operand, whose codes have `bits` bits. The codes
 * of the first column begin at bit number `bit` of `base`. Those of each further column begin
 * `step` bits after those of the column before. `step` is a multiple of 8. */
typedef struct bsmm_pack_columns {
    const uint8_t *base;
    uint64_t bit, step;
    uint32_t bits; /* `bits` is the number of bits of a code. */
} bsmm_pack_columns;

enum { BSMM_PACK_EXPONENTS = 4 };

/* `bsmm_pack_exponents` describes how the e8m0 scales of LANES rows are packed, for EXPONENTS
 * consecutive units. A unit is a range of K in which each row has one scale. In the operand, the
 * scale codes of a row must be adjacent in memory. The packed scale is a 32-bit integer: the bits
 * of the scale as fp32, minus `lower`. If `floated` is not 0, this integer is also read as a float
 * x, and x * floated is stored `pitch` bytes after it. */
typedef struct bsmm_pack_exponents {
    const uint8_t *const *row;
    uint64_t offset; /* `offset` is the offset in bytes of the first scale code in each row. */
    /* `rows` is the number of rows from lane 0 to the operand's last row. Lanes past the last row
     * get the scale 1. */
    int64_t rows;
    int32_t lower, floated;
    int64_t unit_bytes, pitch;
} bsmm_pack_exponents;

struct bsmm_pack_isa {
    /* Reads RUN columns of LANES rows of a column-major operand and stores them row by row. Codes
     * of up to 8 bits are stored as one byte each, and lane i begins SPAN * i bytes after `to`.
     * Codes of 16 and 32 bits keep their size, and lane i begins PITCH * i bytes after `to`. The
     * function reads 8 bytes of each column, or LANES codes if they have 16 or 32 bits. */
    void (*columns)(const bsmm_pack_columns *columns, uint8_t *to);
    /* Packs the codes of 8 rows as integers, which it looks up in `table`. If begin->factor is not
     * 0, the integer sums of the rows do not begin with 0 (bsmm_pack_begin). The function then also
     * stores their initial values, after each 16 or 32 elements of K. */
    void (*integers)(const bsmm_pack_codes *codes, const int8_t *table,
                     const bsmm_pack_begin *begin, const bsmm_pack_place *at);
    /* Stores the codes as bf16, multiplied by the factors in *scaling. Codes of 16 bits are bf16
     * already; shorter codes are looked up in `table`. */
    void (*halves)(const bsmm_pack_codes *codes, const bsmm_pack_table *table,
                   const bsmm_pack_scaling *scaling, const bsmm_pack_place *at);
    /* Transposes 32-bit values: value i of lane j is stored at to + i * pitch + 4 * j. */
    void (*words)(const int32_t (*words)[BSMM_PACK_STEPS], int64_t count, int64_t lanes,
                  uint8_t *to, int64_t pitch);
    /* Converts the codes [k, k + RUN) of one row (lane) to fp32 and stores them. The conversion is
     * exact. If `factors` is not NULL, the values are then multiplied by factors, one for each STEP
     * codes, and these products are rounded to fp32. What is stored behind the row's last code is
     * undefined. */
    void (*floats)(const bsmm_pack_codes *codes, const bsmm_pack_table *table, int64_t lane,
                   int64_t k, const float *factors, float *to);
    /* Finds the largest magnitude of n fp32 values and their smallest nonzero magnitude. *largest
     * gets the bits of the largest magnitude as a float. *smallest_less_1 gets the bits of the
     * smallest nonzero magnitude, minus 1. The subtraction makes zeros wrap around to the largest
     * integer, so that they need no branch. */
    void (*reach)(const float *values, int64_t n, int32_t *largest, int32_t *smallest_less_1);
    /* Finds the largest and the smallest magnitude among n bf16 numbers, and returns both as bf16
     * codes. Zeros, Inf and NaN do not count. If all n numbers are of these kinds, *largest is 0
     * and *smallest is INT16_MAX. */
    void (*extent)(const uint16_t *codes, int64_t n, int16_t *largest, int16_t *smallest);
    /* Stores the scales of LANES rows in EXPONENTS units, i.e. ranges of K with one scale per row.
     * If a scale is not between 2^-50 and 2^50, the function stores nothing and returns false. If
     * this pointer is NULL, the caller packs scales one by one. */
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

/* The following functions use 256-bit vectors. bsmm_pack_avx2 returns NULL if the processor lacks
 * AVX2. */
void bsmm_pack_avx2_columns(const bsmm_pack_columns *columns, uint8_t *to);
void bsmm_pack_avx2_floats(const bsmm_pack_codes *codes, const bsmm_pack_table *table, int64_t lane,
                           int64_t k, const float *factors, float *to);
void bsmm_pack_avx2_reach(const float *values, int64_t n, int32_t *largest,
                          int32_t *smallest_less_1);
const bsmm_pack_isa *bsmm_pack_avx2(void);

/* The following functions use 512-bit vectors and byte permutes. bsmm_pack_avx512 returns NULL if
 * the processor lacks AVX-512 VBMI. */
void bsmm_pack_avx512_columns(const bsmm_pack_columns *columns, uint8_t *to);
bool bsmm_pack_avx512_exponents(const bsmm_pack_exponents *exponents, uint8_t *to);
const bsmm_pack_isa *bsmm_pack_avx512(void);

/* Returns the packing functions of the best instruction set that the processor has. */
const bsmm_pack_isa *bsmm_pack_best(void);

#endif
