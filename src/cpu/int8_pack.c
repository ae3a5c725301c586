/* The int8 engines' packing; see int8.h for the layout of a unit. */
#include "cpu/int8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* As fp32 bits. Scales from 2^-50 to 2^50 on either side: sums of K up to 2^20 stay within fp32. */
enum { EXPONENT = 1 << 23, ONE = 127 * EXPONENT };
static const uint32_t smallest_scale = (127 - 50) * EXPONENT, largest_scale = (127 + 50) * EXPONENT;

static bool is_integer(uint32_t elem) {
    return elem == BSMM_ELEM_E2M1 || elem == BSMM_ELEM_E2M3;
}

static bool is_power_of_two(uint32_t scale) {
    return scale == BSMM_SCALE_E8M0 || scale == BSMM_SCALE_NONE;
}

bool bsmm_int8_by_exponent(const bsmm_product *p) {
    return is_power_of_two(p->a.m.format.scale) && is_power_of_two(p->b.m.format.scale) &&
           p->a.m.format.block_cols % BSMM_INT8_EXPONENT_UNIT == 0 &&
           p->b.m.format.block_cols % BSMM_INT8_EXPONENT_UNIT == 0;
}

static const char *refuse_operand(const bsmm_operand *o, const char *what, char *why, size_t size) {
    if (!is_integer(o->m.format.elem)) {
        snprintf(why, size, "%s has %s elements; it takes e2m1 and e2m3, which are small integers",
                 what, bsmm_elem_row(o->m.format.elem)->name);
        return why;
    }
    if (o->m.format.block_cols % BSMM_INT8_MULTIPLY_UNIT != 0) {
        snprintf(why, size, "%s has blocks of %u along K; it takes multiples of %d", what,
                 o->m.format.block_cols, BSMM_INT8_MULTIPLY_UNIT);
        return why;
    }
    return NULL;
}

const char *bsmm_int8_refuse(const bsmm_product *p, char *why, size_t size) {
    const char *reason = refuse_operand(&p->a, "A", why, size);
    if (!reason) reason = refuse_operand(&p->b, "B", why, size);
    if (reason) return reason;
    if (p->a.m.cols > 1 << 20) return "K is above 2^20: fp32 sums might leave their range";
    return NULL;
}

double bsmm_int8_bound(const bsmm_product *p) {
    return (double)(bsmm_ceil_div(p->a.m.cols, bsmm_int8_unit(p)) + 1) * 0x1p-24;
}

/* ---- scales, as fp32 bits ---- */

static bool is_usable(int32_t bits) {
    return ((uint32_t)bits & INT32_MAX) - smallest_scale <= largest_scale - smallest_scale;
}

/* Bits minus `lower`; tells whether all are usable. */
static bool load_coded(const float *values, const uint8_t *codes, const uint64_t *offsets,
                       int64_t n, int32_t lower, int32_t *to) {
    bool usable = true;
    for (int64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &values[codes[offsets[i]]], 4);
        usable &= is_usable(bits);
        to[i] = (int32_t)((uint32_t)bits - (uint32_t)lower); /* -0 wraps, and is not usable */
    }
    return usable;
}

static bool load_words(const int32_t *words, const uint64_t *offsets, int64_t n, int32_t lower,
                       int32_t *to) {
    bool usable = true;
    for (int64_t i = 0; i < n; i++) {
        usable &= is_usable(words[offsets[i]]);
        to[i] = (int32_t)((uint32_t)words[offsets[i]] - (uint32_t)lower);
    }
    return usable;
}

static bool load_scales(const bsmm_operand *o, int64_t r, const uint64_t *offsets, int64_t n,
                        int32_t lower, int32_t *to) {
    uint64_t row = bsmm_pack_row_offset(o, r);
    if (o->m.format.scale == BSMM_SCALE_F32)
        return load_words((const int32_t *)o->m.scales + row, offsets, n, lower, to);
    return load_coded(bsmm_pack_scales_of(o->m.format.scale), (const uint8_t *)o->m.scales + row,
                      offsets, n, lower, to);
}

/* ---- panels ---- */

/* What all tiles of a call have in common. */
typedef struct job {
    const bsmm_operand *o;
    const bsmm_pack_isa *isa;
    const int8_t *integers;
    bsmm_pack_begin begin; /* factor 0 for B */
    bool floated;
    int32_t lower; /* what a scale's bits lose: the integers' multiple, and A's bias */
    int64_t unit;
} job;

/* Part of K. */
typedef struct span {
    int64_t k, n, units;
    uint64_t offsets[BSMM_PACK_STEPS]; /* of the scales */
} span;

/* Up to LANES rows of a panel over a span; rows may be 0. */
typedef struct tile {
    int64_t row, rows;
    bsmm_pack_place at;
    uint8_t *wide;
} tile;

/* A scale of 0, which e4m3 has, stays 0. A unit without elements takes 1, whatever its scale (an
 * empty block's is often 2^-127); a scale out of range takes 1 and makes the row wide. */
static void replace_unusable(const job *j, const span *s, int64_t r, uint8_t *wide,
                             int32_t *lowered) {
    for (int64_t i = 0; i < s->units; i++) {
        int32_t bits = (int32_t)((uint32_t)lowered[i] + (uint32_t)j->lower);
        if (is_usable(bits)) continue;
        bool zero = ((uint32_t)bits & INT32_MAX) == 0;
        bool finite = ((uint32_t)bits & INT32_MAX) < 255u * EXPONENT;
        int64_t first = s->k + i * j->unit, end = bsmm_min_i64(first + j->unit, s->k + s->n);
        if (!finite || !(zero || bsmm_pack_is_empty(j->o, r, first, end))) *wide = 1;
        lowered[i] = zero ? 0 : ONE - j->lower;
    }
}

/* What the second FMA of a floated sum takes off it. */
static void take_floated(const int32_t *scales, int64_t n, int32_t *to) {
    for (int64_t i = 0; i < n; i++) {
        float scale;
        memcpy(&scale, &scales[i], sizeof scale);
        scale *= (float)BSMM_INT8_FLOATED;
        memcpy(&to[i], &scale, sizeof scale);
    }
}

typedef int32_t scale_rows[BSMM_PACK_LANES][BSMM_PACK_STEPS];

static void store_scales(const job *j, const span *s, const tile *t, const scale_rows bits) {
    const bsmm_pack_place *at = &t->at;
    uint8_t *to = at->to + (at->unit_groups + (j->begin.factor != 0)) * at->pitch;
    j->isa->words(bits, s->units, at->lanes, to, at->unit_bytes);
    if (!j->floated) return;
    scale_rows taken;
    for (int64_t lane = 0; lane < at->lanes; lane++)
        take_floated(bits[lane], s->units, taken[lane]);
    j->isa->words((const int32_t(*)[BSMM_PACK_STEPS])taken, s->units, at->lanes, to + at->pitch,
                  at->unit_bytes);
}

static void pack_scales(const job *j, const span *s, const tile *t) {
    scale_rows bits;
    bool scaled = j->o->m.format.scale != BSMM_SCALE_NONE;
    for (int64_t lane = 0; lane < t->at.lanes; lane++) {
        if (!scaled || lane >= t->rows)
            for (int64_t i = 0; i < s->units; i++)
                bits[lane][i] = ONE - j->lower;
        else if (!load_scales(j->o, t->row + lane, s->offsets, s->units, j->lower, bits[lane]))
            replace_unusable(j, s, t->row + lane, t->wide + lane, bits[lane]);
    }
    store_scales(j, s, t, (const int32_t(*)[BSMM_PACK_STEPS])bits);
}

static void pack_tile(const job *j, const span *s, const tile *t) {
    bsmm_pack_buffer buffer;
    bsmm_pack_codes codes;
    bsmm_pack_read(j->isa, j->o, t->row, t->rows, s->k, s->n, &buffer, &codes);
    j->isa->integers(&codes, j->integers, &j->begin, &t->at);
    pack_scales(j, s, t);
}

static void open_span(const job *j, int64_t k, span *s) {
    s->k = k;
    s->n = bsmm_min_i64(BSMM_PACK_SPAN, j->o->m.cols - k);
    s->units = bsmm_ceil_div(s->n, j->unit);
    if (j->o->m.format.scale != BSMM_SCALE_NONE)
        bsmm_pack_offsets(j->o, k, s->n, j->unit, s->offsets);
}

/* One panel over a span, from `units` on. */
static void pack_span(const job *j, const span *s, int64_t width, int64_t row, int64_t rows,
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

/* What rounds a unit up to its size; B's may go to a file. */
static void clear_padding(uint8_t *units, int64_t count, int64_t used, int64_t unit_bytes) {
    for (int64_t u = 0; u < count && used < unit_bytes; u++)
        memset(units + u * unit_bytes + used, 0, (size_t)(unit_bytes - used));
}

static job job_of(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_int8_form form,
                  int64_t unit) {
    bool is_b = form == BSMM_INT8_B, adds = form == BSMM_INT8_A && bsmm_int8_by_exponent(p);
    const bsmm_operand *o = is_b ? &p->b : &p->a;
    const bsmm_pack_table *t = bsmm_pack_table_of(o->m.format.elem);
    const float floated = BSMM_INT8_FLOATED;
    job j = {.o = o, .isa = isa, .integers = is_b ? t->b : t->a, .unit = unit};
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
    for (int64_t k = 0; k < j.o->m.cols; k += BSMM_PACK_SPAN) {
        span s;
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
