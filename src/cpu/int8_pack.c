/* The int8 engines' packing; see int8.h for the layout of a unit. */
#include "cpu/int8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_UNIT = 32 };

/* Scales from 2^-50 to 2^50 on either side: sums of K up to 2^20 stay within fp32. */
static const double smallest_scale = 0x1p-50, largest_scale = 0x1p50;

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

/* ---- elements ---- */

/* What a code is packed as. */
typedef struct integers {
    int32_t multiple; /* integer = element * multiple */
    int32_t largest;
    int8_t table[64]; /* code -> integer, for B with `largest` added */
} integers;

static integers integers_of(uint32_t elem, bool is_b) {
    integers t = {.multiple = elem == BSMM_ELEM_E2M1 ? 2 : 8};
    t.largest = (int32_t)(bsmm_elem_row(elem)->max * t.multiple);
    for (uint32_t code = 0; code < 1u << bsmm_elem_row(elem)->bits; code++)
        t.table[code] =
            (int8_t)(bsmm_elem_decode(elem, code) * t.multiple + (is_b ? t.largest : 0));
    return t;
}

/* Codes of row r, columns [k0, k0 + n), one per byte; beyond n code 0, which is the value 0. */
static void load_codes(const bsmm_operand *o, int64_t r, int64_t k0, int64_t n, int64_t unit,
                       uint8_t *codes) {
    uint32_t elem = o->m.format.elem;
    uint64_t index = bsmm_operand_index(o, r, k0);
    memset(codes, 0, (size_t)unit);
    if (elem == BSMM_ELEM_E2M1 && o->m.order == BSMM_ORDER_ROW && n == unit) {
        const uint8_t *bytes = (const uint8_t *)o->m.data + index / 2;
        for (int64_t i = 0; i < unit / 2; i++) {
            codes[2 * i] = bytes[i] & 0xf;
            codes[2 * i + 1] = bytes[i] >> 4;
        }
        return;
    }
    uint64_t step = o->m.order == BSMM_ORDER_ROW ? 1 : (uint64_t)o->m.ld;
    for (int64_t i = 0; i < n; i++, index += step)
        codes[i] = (uint8_t)bsmm_elem_load(elem, o->m.data, index);
}

/* ---- scales ---- */

typedef struct scale_rule {
    bool by_exponent, is_b;
    double inverse; /* 1 / multiple: integers times it are elements */
} scale_rule;

static double load_scale(const bsmm_operand *o, int64_t r, int64_t k) {
    const bsmm_format *f = &o->m.format;
    if (f->scale == BSMM_SCALE_NONE) return 1;
    return bsmm_scale_load(f->scale, o->m.scales,
                           bsmm_scale_map_at(&o->map, r / f->block_rows, k / f->block_cols));
}

/* The four bytes of a scale. A unit without elements takes 1, whatever its scale (an empty block's
 * is often 2^-127); a scale out of range takes 1 and makes the row wide. */
static int32_t pack_scale(const scale_rule *rule, double scale, bool empty, uint8_t *wide) {
    double magnitude = fabs(scale);
    bool usable = magnitude >= smallest_scale && magnitude <= largest_scale;
    if (!usable && !(empty && isfinite(scale))) *wide = 1;
    float value = (float)((usable ? scale : 1) * rule->inverse);
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return rule->by_exponent && !rule->is_b ? bits - (127 << 23) : bits;
}

/* ---- panels ---- */

typedef struct place {
    uint8_t *groups;
    int32_t *begin; /* NULL for B */
    int32_t *scales;
} place;

static place place_unit(uint8_t *unit, int64_t width, int64_t k, bool is_b) {
    place at = {.groups = unit};
    int32_t *after = (int32_t *)(void *)(unit + width * k);
    at.begin = is_b ? NULL : after;
    at.scales = is_b ? after : after + width;
    return at;
}

/* One row's elements into its lane; tells whether all are zero. */
static bool pack_lane(const uint8_t *codes, const integers *t, int32_t other_largest, int64_t unit,
                      int64_t width, int64_t lane, const place *at) {
    int8_t bytes[LARGEST_UNIT];
    int32_t sum = 0;
    uint8_t seen = 0;
    uint8_t magnitude_mask = (uint8_t)(t->multiple == 2 ? 0x7 : 0x1f);
    for (int64_t i = 0; i < unit; i++) {
        bytes[i] = t->table[codes[i]];
        seen |= codes[i];
        sum += bytes[i];
    }
    for (int64_t g = 0; g < unit / 4; g++)
        memcpy(at->groups + (g * width + lane) * 4, bytes + g * 4, 4);
    if (at->begin) at->begin[lane] = -other_largest * sum;
    return !(seen & magnitude_mask);
}

void bsmm_int8_pack(const bsmm_product *p, bool is_b, int64_t width, int64_t unit, int64_t row,
                    int64_t rows, bsmm_panel *to) {
    const bsmm_operand *o = is_b ? &p->b : &p->a;
    integers t = integers_of(o->m.format.elem, is_b);
    int32_t other = is_b ? 0 : integers_of(p->b.m.format.elem, false).largest;
    scale_rule rule = {bsmm_int8_by_exponent(p), is_b, 1.0 / t.multiple};
    int64_t k = o->m.cols, unit_bytes = BSMM_INT8_UNIT_BYTES(width, unit, !is_b);
    double global = bsmm_operand_global(o);
    static const uint8_t no_codes[LARGEST_UNIT];
    for (int64_t lane = 0; lane < width; lane++) {
        bool there = lane < rows;
        if (there) to->factors[lane] = global;
        if (there && !isfinite(global)) to->wide[lane] = 1;
        for (int64_t k0 = 0; k0 < k; k0 += unit) {
            place at = place_unit(to->units + k0 / unit * unit_bytes, width, unit, is_b);
            uint8_t codes[LARGEST_UNIT];
            if (there) load_codes(o, row + lane, k0, bsmm_min_i64(unit, k - k0), unit, codes);
            bool empty = pack_lane(there ? codes : no_codes, &t, other, unit, width, lane, &at);
            double scale = there ? load_scale(o, row + lane, k0) : 1;
            at.scales[lane] = pack_scale(&rule, scale, empty, &to->wide[lane]);
        }
    }
}
