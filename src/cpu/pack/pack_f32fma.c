/* Packs operands for CPU kernels that multiply by fp32 FMA; pack_f32fma.h describes a packed unit.
 */
#include "cpu/pack/pack_f32fma_source.h"

#include <math.h>
#include <string.h>

enum {
    LANES = BSMM_PACK_LANES,
    RUN = BSMM_PACK_RUN,
    STEP = BSMM_PACK_STEP,
    /* Packing processes WINDOW columns of K for all rows of a tile, then the next WINDOW
     * columns. */
    WINDOW = BSMM_F32FMA_SEGMENT_UNIT,
};

/* This struct describes a tile of an operand: some rows and up to WINDOW columns of K. */
typedef struct tile {
    const bsmm_f32fma_row *rows;
    /* The tile holds rows `first` to first + count - 1 of the operand. `count` may be 0. */
    int64_t first, count;
    /* `lanes` is the number of rows that are stored in the panel, rows of padding included. */
    int64_t lanes;
    /* `k` is the first of the columns (elements along K) that are packed now, and `n` is the number
     * of these columns. */
    int64_t k, n;
    /* `offsets` tells where the scales of columns k to k + n - 1 are: for each scale, the part of
     * its index in the array of scales that depends on its column. */
    const uint64_t *offsets;
    bsmm_pack_codes codes;
    bsmm_pack_buffer buffer;
} tile;

/* Returns true if fp32 represents `factor` exactly, or if it is NaN. The packer may then multiply
 * by the factor in fp32 instead of in double: the result is the same as that of a multiplication in
 * double, rounded to fp32. If the processor treats subnormals as zero, a subnormal factor becomes 0
 * in fp32, and the function returns false. */
static bool is_narrow(double factor) {
    return isnan(factor) || (double)(float)factor == factor;
}

static double scale_beside(const bsmm_f32fma_source *s, const tile *t, int64_t lane) {
    const float *scales = (const float *)s->o->m.scales + t->rows[lane].scale_offset;
    return (double)scales[t->offsets[0]];
}

/* Returns the factor by which packing multiplies a block's elements. If packing multiplies elements
 * by their scales (s->folded), the factor is the block's scale. Otherwise the scale is fp32 and is
 * stored apart from the elements, and the factor is 1. There is one exception: if the scale is 0,
 * the factor is 0. The reason is that packing also multiplies each row by a power of two, and
 * blocks with the scale 0 do not count when it is chosen. Their elements could therefore become too
 * large for fp32 sums. */
static double folded_part(const bsmm_f32fma_source *s, double scale) {
    return s->folded || scale == 0 ? scale : 1;
}

/* Computes the factors by which packing multiplies the elements of a row: to[i] is the factor of
 * elements i * STEP to i * STEP + STEP - 1. A factor includes the scale of its elements if packing
 * applies scales. Returns false if fp32 cannot represent a factor exactly, or if STEP elements may
 * belong to several scale blocks. The elements then cannot be packed by these factors. */
static bool factors_of(const bsmm_f32fma_source *s, const tile *t, int64_t lane, float *to) {
    const bsmm_f32fma_row *row = &t->rows[lane];
    bool by_scale = s->folded && s->o->m.format.scale != BSMM_SCALE_NONE, narrow = true;
    if (by_scale && !s->step) return false;
    const float *values = by_scale ? bsmm_pack_scales_of(s->o->m.format.scale) : NULL;
    const uint8_t *codes = by_scale ? (const uint8_t *)s->o->m.scales + row->scale_offset : NULL;
    double whole = s->folded ? 1 : folded_part(s, scale_beside(s, t, lane));
    for (int64_t i = 0; i * STEP < t->n; i++) {
        double factor =
            row->element_factor * (by_scale ? (double)values[codes[t->offsets[i]]] : whole);
        to[i] = (float)factor;
        narrow &= is_narrow(factor);
    }
    return narrow;
}

static void multiply(float *values, int64_t n, double factor) {
    float narrow = (float)factor;
    if ((double)narrow == factor)
        for (int64_t i = 0; i < n; i++)
            values[i] *= narrow;
    else
        for (int64_t i = 0; i < n; i++)
            values[i] = (float)((double)values[i] * factor);
}

/* Multiplies the values of one row in columns [k, k + n) by the scales of their blocks and by the
 * row's factor. Each iteration multiplies the columns of one block. */
static void multiply_blocks(const bsmm_f32fma_source *s, const tile *t, int64_t lane, int64_t k,
                            int64_t n, float *values) {
    int64_t end = (k / s->block + 1) * s->block - k;
    for (int64_t i = 0; i < n; i = end, end += s->block) {
        double scale = folded_part(s, bsmm_f32fma_scale_at(s->o, t->first + lane, k + i));
        multiply(values + i, bsmm_min_i64(n, end) - i, t->rows[lane].element_factor * scale);
    }
}

/* Decodes RUN columns from column t->k + k on for all rows of a tile. The values of columns past
 * the end of K are zero. */
static void pack_run(const bsmm_f32fma_source *s, const tile *t, int64_t k,
                     float factors[LANES][WINDOW / STEP], const bool narrow[LANES],
                     float values[LANES][RUN]) {
    /* No column is left if the last packed unit, which has a fixed number of columns, extends past
     * the end of K. */
    int64_t n = t->n < k ? 0 : bsmm_min_i64(RUN, t->n - k);
    for (int64_t lane = 0; lane < t->count; lane++) {
        const float *by = narrow[lane] ? factors[lane] + k / STEP : NULL;
        s->isa->floats(&t->codes, s->table, lane, k, by, values[lane]);
        if (!narrow[lane]) multiply_blocks(s, t, lane, t->k + k, n, values[lane]);
        for (int64_t i = n; i < RUN; i++)
            values[lane][i] = 0;
    }
}

static void pack_tile(const bsmm_f32fma_source *s, tile *t, int64_t width, int64_t padded,
                      uint8_t *to) {
    float factors[LANES][WINDOW / STEP], values[LANES][RUN];
    bool narrow[LANES] = {false};
    memset(values[t->count], 0, sizeof values[0] * (size_t)(LANES - t->count));
    for (int64_t lane = 0; lane < t->count; lane++)
        narrow[lane] = factors_of(s, t, lane, factors[lane]);
    bsmm_pack_read(s->isa, s->o, t->first, t->count, t->k, t->n, &t->buffer, &t->codes);
    for (int64_t k = 0; k < padded; k += RUN) {
        pack_run(s, t, k, factors, narrow, values);
        s->isa->words((const int32_t(*)[RUN])values, bsmm_min_i64(RUN, padded - k), t->lanes,
                      to + k * 4 * width, 4 * width);
    }
}

/* Returns the product of an fp32 scale and the row's scale factor, as it is packed. The factor is
 * chosen so that fp32 holds this product for every block that has a finite nonzero element. If a
 * product lies outside fp32's range, all elements of its block are 0, Inf or NaN. The function then
 * limits the product to a finite nonzero value: with a product of Inf, elements of 0 would give
 * NaN, because 0 * Inf is NaN. */
static float divided_scale(double scale, double factor) {
    double divided = scale * factor, magnitude = fabs(divided);
    if (scale == 0 || !isfinite(scale)) return (float)scale;
    return (float)copysign(fmin(fmax(magnitude, 0x1p-126), 0x1p127), divided);
}

/* Stores the fp32 scales that follow the elements of a unit (128 elements of K). A scale is 1 if
 * its lane is past the operand's last row, or if the row's scales were multiplied into the
 * elements. */
static void pack_scales(const bsmm_f32fma_source *s, const tile *t, float *to) {
    for (int64_t lane = 0; lane < t->lanes; lane++) {
        bool there = lane < t->count && !s->folded;
        to[lane] = there ? divided_scale(scale_beside(s, t, lane), t->rows[lane].scale_factor) : 1;
    }
}

/* Packs columns t->k to t->k + t->n - 1 of an operand, for all rows of a panel. Packed columns form
 * units of 32 or 128. `padded` is t->n rounded up to whole units. Past the end of K, the packed
 * values are 0. */
static void pack_window(const bsmm_f32fma_source *s, tile *t, const bsmm_f32fma_row *rows,
                        int64_t first, int64_t count, int64_t width, int64_t padded, bool segmented,
                        uint8_t *to) {
    for (int64_t i = 0; i < width; i += LANES) {
        t->rows = rows + i;
        t->first = first + i;
        t->lanes = bsmm_min_i64(LANES, width - i);
        t->count = count < i ? 0 : bsmm_min_i64(t->lanes, count - i);
        pack_tile(s, t, width, padded, to + 4 * i);
        if (segmented) pack_scales(s, t, (float *)(void *)to + padded * width + i);
    }
}

static bool take_turns(const bsmm_operand *o) {
    return bsmm_pack_columns_at_once(o) < BSMM_PACK_SPAN;
}

/* Packs `count` rows from row `first` on into panels of `width` rows. The rows must fill whole
 * panels, or be the operand's last rows. */
static void pack_panels(bsmm_f32fma_source *s, bool segmented, int64_t width, int64_t first,
                        int64_t count, const bsmm_panel *to) {
    int64_t unit = segmented ? BSMM_F32FMA_SEGMENT_UNIT : BSMM_F32FMA_FOLDED_UNIT;
    int64_t unit_bytes = BSMM_F32FMA_UNIT_BYTES(width, unit), k = s->o->m.cols;
    int64_t used = 4 * width * (unit + (segmented ? 1 : 0));
    int64_t at_once = take_turns(s->o) ? BSMM_F32FMA_MOST_ROWS : LANES;
    double global = bsmm_operand_global(s->o);
    bsmm_f32fma_row rows[BSMM_F32FMA_MOST_ROWS];
    tile t;
    t.buffer.n = 0;
    for (int64_t i = 0; i < count; i += at_once)
        bsmm_f32fma_look_at(s, first + i, bsmm_min_i64(at_once, count - i), rows + i);
    for (int64_t i = 0; i < count; i++) {
        to->factors[i] = rows[i].factor * global;
        to->wide[i] = isfinite(global) ? rows[i].span : BSMM_F32FMA_TOO_WIDE;
    }
    for (t.k = 0; t.k < k; t.k += WINDOW) {
        /* A packed unit of 32 elements of K without separate scales is directly followed by the
         * next unit. The RUN columns that are packed at a time may therefore extend from one unit
         * to the next. */
        uint8_t *at = to->units + t.k / unit * unit_bytes;
        t.n = bsmm_min_i64(WINDOW, k - t.k);
        t.offsets = bsmm_f32fma_offsets(s, t.k);
        for (int64_t i = 0; i < count; i += width, at += bsmm_ceil_div(k, unit) * unit_bytes) {
            pack_window(s, &t, rows + i, first + i, bsmm_min_i64(width, count - i), width,
                        bsmm_round_up(t.n, unit), segmented, at);
            memset(at + used, 0, segmented ? (size_t)(unit_bytes - used) : 0);
        }
    }
}

static int64_t step_of(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    if (f->scale == BSMM_SCALE_NONE) return 0;
    if (f->scale == BSMM_SCALE_F32) return BSMM_F32FMA_SEGMENT_UNIT;
    return f->block_cols % STEP == 0 ? STEP : 0;
}

void bsmm_f32fma_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bool is_b, int64_t width,
                         int64_t first, int64_t count, bsmm_panel *to) {
    const bsmm_operand *o = is_b ? &p->b : &p->a;
    const bsmm_format *f = &o->m.format;
    bsmm_f32fma_source s = {.o = o, .isa = isa, .step = step_of(o), .offsets_of = -1};
    s.table = bsmm_pack_table_of(f->elem);
    s.folded = f->scale != BSMM_SCALE_F32;
    s.block = f->scale == BSMM_SCALE_NONE ? INT64_MAX / 2 : f->block_cols;
    bool segmented = bsmm_f32fma_by_segment(p);
    int64_t unit = segmented ? BSMM_F32FMA_SEGMENT_UNIT : BSMM_F32FMA_FOLDED_UNIT;
    int64_t bytes = bsmm_ceil_div(o->m.cols, unit) * BSMM_F32FMA_UNIT_BYTES(width, unit);
    int64_t most = take_turns(o) ? BSMM_F32FMA_MOST_ROWS / width * width : width;
    for (int64_t i = 0; i < count; i += most) {
        const bsmm_panel panels = {to->units + i / width * bytes, to->factors + i, to->wide + i};
        pack_panels(&s, segmented, width, first + i, bsmm_min_i64(most, count - i), &panels);
    }
}

void bsmm_f32fma_pack(const bsmm_product *p, bool is_b, int64_t width, int64_t first, int64_t count,
                      bsmm_panel *to) {
    bsmm_f32fma_pack_by(bsmm_pack_best(), p, is_b, width, first, count, to);
}

_Static_assert(BSMM_F32FMA_UNIT_BYTES(6, 32) == 6 * 32 * 4, "folded units have no padding");
_Static_assert(WINDOW % BSMM_F32FMA_FOLDED_UNIT == 0 && WINDOW % RUN == 0,
               "a window ends with a unit and a run");
_Static_assert((int)RUN == (int)BSMM_PACK_STEPS,
               "the function `words` transposes rows of BSMM_PACK_STEPS values");
