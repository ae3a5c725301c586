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

typedef struct job {
    const bsmm_operand *o;
    const bsmm_pack_isa *isa;
    const int8_t *integers;
    int begin;     /* 0 for B */
    int32_t lower; /* what a scale's bits lose: the integers' multiple, and A's bias */
    int64_t unit;
    bsmm_pack_place at; /* of K = 0 */
    int64_t row, rows;  /* of the tile; rows may be 0 */
    uint8_t *wide;
} job;

/* A scale of 0, which e4m3 has, stays 0. A unit without elements takes 1, whatever its scale (an
 * empty block's is often 2^-127); a scale out of range takes 1 and makes the row wide. */
static void replace_unusable(const job *j, int64_t lane, int64_t k, int64_t n, int32_t *lowered) {
    for (int64_t i = 0; i * j->unit < n; i++) {
        int32_t bits = (int32_t)((uint32_t)lowered[i] + (uint32_t)j->lower);
        if (is_usable(bits)) continue;
        bool zero = ((uint32_t)bits & INT32_MAX) == 0;
        bool finite = ((uint32_t)bits & INT32_MAX) < 255u * EXPONENT;
        int64_t first = k + i * j->unit, end = bsmm_min_i64(first + j->unit, k + n);
        if (!finite || !(zero || bsmm_pack_is_empty(j->o, j->row + lane, first, end)))
            j->wide[lane] = 1;
        lowered[i] = zero ? 0 : ONE - j->lower;
    }
}

static void pack_scales(const job *j, int64_t k, int64_t n, const bsmm_pack_place *at) {
    int32_t bits[BSMM_PACK_LANES][BSMM_PACK_STEPS];
    uint64_t offsets[BSMM_PACK_STEPS];
    int64_t units = bsmm_ceil_div(n, j->unit);
    bool scaled = j->o->m.format.scale != BSMM_SCALE_NONE;
    if (scaled) bsmm_pack_offsets(j->o, k, n, j->unit, offsets);
    for (int64_t lane = 0; lane < at->lanes; lane++) {
        if (!scaled || lane >= j->rows)
            for (int64_t i = 0; i < units; i++)
                bits[lane][i] = ONE - j->lower;
        else if (!load_scales(j->o, j->row + lane, offsets, units, j->lower, bits[lane]))
            replace_unusable(j, lane, k, n, bits[lane]);
    }
    j->isa->words((const int32_t(*)[BSMM_PACK_STEPS])bits, units, at->lanes,
                  at->to + (at->unit_groups + (j->begin != 0)) * at->pitch, at->unit_bytes);
}

static void pack_tile(const job *j) {
    bsmm_pack_buffer buffer;
    bsmm_pack_codes codes;
    int64_t cols = j->o->m.cols;
    for (int64_t k = 0; k < cols; k += BSMM_PACK_SPAN) {
        int64_t n = bsmm_min_i64(BSMM_PACK_SPAN, cols - k);
        bsmm_pack_place at = j->at;
        at.to += k / j->unit * at.unit_bytes;
        at.groups = bsmm_ceil_div(n, j->unit) * at.unit_groups;
        bsmm_pack_read(j->o, j->row, j->rows, k, n, &buffer, &codes);
        j->isa->integers(&codes, j->integers, j->begin, &at);
        pack_scales(j, k, n, &at);
    }
}

/* What rounds a unit up to its size; B's may go to a file. */
static void clear_padding(uint8_t *units, int64_t count, int64_t used, int64_t unit_bytes) {
    for (int64_t u = 0; u < count && used < unit_bytes; u++)
        memset(units + u * unit_bytes + used, 0, (size_t)(unit_bytes - used));
}

/* From the words of a summed unit, with scales that are values, to a floated one's. */
static void float_sums(uint8_t *units, int64_t count, int64_t width, int64_t unit) {
    int64_t bytes = BSMM_INT8_UNIT_BYTES(width, unit, BSMM_INT8_A_FLOATED);
    const float floated = BSMM_INT8_FLOATED;
    int32_t bits;
    memcpy(&bits, &floated, sizeof bits);
    for (int64_t u = 0; u < count; u++) {
        int32_t *begin = (int32_t *)(void *)(units + u * bytes + width * unit);
        float *scale = (float *)(void *)(begin + width), *taken = scale + width;
        for (int64_t i = 0; i < width; i++) {
            begin[i] += bits;
            taken[i] = scale[i] * floated;
        }
    }
}

void bsmm_int8_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_int8_form form,
                       int64_t width, int64_t unit, int64_t row, int64_t rows, bsmm_panel *to) {
    bool is_b = form == BSMM_INT8_B, adds = form == BSMM_INT8_A && bsmm_int8_by_exponent(p);
    const bsmm_operand *o = is_b ? &p->b : &p->a;
    const bsmm_pack_table *t = bsmm_pack_table_of(o->m.format.elem);
    double global = bsmm_operand_global(o);
    job j = {.o = o, .isa = isa, .integers = is_b ? t->b : t->a, .unit = unit};
    j.begin = is_b ? 0 : bsmm_pack_table_of(p->b.m.format.elem)->largest;
    j.lower = t->log2_multiple * EXPONENT + (adds ? ONE : 0);
    j.at = (bsmm_pack_place){.unit_groups = unit / 4,
                             .unit_bytes = BSMM_INT8_UNIT_BYTES(width, unit, form),
                             .pitch = 4 * width};
    for (int64_t i = 0; i < rows; i++) {
        to->factors[i] = global;
        if (!isfinite(global)) to->wide[i] = 1;
    }
    for (int64_t lane = 0; lane < width; lane += BSMM_PACK_LANES) {
        j.at.to = to->units + 4 * lane;
        j.at.lanes = bsmm_min_i64(BSMM_PACK_LANES, width - lane);
        j.row = row + lane;
        j.rows = rows < lane ? 0 : bsmm_min_i64(j.at.lanes, rows - lane);
        j.wide = to->wide + lane;
        pack_tile(&j);
    }
    int64_t units = bsmm_ceil_div(o->m.cols, unit);
    if (is_b) clear_padding(to->units, units, (j.at.unit_groups + 1) * j.at.pitch, j.at.unit_bytes);
    if (form == BSMM_INT8_A_FLOATED) float_sums(to->units, units, width, unit);
}

void bsmm_int8_pack(const bsmm_product *p, bsmm_int8_form form, int64_t width, int64_t unit,
                    int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_int8_pack_by(bsmm_pack_best(), p, form, width, unit, row, rows, to);
}
