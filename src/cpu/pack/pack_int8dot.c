/* Packs operands for CPU kernels that multiply by int8 dot products; pack_int8dot.h describes the
 * packed layout. */
#include "cpu/pack/pack_int8dot.h"

#include <math.h>
#include <string.h>

/* Only scales between smallest_scale and largest_scale are usable. These constants are the bits of
 * fp32 numbers. If the scales of both operands are between 2^-50 and 2^50, no sum over a K of up to
 * 2^20 leaves fp32's range. */
enum { EXPONENT = 1 << 23, ONE = 127 * EXPONENT };
static const uint32_t smallest_scale = (127 - 50) * EXPONENT, largest_scale = (127 + 50) * EXPONENT;

static bool is_power_of_two(uint32_t scale) {
    return scale == BSMM_SCALE_E8M0 || scale == BSMM_SCALE_NONE;
}

bool bsmm_int8_by_exponent(const bsmm_product *p) {
    return is_power_of_two(p->a.m.format.scale) && is_power_of_two(p->b.m.format.scale) &&
           p->a.m.format.block_cols % BSMM_INT8_EXPONENT_UNIT == 0 &&
           p->b.m.format.block_cols % BSMM_INT8_EXPONENT_UNIT == 0;
}

const char *bsmm_int8_refuse(const bsmm_operand *o, const char *what, char *why, size_t size) {
    if (!bsmm_elem_traits_of[o->m.format.elem].small_integer) {
        return bsmm_reason(
            why, size,
            "%s has %s elements; the kernel takes only e2m1 and e2m3, which are small integers",
            what, bsmm_elem_row(o->m.format.elem)->name);
    }
    if (o->m.format.block_cols % BSMM_INT8_MULTIPLY_UNIT != 0) {
        return bsmm_reason(why, size,
                           "%s has blocks of %u along K; the kernel takes multiples of %d", what,
                           o->m.format.block_cols, BSMM_INT8_MULTIPLY_UNIT);
    }
    return NULL;
}

/* Returns true if the integer sums of 32 elements of K do not fit 16 bits. A 16-bit lane adds two
 * of the four products of each group of 4 elements. */
bool bsmm_int8_is_wide(const bsmm_product *p) {
    int32_t a = bsmm_pack_table_of(p->a.m.format.elem)->largest;
    int32_t b = 2 * bsmm_pack_table_of(p->b.m.format.elem)->largest;
    return BSMM_INT8_EXPONENT_UNIT / 2 * a * b > INT16_MAX;
}

double bsmm_int8_bound(const bsmm_product *p, const void *state) {
    (void)state;
    return (double)(bsmm_ceil_div(p->a.m.cols, bsmm_int8_unit(p)) + 1) * 0x1p-24;
}

static bool is_usable(int32_t bits) {
    return ((uint32_t)bits & INT32_MAX) - smallest_scale <= largest_scale - smallest_scale;
}

/* This struct holds the parameters of one call that packs an operand. */
typedef struct job {
    const bsmm_operand *o;
    const bsmm_pack_isa *isa;
    const int8_t *integers;
    /* The integer sum of a unit of K does not begin at 0 but at a value that is packed with A. This
     * value makes up for the number that is added to B's integers when they are packed
     * (pack_int8dot.h). `begin` tells how to compute the value. If the operand is B, begin.factor
     * is 0, because such values are packed with A only. */
    bsmm_pack_begin begin;
    /* These flags say which layout packed A has (pack_int8dot.h). If `floated` is true, A is packed
     * for integer sums whose bits are those of an fp32 number, so that they need no conversion. If
     * `looked_up` is true, A is packed for products of scales that come from a table. If both are
     * false, A has the plain layout, called "summed". */
    bool floated, looked_up;
    /* `lower` is subtracted from the fp32 bits of a scale, which divides the scale by a power of
     * two. The division makes up for the packed integers, which are the elements times this power
     * of two. If the exponents of the scales of A and B are added, their sum contains the exponent
     * bias twice. For one of the two operands, `lower` therefore also contains the bias. */
    int32_t lower;
    int64_t unit;
} job;

/* This struct describes a range of K that is packed at a time, and has the buffers for its elements
 * and the offsets of its scales. */
typedef struct span {
    int64_t k, n, units;
    /* The index of a scale in the array of scales is the sum of two terms. The first term depends
     * only on the scale's column, and offsets[i] is the first term for scale i. The second term
     * depends on the row and is added later. */
    uint64_t offsets[BSMM_PACK_STEPS];
    bsmm_pack_buffer buffer;
} span;

/* This struct holds up to LANES rows of a panel over a span of K, i.e. up to BSMM_PACK_SPAN
 * elements. `rows` is the number of rows that exist. If it is 0, the tile is padding. */
typedef struct tile {
    int64_t row, rows;
    bsmm_pack_place at;
    uint8_t *wide;
} tile;

enum { LANES = BSMM_PACK_LANES };

/* Points to the scales of the rows of a tile. A lane without a row has the pointer of lane 0. */
typedef struct scale_rows {
    const uint8_t *row[LANES];
    /* `values` is the table of the values of scale codes. It is NULL if scales are fp32. */
    const float *values;
} scale_rows;

static scale_rows scales_of(const bsmm_operand *o, int64_t row, int64_t rows) {
    bool coded = o->m.format.scale != BSMM_SCALE_F32;
    scale_rows s = {.values = coded ? bsmm_pack_scales_of(o->m.format.scale) : NULL};
    for (int64_t i = 0; i < LANES; i++) {
        uint64_t offset = i < rows ? bsmm_pack_row_offset(o, row + i) : 0;
        s.row[i] = i < rows ? (const uint8_t *)o->m.scales + offset * (coded ? 1 : 4) : s.row[0];
    }
    return s;
}

static inline int32_t bits_at(const scale_rows *s, int64_t lane, uint64_t offset, bool coded) {
    int32_t bits;
    if (coded)
        memcpy(&bits, &s->values[s->row[lane][offset]], sizeof bits);
    else
        memcpy(&bits, s->row[lane] + 4 * offset, sizeof bits);
    return bits;
}

static inline void store_words(const tile *t, const void *words, uint8_t *to) {
    if (t->at.lanes == LANES)
        /* A constant size lets compilers copy by instructions instead of calling memcpy. */
        memcpy(to, words, LANES * 4);
    else
        memcpy(to, words, (size_t)t->at.lanes * 4);
}

static void store_offsets(const tile *t, const int32_t bits[LANES], uint8_t *to) {
    int32_t offsets[LANES];
    for (int64_t i = 0; i < LANES; i++)
        offsets[i] = bsmm_int8_product_offset(bits[i]);
    store_words(t, offsets, to);
}

/* Stores the scales of one unit (16 or 32 elements of K), one for each row of the tile. `bits`
 * holds their fp32 bits minus `lower`. What is stored depends on the layout of packed A
 * (pack_int8dot.h). The plain layout has only the scales. The floated layout has each scale, and
 * each scale times BSMM_INT8_FLOATED: the multiply function multiplies a sum by the first number
 * and then subtracts the second. The looked-up layout has neither. Instead of a scale it has the
 * offset of the scale's row in a table of products of two scales. */
static inline void store_unit(const job *j, const tile *t, const int32_t bits[LANES], uint8_t *to) {
    float taken[LANES];
    if (j->looked_up) {
        store_offsets(t, bits, to);
        return;
    }
    store_words(t, bits, to);
    if (!j->floated) return;
    memcpy(taken, bits, sizeof taken);
    for (int64_t i = 0; i < LANES; i++)
        taken[i] *= (float)BSMM_INT8_FLOATED;
    store_words(t, taken, to + t->at.pitch);
}

/* Packs the scales of one unit (16 or 32 elements of K), one for each row of the tile. Returns
 * false if one of them is not between 2^-50 and 2^50. */
static inline bool load_unit(const job *j, const tile *t, const scale_rows *from, uint64_t offset,
                             bool coded, uint8_t *to) {
    int32_t bits[LANES];
    bool usable = true;
    for (int64_t i = 0; i < LANES; i++)
        bits[i] = bits_at(from, i, offset, coded);
    for (int64_t i = 0; i < LANES; i++) {
        usable &= is_usable(bits[i]);
        /* The bits of -0 are the smallest integer, so the subtraction wraps around. That does no
         * harm, because -0 is no usable scale and the caller discards the result. */
        bits[i] = (int32_t)((uint32_t)bits[i] - (uint32_t)j->lower);
    }
    for (int64_t i = t->rows; i < LANES; i++)
        bits[i] = ONE - j->lower;
    store_unit(j, t, bits, to);
    return usable;
}

/* Returns the packed value of a scale that may be outside the range from 2^-50 to 2^50. A scale of
 * 0, which e4m3 has, is packed as 0. Any other scale outside the range is packed as 1, and the row
 * is marked as wide, so that its results are summed in double. There is one exception: if the scale
 * is finite and all elements under it are 0, the row is not marked, because the scale does not
 * matter. Many quantizers give blocks of zeros the scale 2^-127. */
static int32_t replaced(const job *j, const span *s, const tile *t, int64_t lane, int64_t unit,
                        int32_t bits) {
    if (is_usable(bits)) return (int32_t)((uint32_t)bits - (uint32_t)j->lower);
    bool zero = ((uint32_t)bits & INT32_MAX) == 0;
    bool finite = ((uint32_t)bits & INT32_MAX) < 255u * EXPONENT;
    int64_t first = s->k + unit * j->unit, end = bsmm_min_i64(first + j->unit, s->k + s->n);
    if (!finite || !(zero || bsmm_pack_is_empty(j->o, t->row + lane, first, end)))
        t->wide[lane] = 1;
    return zero ? 0 : ONE - j->lower;
}

/* Sets a row's integers and initial sum in one unit (16 or 32 elements of K) to 0, so that the unit
 * adds nothing to the row's results. `to` is the address of the unit's scales, which follow the
 * integers and the initial sums. */
static void clear_row(const tile *t, int64_t lane, uint8_t *to) {
    for (int64_t g = 0; g <= t->at.unit_groups; g++)
        memset(to - (g + 1) * t->at.pitch + 4 * lane, 0, 4);
}

/* In the looked-up layout, a scale of A selects a row in a table of products of two scales. The
 * table has no row for a scale of 0. If a row of A has such a scale in a unit (16 elements of K),
 * the function replaces the scale by 1 and sets the row's integers in that unit to 0 instead. The
 * result is the same. */
static void replace_zeros(const job *j, const tile *t, int32_t bits[LANES], uint8_t *to) {
    for (int64_t i = 0; i < t->rows; i++)
        if (bits[i] == 0) {
            clear_row(t, i, to);
            bits[i] = ONE - j->lower;
        }
}

static void replace_unit(const job *j, const span *s, const tile *t, const scale_rows *from,
                         int64_t unit, uint8_t *to) {
    int32_t bits[LANES];
    for (int64_t i = 0; i < LANES; i++)
        bits[i] = i < t->rows ? replaced(j, s, t, i, unit,
                                         bits_at(from, i, s->offsets[unit], from->values != NULL))
                              : ONE - j->lower;
    if (j->looked_up) replace_zeros(j, t, bits, to);
    store_unit(j, t, bits, to);
}

static void pack_ones(const job *j, const span *s, const tile *t, uint8_t *to) {
    int32_t bits[LANES];
    for (int64_t i = 0; i < LANES; i++)
        bits[i] = ONE - j->lower;
    for (int64_t i = 0; i < s->units; i++, to += t->at.unit_bytes)
        store_unit(j, t, bits, to);
}

/* Packs the e8m0 scales of several units (ranges of 32 elements of K) at once, beginning with the
 * first unit. Returns the number of units whose scales are packed. */
static int64_t pack_exponents(const job *j, const span *s, const tile *t, const scale_rows *from,
                              uint8_t *to) {
    bool coded = j->o->m.format.scale == BSMM_SCALE_E8M0;
    if (!j->isa->exponents || !coded || t->at.lanes != LANES) return 0;
    bsmm_pack_exponents e = {.row = from->row,
                             .rows = t->rows,
                             .lower = j->lower,
                             .floated = j->floated ? BSMM_INT8_FLOATED : 0,
                             .unit_bytes = t->at.unit_bytes,
                             .pitch = t->at.pitch};
    int64_t done = 0;
    for (; done + BSMM_PACK_EXPONENTS <= s->units; done += BSMM_PACK_EXPONENTS) {
        e.offset = s->offsets[done];
        for (uint64_t i = 1; i < BSMM_PACK_EXPONENTS; i++)
            if (s->offsets[done + (int64_t)i] != e.offset + i) return done;
        if (!j->isa->exponents(&e, to + done * t->at.unit_bytes)) return done;
    }
    return done;
}

static void pack_scales(const job *j, const span *s, const tile *t) {
    uint8_t *to = t->at.to + (t->at.unit_groups + (j->begin.factor != 0)) * t->at.pitch;
    if (t->rows == 0 || j->o->m.format.scale == BSMM_SCALE_NONE) {
        pack_ones(j, s, t, to);
        return;
    }
    const scale_rows from = scales_of(j->o, t->row, t->rows);
    int64_t done = pack_exponents(j, s, t, &from, to);
    to += done * t->at.unit_bytes;
    for (int64_t i = done; i < s->units; i++, to += t->at.unit_bytes) {
        uint64_t offset = s->offsets[i];
        bool usable = from.values ? load_unit(j, t, &from, offset, true, to)
                                  : load_unit(j, t, &from, offset, false, to);
        if (!usable) replace_unit(j, s, t, &from, i, to);
    }
}

static void pack_tile(const job *j, span *s, const tile *t) {
    bsmm_pack_codes codes;
    bsmm_pack_read(j->isa, j->o, t->row, t->rows, s->k, s->n, &s->buffer, &codes);
    j->isa->integers(&codes, j->integers, &j->begin, &t->at);
    pack_scales(j, s, t);
}

static void open_span(const job *j, int64_t k, span *s) {
    s->k = k;
    s->n = bsmm_min_i64(bsmm_pack_columns_at_once(j->o), j->o->m.cols - k);
    s->units = bsmm_ceil_div(s->n, j->unit);
    if (j->o->m.format.scale != BSMM_SCALE_NONE)
        bsmm_pack_offsets(j->o, k, s->n, j->unit, s->offsets);
}

/* Packs one panel over a span, i.e. a range of K of up to BSMM_PACK_SPAN elements. The panel
 * consists of units of 16 or 32 elements of K; `units` is the address of the first unit of this
 * span. */
static void pack_span(const job *j, span *s, int64_t width, int64_t row, int64_t rows,
                      int64_t unit_bytes, uint8_t *units, uint8_t *wide) {
    tile t = {.at = {.groups = s->units * (j->unit / 4),
                     .unit_groups = j->unit / 4,
                     .unit_bytes = unit_bytes,
                     .pitch = 4 * width}};
    for (int64_t lane = 0; lane < width; lane += BSMM_PACK_LANES) {
        t.row = row + lane;
        t.at.to = units + 4 * lane;
        t.at.lanes = bsmm_min_i64(BSMM_PACK_LANES, width - lane);
        t.rows = rows < lane ? 0 : bsmm_min_i64(t.at.lanes, rows - lane);
        t.wide = wide + lane;
        pack_tile(j, s, &t);
    }
}

/* Sets the padding at the end of each packed unit (a range of K) to zero. A caller may write packed
 * B to a file, whose bytes must not depend on the memory's old contents. */
static void clear_padding(uint8_t *units, int64_t count, int64_t used, int64_t unit_bytes) {
    for (int64_t u = 0; u < count && used < unit_bytes; u++)
        memset(units + u * unit_bytes + used, 0, (size_t)(unit_bytes - used));
}

static job job_of(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_int8_form form,
                  int64_t unit) {
    bool is_b = form == BSMM_INT8_B;
    bool adds = form == BSMM_INT8_A && bsmm_int8_by_exponent(p);
    const bsmm_operand *o = is_b ? &p->b : &p->a;
    const bsmm_pack_table *t = bsmm_pack_table_of(o->m.format.elem);
    const float floated = BSMM_INT8_FLOATED;
    job j = {.o = o, .isa = isa, .integers = is_b ? t->b : t->a, .unit = unit};
    j.looked_up = form == BSMM_INT8_A_LOOKED_UP;
    j.floated = form == BSMM_INT8_A_FLOATED;
    j.begin.factor = is_b ? 0 : bsmm_pack_table_of(p->b.m.format.elem)->largest;
    if (j.floated) memcpy(&j.begin.plus, &floated, sizeof floated);
    j.lower = t->log2_multiple * EXPONENT + (adds ? ONE : 0);
    return j;
}

void bsmm_int8_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_int8_form form,
                       int64_t width, int64_t unit, int64_t row, int64_t rows, bsmm_panel *to) {
    const job j = job_of(isa, p, form, unit);
    int64_t unit_bytes = BSMM_INT8_UNIT_BYTES(width, unit, form);
    int64_t units = bsmm_ceil_div(j.o->m.cols, unit);
    double global = bsmm_operand_global(j.o);
    for (int64_t i = 0; i < rows; i++) {
        to->factors[i] = global;
        if (!isfinite(global)) to->wide[i] = 1;
    }
    span s;
    s.buffer.n = 0;
    for (int64_t k = 0; k < j.o->m.cols; k += s.n) {
        open_span(&j, k, &s);
        uint8_t *at = to->units + k / unit * unit_bytes;
        for (int64_t i = 0; i < rows; i += width, at += units * unit_bytes)
            pack_span(&j, &s, width, row + i, bsmm_min_i64(width, rows - i), unit_bytes, at,
                      to->wide + i);
    }
    if (form == BSMM_INT8_B)
        clear_padding(to->units, bsmm_ceil_div(rows, width) * units, width * (unit + 4),
                      unit_bytes);
}

void bsmm_int8_pack(const bsmm_product *p, bsmm_int8_form form, int64_t width, int64_t unit,
                    int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_int8_pack_by(bsmm_pack_best(), p, form, width, unit, row, rows, to);
}
