/* The f32 engines' packing; see fma.h for the layout of a unit.
 *
 * What fp32 carries. A row's largest power of two leaves it as its factor, so that what is packed
 * lies below 2^(TOP + 1): sums of 2^20 products stay below 2^126, fp32 scales included. A row's
 * `span` says how many binades its values cover, and so how deep its smallest lies below TOP; two
 * rows whose spans add up to at most SPAN_LIMIT have no product of nonzero values below
 * 2^(2 * TOP - SPAN_LIMIT) = 2^-100 (2^-102 before fp32 scales). Sums that fall among fp32's
 * subnormals are then off by 2^-24 of such a product at most, even where the processor flushes
 * them to zero: within the bound. Other pairs are wide. So 32-bit activations may hold values
 * 2^-150 of their largest, and subnormals, against rows of 8-bit weights. */
#include "cpu/f32_decode.h"
#include "cpu/fma.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RUN = BSMM_FMA_SEGMENT_UNIT, TOP = 51 };

/* Exponents below TOP at which packed elements, and packed scales below 1, are still normal. */
enum { DEEPEST_ELEMENT = TOP + 125, DEEPEST_SCALE = 126, TOO_WIDE = UINT8_MAX };

/* ---- which products ---- */

static bool has_segments(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32;
}

bool bsmm_fma_by_segment(const bsmm_product *p) {
    return has_segments(&p->a) || has_segments(&p->b);
}

static const char *refuse_operand(const bsmm_operand *o, const char *what, char *why, size_t size) {
    const bsmm_format *f = &o->m.format;
    if (has_segments(o) && f->block_cols % BSMM_FMA_SEGMENT_UNIT != 0) {
        snprintf(why, size, "%s has f32 scales of %u along K; it takes multiples of %d", what,
                 f->block_cols, BSMM_FMA_SEGMENT_UNIT);
        return why;
    }
    if (f->scale == BSMM_SCALE_E4M3 && f->elem == BSMM_ELEM_F32) {
        snprintf(why, size, "%s has f32 elements with e4m3 scales, whose product fp32 rounds",
                 what);
        return why;
    }
    return NULL;
}

const char *bsmm_fma_refuse(const bsmm_product *p, char *why, size_t size) {
    const char *reason = refuse_operand(&p->a, "A", why, size);
    if (!reason) reason = refuse_operand(&p->b, "B", why, size);
    if (reason) return reason;
    if (p->a.m.cols > 1 << 20) return "K is above 2^20: fp32 sums might leave their range";
    return NULL;
}

double bsmm_fma_bound(const bsmm_product *p) {
    double k = (double)p->a.m.cols;
    double terms = bsmm_fma_by_segment(p) ? BSMM_FMA_SEGMENT_UNIT + k / BSMM_FMA_SEGMENT_UNIT : k;
    return 1.1 * (terms + 4) * 0x1p-24;
}

/* ---- exponents ---- */

/* Of the nonzero finite values of something; bottom > top where there are none. */
typedef struct exponents {
    int top, bottom;
} exponents;

static const exponents nothing = {INT_MIN, INT_MAX};

static void include(exponents *all, int top, int bottom) {
    if (top > all->top) all->top = top;
    if (bottom < all->bottom) all->bottom = bottom;
}

/* Exponent of the fp32 with these bits, positive and not 0. */
static int exponent_of(uint32_t bits) {
    return bits >> 23 ? (int)(bits >> 23) - 127 : 31 - __builtin_clz(bits) - 149;
}

enum { INFINITE = 0x7f800000 }; /* magnitudes from here on are Inf and NaN */

static int32_t magnitude_of(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT32_MAX;
}

static int32_t largest_finite(const float *values, int64_t n) {
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t magnitude = magnitude_of(values[i]);
        if (magnitude < INFINITE && magnitude > largest) largest = magnitude;
    }
    return largest;
}

/* Magnitudes are compared as integers; 0 less 1 is the largest. */
static exponents exponents_of(const float *values, int64_t n) {
    int32_t largest = 0, smallest_less_1 = INT32_MAX;
    for (int64_t i = 0; i < n; i++) {
        int32_t magnitude = magnitude_of(values[i]), less_1 = (magnitude - 1) & INT32_MAX;
        largest = magnitude > largest ? magnitude : largest;
        smallest_less_1 = less_1 < smallest_less_1 ? less_1 : smallest_less_1;
    }
    if (largest >= INFINITE) largest = largest_finite(values, n);
    if (largest == 0) return nothing;
    return (exponents){exponent_of((uint32_t)largest), exponent_of((uint32_t)smallest_less_1 + 1)};
}

/* ---- rows ---- */

typedef struct source {
    const bsmm_operand *o;
    bsmm_f32_decoder decoder;
    bool is_wide;     /* elements have exponents of 8 bits */
    exponents format; /* those of the element format */
} source;

static source source_of(const bsmm_operand *o) {
    const bsmm_elem_info *elem = bsmm_elem_row(o->m.format.elem);
    source s = {.o = o, .format = {ilogb(elem->max), ilogb(elem->min_subnormal)}};
    s.is_wide = elem->exponent_bits >= 8;
    bsmm_f32_decoder_make(&s.decoder, o->m.format.elem);
    return s;
}

static double scale_at(const bsmm_operand *o, int64_t r, int64_t k) {
    const bsmm_format *f = &o->m.format;
    if (f->scale == BSMM_SCALE_NONE) return 1;
    return bsmm_scale_load(f->scale, o->m.scales,
                           bsmm_scale_map_at(&o->map, r / f->block_rows, k / f->block_cols));
}

/* Columns with one scale: a block, or the whole row. */
static int64_t block_of(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_NONE ? o->m.cols : o->m.format.block_cols;
}

static exponents measure_elements(const source *s, int64_t r, int64_t k, int64_t end) {
    exponents all = nothing;
    float values[RUN];
    for (; k < end; k += RUN) {
        int64_t n = bsmm_min_i64(RUN, end - k);
        bsmm_f32_decode(&s->decoder, s->o, r, k, n, values);
        exponents part = exponents_of(values, n);
        include(&all, part.top, part.bottom);
    }
    return all;
}

/* How a row is packed: elements (with scales that are folded in) and scales that are not, each
 * divided by its largest power of two. */
typedef struct plan {
    double element_factor, scale_factor;
    double factor; /* what the row's sums are multiplied by for it */
    uint8_t span;
} plan;

static plan plan_of(exponents elements, exponents scales, int bottom) {
    plan w = {1, 1, 1, 0};
    if (elements.top < elements.bottom) return w;
    int top = elements.top + scales.top;
    bool fits = elements.top - elements.bottom <= DEEPEST_ELEMENT &&
                scales.top - scales.bottom <= DEEPEST_SCALE && top - bottom <= BSMM_FMA_SPAN_LIMIT;
    w.element_factor = ldexp(1, TOP - elements.top);
    w.scale_factor = ldexp(1, -scales.top);
    w.factor = ldexp(1, top - TOP);
    w.span = (uint8_t)(fits ? top - bottom : TOO_WIDE);
    return w;
}

/* A scale of Inf makes terms of either sign infinite: only their sum one by one shows NaN. */
static plan plan_blocks(const source *s, int64_t r, bool measured) {
    exponents elements = nothing, scales = nothing;
    int bottom = INT_MAX;
    bool folded = !has_segments(s->o), infinite = false;
    int64_t k = s->o->m.cols, block = block_of(s->o);
    for (int64_t k0 = 0; k0 < k; k0 += block) {
        double scale = scale_at(s->o, r, k0);
        infinite |= isinf(scale) != 0;
        if (scale == 0 || !isfinite(scale)) continue;
        exponents e =
            measured ? measure_elements(s, r, k0, bsmm_min_i64(k, k0 + block)) : s->format;
        if (e.top < e.bottom) continue;
        int exponent = ilogb(scale), apart = folded ? 0 : exponent, inside = exponent - apart;
        include(&elements, e.top + inside, e.bottom + inside);
        include(&scales, apart, apart);
        if (e.bottom + exponent < bottom) bottom = e.bottom + exponent;
    }
    plan w = plan_of(elements, scales, bottom);
    if (infinite) w.span = TOO_WIDE;
    return w;
}

/* From the scales alone where they lie close together; many quantizers give empty blocks the
 * smallest scale there is, which must not count. */
static plan plan_row(const source *s, int64_t r) {
    if (s->is_wide) return plan_blocks(s, r, true);
    plan w = plan_blocks(s, r, false);
    return w.span <= BSMM_FMA_SPAN_LIMIT / 2 ? w : plan_blocks(s, r, true);
}

/* ---- panels ---- */

static void multiply(float *values, int64_t n, double factor) {
    float narrow = (float)factor;
    if ((double)narrow == factor && fabsf(narrow) >= 0x1p-126f)
        for (int64_t i = 0; i < n; i++)
            values[i] *= narrow;
    else
        for (int64_t i = 0; i < n; i++)
            values[i] = (float)((double)values[i] * factor);
}

/* Elements [k, k + n) of a row, n <= RUN, into its lane. */
static void pack_run(const source *s, const plan *w, int64_t r, int64_t k, int64_t n, int64_t width,
                     float *lane) {
    float values[RUN];
    int64_t block = block_of(s->o), end = (k / block + 1) * block - k;
    bool folded = !has_segments(s->o);
    bsmm_f32_decode(&s->decoder, s->o, r, k, n, values);
    for (int64_t i = 0; i < n; i = end, end += block)
        multiply(values + i, bsmm_min_i64(n, end) - i,
                 w->element_factor * (folded ? scale_at(s->o, r, k + i) : 1));
    for (int64_t i = 0; i < n; i++)
        lane[i * width] = values[i];
}

static void pack_scales(const source *s, const plan *plans, int64_t first, int64_t count, int64_t k,
                        int64_t width, float *to) {
    for (int64_t lane = 0; lane < width; lane++) {
        bool there = lane < count && has_segments(s->o);
        to[lane] = there ? (float)(scale_at(s->o, first + lane, k) * plans[lane].scale_factor) : 1;
    }
}

enum { WIDEST = 64 }; /* rows of a panel */

static void pack_panel(const source *s, bool segmented, int64_t width, int64_t first, int64_t count,
                       const bsmm_panel *to) {
    int64_t unit = segmented ? BSMM_FMA_SEGMENT_UNIT : BSMM_FMA_FOLDED_UNIT;
    int64_t unit_bytes = BSMM_FMA_UNIT_BYTES(width, unit), k = s->o->m.cols;
    double global = bsmm_operand_global(s->o);
    plan plans[WIDEST];
    for (int64_t lane = 0; lane < count; lane++) {
        plans[lane] = plan_row(s, first + lane);
        to->factors[lane] = plans[lane].factor * global;
        to->wide[lane] = isfinite(global) ? plans[lane].span : TOO_WIDE;
    }
    memset(to->units, 0, (size_t)(bsmm_ceil_div(k, unit) * unit_bytes));
    for (int64_t k0 = 0; k0 < k; k0 += RUN) {
        /* Folded units lie against each other, so that a run goes on from one into the next. */
        float *at = (float *)(void *)(to->units + k0 / unit * unit_bytes);
        int64_t n = bsmm_min_i64(RUN, k - k0);
        for (int64_t lane = 0; lane < count; lane++)
            pack_run(s, &plans[lane], first + lane, k0, n, width, at + lane);
        if (segmented) pack_scales(s, plans, first, count, k0, width, at + unit * width);
    }
}

void bsmm_fma_pack(const bsmm_product *p, bool is_b, int64_t width, int64_t first, int64_t count,
                   bsmm_panel *to) {
    const source s = source_of(is_b ? &p->b : &p->a);
    bool segmented = bsmm_fma_by_segment(p);
    int64_t unit = segmented ? BSMM_FMA_SEGMENT_UNIT : BSMM_FMA_FOLDED_UNIT;
    int64_t bytes = bsmm_ceil_div(s.o->m.cols, unit) * BSMM_FMA_UNIT_BYTES(width, unit);
    for (int64_t i = 0; i < count; i += width) {
        const bsmm_panel panel = {to->units + i / width * bytes, to->factors + i, to->wide + i};
        pack_panel(&s, segmented, width, first + i, bsmm_min_i64(width, count - i), &panel);
    }
}

_Static_assert(BSMM_FMA_UNIT_BYTES(6, 32) == 6 * 32 * 4, "folded units have no padding");
_Static_assert(RUN % BSMM_FMA_FOLDED_UNIT == 0, "runs end units");
