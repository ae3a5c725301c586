/* Checks which products the CPU's loops of fp32 FMA accept, and chooses the power of two that is
 * divided out of each row before it is packed.
 *
 * The division makes a row's largest exponent TOP, so packed values are below 2^(TOP + 1). Sums of
 * 2^20 products, fp32 scales included, are then below 2^126.
 *
 * A row's `span` is the difference between the exponents of its largest and its smallest nonzero
 * value. If the spans of a row of A and a row of B add up to at most SPAN_LIMIT, no product of
 * their nonzero values is below 2^(2 * TOP - SPAN_LIMIT) = 2^-100 (2^-102 before fp32 scales are
 * applied). The error of a subnormal fp32 sum is then at most 2^-24 of such a product, even if the
 * processor replaces the sum by zero, so it is within the bound. The results of all other pairs of
 * rows are summed in double (wide pairs, engine_gemm.h). Together with weights of 8 bits, a row of
 * 32-bit activations may contain values as small as 2^-150 of its largest one. */
#include "cpu/pack/pack_f32fma_source.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { TOP = 51, STEPS = BSMM_PACK_STEPS, SPAN = BSMM_PACK_SPAN };

/* All packed numbers other than 0 must be normal fp32 numbers, i.e. at least 2^-126 in magnitude.
 * The largest packed element of a row is about 2^TOP. The smallest one may be smaller than this by
 * a factor of at most 2^DEEPEST_ELEMENT. The largest packed scale of a row is about 1. The smallest
 * one may be smaller by a factor of at most 2^DEEPEST_SCALE. */
enum { DEEPEST_ELEMENT = TOP + 125, DEEPEST_SCALE = 126 };

bool bsmm_f32fma_by_segment(const bsmm_product *p) {
    return bsmm_pack_has_segments(&p->a) || bsmm_pack_has_segments(&p->b);
}

const char *bsmm_f32fma_refuse(const bsmm_operand *o, const char *what, char *why, size_t size) {
    const bsmm_format *f = &o->m.format;
    if (bsmm_pack_has_segments(o) && !bsmm_pack_has_whole_segments(o, BSMM_F32FMA_SEGMENT_UNIT)) {
        return bsmm_reason(
            why, size,
            "%s has f32 scales for blocks of %u along K; the kernel takes multiples of %d", what,
            f->block_cols, BSMM_F32FMA_SEGMENT_UNIT);
    }
    if (f->scale == BSMM_SCALE_E4M3 && f->elem == BSMM_ELEM_F32)
        return bsmm_reason(why, size,
                           "%s has f32 elements with e4m3 scales, whose product fp32 rounds", what);
    return NULL;
}

int64_t bsmm_f32fma_longest_chunk(const bsmm_product *p) {
    return bsmm_elem_is_narrow(p->b.m.format.elem) ? BSMM_F32FMA_CHUNK : BSMM_F32FMA_SHORT_CHUNK;
}

double bsmm_f32fma_bound(const bsmm_product *p, const void *state) {
    (void)state;
    int64_t k = p->a.m.cols;
    double terms = bsmm_f32fma_by_segment(p)
                       ? BSMM_F32FMA_SEGMENT_UNIT + (double)k / BSMM_F32FMA_SEGMENT_UNIT
                       : bsmm_gemm_terms(bsmm_f32fma_longest_chunk(p), k);
    return 1.1 * (terms + 4) * 0x1p-24;
}

/* `exponents` holds the largest and smallest exponents of a set of nonzero finite values. `bottom`
 * is larger than `top` if the set is empty. */
typedef struct exponents {
    int top, bottom;
} exponents;

static const exponents nothing = {INT_MIN, INT_MAX};

static void include(exponents *all, exponents part) {
    if (part.top > all->top) all->top = part.top;
    if (part.bottom < all->bottom) all->bottom = part.bottom;
}

/* Returns the exponent of a positive fp32 value, given as its bits, which may be subnormal. */
static int exponent_of(uint32_t bits) {
    return bits >> 23 ? (int)(bits >> 23) - 127 : 31 - __builtin_clz(bits) - 149;
}

enum { INFINITE = 0x7f800000 }; /* INFINITE has the fp32 bits of Inf. Larger magnitudes are NaN. */

static int32_t largest_finite(const float *values, int64_t n) {
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t magnitude;
        memcpy(&magnitude, &values[i], sizeof magnitude);
        magnitude &= INT32_MAX;
        if (magnitude < INFINITE && magnitude > largest) largest = magnitude;
    }
    return largest;
}

static exponents exponents_of(const bsmm_pack_isa *isa, const float *values, int64_t n) {
    int32_t largest, smallest_less_1;
    isa->reach(values, n, &largest, &smallest_less_1);
    if (largest >= INFINITE) largest = largest_finite(values, n);
    if (largest == 0) return nothing;
    return (exponents){exponent_of((uint32_t)largest), exponent_of((uint32_t)smallest_less_1 + 1)};
}

double bsmm_f32fma_scale_at(const bsmm_operand *o, int64_t r, int64_t k) {
    const bsmm_format *f = &o->m.format;
    if (f->scale == BSMM_SCALE_NONE) return 1;
    return bsmm_scale_load(f->scale, o->m.scales,
                           bsmm_scale_map_at(&o->map, r / f->block_rows, k / f->block_cols));
}

const uint64_t *bsmm_f32fma_offsets(bsmm_f32fma_source *s, int64_t k) {
    int64_t first = k / SPAN * SPAN;
    if (!s->step) return NULL;
    if (s->offsets_of != first)
        bsmm_pack_offsets(s->o, first, bsmm_min_i64(SPAN, s->o->m.cols - first), s->step,
                          s->offsets);
    s->offsets_of = first;
    return s->offsets + (k - first) / s->step;
}

/* Stores in `to` the fp32 values of a row's scales for up to BSMM_PACK_SPAN columns from column k
 * on, and returns the number of scales. The offset of a scale is the sum of a part that depends on
 * its row, which is `row`, and a part that depends on its column. */
static int64_t load_scales(bsmm_f32fma_source *s, uint64_t row, int64_t k, float to[STEPS]) {
    const uint64_t *offsets = bsmm_f32fma_offsets(s, k);
    int64_t n = bsmm_ceil_div(bsmm_min_i64(SPAN, s->o->m.cols - k), s->step);
    if (s->o->m.format.scale == BSMM_SCALE_F32) {
        const float *scales = (const float *)s->o->m.scales + row;
        for (int64_t i = 0; i < n; i++)
            to[i] = scales[offsets[i]];
        return n;
    }
    const uint8_t *codes = (const uint8_t *)s->o->m.scales + row;
    const float *values = bsmm_pack_scales_of(s->o->m.format.scale);
    for (int64_t i = 0; i < n; i++)
        to[i] = values[codes[offsets[i]]];
    return n;
}

/* `reach` holds the ranges of exponents in one row. `elements` is the range of the packed elements;
 * if packing multiplies elements by their scales, it includes the scales. `scales` is the range of
 * the scales that are stored beside the elements. `bottom` is the exponent of the smallest nonzero
 * value of the row, i.e. of an element times its scale. */
typedef struct reach {
    exponents elements, scales;
    int bottom;
    bool infinite;
} reach;

static const reach of_nothing = {{INT_MIN, INT_MAX}, {INT_MIN, INT_MAX}, INT_MAX, false};

/* Extends *all, the range of a row's values, by some blocks. The blocks' elements have exponents in
 * the range `e`, and their scales have exponents in the range `scale`. Neither range may be empty.
 * If `folded` is true, packing multiplies the elements by their scales, so the exponents are added.
 * Otherwise the range of the scales is kept apart. */
static void include_blocks(reach *all, bool folded, exponents e, exponents scale) {
    const exponents one = {0, 0};
    exponents inside = folded ? scale : one;
    include(&all->elements, (exponents){e.top + inside.top, e.bottom + inside.bottom});
    include(&all->scales, folded ? one : scale);
    if (e.bottom + scale.bottom < all->bottom) all->bottom = e.bottom + scale.bottom;
}

static exponents format_of(const bsmm_f32fma_source *s) {
    const bsmm_elem_info *elem = bsmm_elem_row(s->o->m.format.elem);
    return (exponents){ilogb(elem->max), ilogb(elem->min_subnormal)};
}

/* Extends the row's range of values by the elements of row r in columns [k, k + n) and by their
 * scales. `values` holds the elements. If it is NULL, the elements may have any value of their
 * format. */
static void include_columns(const bsmm_f32fma_source *s, int64_t r, int64_t k, int64_t n,
                            const float *values, reach *all) {
    int64_t end = (k / s->block + 1) * s->block - k;
    for (int64_t i = 0; i < n; i = end, end += s->block) {
        double scale = bsmm_f32fma_scale_at(s->o, r, k + i);
        all->infinite |= isinf(scale) != 0;
        if (scale == 0 || !isfinite(scale)) continue;
        exponents e =
            values ? exponents_of(s->isa, values + i, bsmm_min_i64(n, end) - i) : format_of(s);
        int exponent = ilogb(scale);
        if (e.top >= e.bottom) include_blocks(all, s->folded, e, (exponents){exponent, exponent});
    }
}

/* Extends the range of a row's values by all scales of the row. If a scale is Inf, scaling a sum
 * gives Inf, whereas the sum of scaled terms of both signs is NaN. The row is therefore marked as
 * infinite, so that its results are summed term by term in double. */
static void include_scales(bsmm_f32fma_source *s, uint64_t row, reach *all) {
    float scales[STEPS];
    for (int64_t k = 0; k < s->o->m.cols; k += SPAN) {
        int64_t n = load_scales(s, row, k, scales);
        exponents e = exponents_of(s->isa, scales, n);
        if (e.top >= e.bottom) include_blocks(all, s->folded, format_of(s), e);
        for (int64_t i = 0; i < n && !s->folded; i++)
            all->infinite |= isinf(scales[i]) != 0;
    }
}

static void finish_row(const reach *all, bsmm_f32fma_row *row) {
    exponents elements = all->elements, scales = all->scales;
    row->element_factor = row->scale_factor = row->factor = 1;
    row->span = 0;
    if (elements.top >= elements.bottom) {
        int top = elements.top + scales.top;
        bool fits = elements.top - elements.bottom <= DEEPEST_ELEMENT &&
                    scales.top - scales.bottom <= DEEPEST_SCALE &&
                    top - all->bottom <= BSMM_F32FMA_SPAN_LIMIT;
        row->element_factor = bsmm_double_pow2(TOP - elements.top);
        row->scale_factor = bsmm_double_pow2(-scales.top);
        row->factor = bsmm_double_pow2(top - TOP);
        row->span = (uint8_t)(fits ? top - all->bottom : BSMM_F32FMA_TOO_WIDE);
    }
    if (all->infinite) row->span = BSMM_F32FMA_TOO_WIDE;
}

/* Chooses the factors for packing a row. The function looks only at the row's scales. It does not
 * read the elements, but assumes that each of them may have any value of its format. */
static void guess(bsmm_f32fma_source *s, int64_t r, bsmm_f32fma_row *row) {
    reach all = of_nothing;
    if (s->step)
        include_scales(s, row->scale_offset, &all);
    else
        include_columns(s, r, 0, s->o->m.cols, NULL, &all);
    finish_row(&all, row);
}

enum { LANES = BSMM_PACK_LANES, RUN = BSMM_PACK_RUN, WINDOW = BSMM_PACK_STRIP };

/* These are buffers for finding the largest and the smallest nonzero magnitude of each of up to
 * LANES rows. bsmm_pack_read reads WINDOW columns of all these rows to `codes` at a time. `values`
 * then holds the decoded values of one of the rows in these columns. */
typedef struct window {
    bsmm_pack_buffer buffer;
    bsmm_pack_codes codes;
    float values[WINDOW];
} window;

/* Adds columns [k, k + n) of rows r to r + rows - 1 (at most LANES rows) to the ranges of values in
 * `all`. Rows whose entry in `which` is false are skipped. */
static void measure_window(bsmm_f32fma_source *s, window *w, int64_t r, int64_t rows,
                           const bool *which, int64_t k, int64_t n, reach *all) {
    bsmm_pack_read(s->isa, s->o, r, rows, k, n, &w->buffer, &w->codes);
    for (int64_t lane = 0; lane < rows; lane++) {
        if (!which[lane]) continue;
        for (int64_t i = 0; i < n; i += RUN)
            s->isa->floats(&w->codes, s->table, lane, i, NULL, w->values + i);
        include_columns(s, r + lane, k, n, w->values, &all[lane]);
    }
}

static void measure(bsmm_f32fma_source *s, int64_t r, int64_t rows, const bool *which,
                    bsmm_f32fma_row *plans) {
    reach all[BSMM_F32FMA_MOST_ROWS];
    window w;
    w.buffer.n = 0;
    for (int64_t i = 0; i < rows; i++)
        all[i] = of_nothing;
    for (int64_t k = 0; k < s->o->m.cols; k += WINDOW)
        for (int64_t i = 0; i < rows; i += LANES)
            measure_window(s, &w, r + i, bsmm_min_i64(LANES, rows - i), which + i, k,
                           bsmm_min_i64(WINDOW, s->o->m.cols - k), all + i);
    for (int64_t i = 0; i < rows; i++)
        if (which[i]) finish_row(&all[i], &plans[i]);
}

/* Chooses the powers of two that are divided out of rows [r, r + rows). The choice depends on the
 * range of a row's values. The row's scales alone give a sufficient estimate of this range if they
 * are close together and the elements have fewer than 8 exponent bits. Otherwise the elements are
 * measured too. Without the measurement, the range of a row might seem too wide for fp32 sums,
 * because many quantizers give a block of zeros a tiny scale. The row's results would then be
 * summed slowly in double. */
void bsmm_f32fma_look_at(bsmm_f32fma_source *s, int64_t r, int64_t rows, bsmm_f32fma_row *plans) {
    bool wide = bsmm_elem_row(s->o->m.format.elem)->exponent_bits >= 8, any = false;
    bool which[BSMM_F32FMA_MOST_ROWS];
    for (int64_t i = 0; i < rows; i++) {
        plans[i].scale_offset = s->step ? bsmm_pack_row_offset(s->o, r + i) : 0;
        if (!wide) guess(s, r + i, &plans[i]);
        which[i] = wide || plans[i].span > BSMM_F32FMA_SPAN_LIMIT / 2;
        any |= which[i];
    }
    if (any) measure(s, r, rows, which, plans);
}
