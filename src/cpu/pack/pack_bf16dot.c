/* Packs operands for CPU kernels that multiply by bf16 dot products; pack_bf16dot.h describes a
 * packed unit.
 *
 * The instruction vdpbf16ps treats subnormal inputs and sums as zero. All packed values are
 * therefore multiples of 2^-60. Every product and every sum of products is then a multiple of
 * 2^-120, so it is 0 or far above fp32's subnormals. Its magnitude is at most K * 2^34. If a row
 * has values that cannot be packed in this way, the row is marked wide, and its results are summed
 * in double (engine_gemm.h). */
#include "cpu/pack/pack_bf16dot.h"

#include <math.h>
#include <string.h>

static const int lowest_bit = -60; /* All packed values are multiples of 2^lowest_bit. */

bool bsmm_bf16_by_segment(const bsmm_product *p) {
    return bsmm_pack_has_segments(&p->a) || bsmm_pack_has_segments(&p->b);
}

/* This array gives for each scale format the number of elements along K that the packer multiplies
 * by one scale at a time. The length of a scale block along K must therefore be a multiple of this
 * number. There is one exception: a block of fp32 scales may cover all of K, of any length. */
static const int64_t block_multiples[] = {
    [BSMM_SCALE_NONE] = 1,
    [BSMM_SCALE_E8M0] = BSMM_BF16_FOLDED_UNIT,
    [BSMM_SCALE_E4M3] = BSMM_PACK_STEP,
    [BSMM_SCALE_F32] = BSMM_BF16_SEGMENT_UNIT,
};

static const char *refuse_blocks(const bsmm_operand *o, const char *what, char *why, size_t size) {
    int64_t multiple = block_multiples[o->m.format.scale];
    if (o->m.format.block_cols % multiple == 0) return NULL;
    if (bsmm_pack_has_segments(o) && bsmm_pack_has_whole_segments(o, multiple)) return NULL;
    return bsmm_reason(
        why, size, "%s has blocks of %u along K; with %s scales the kernel takes multiples of %lld",
        what, o->m.format.block_cols, bsmm_scale_row_of(o->m.format.scale)->name,
        (long long)multiple);
}

const char *bsmm_bf16_refuse(const bsmm_operand *o, const char *what, char *why, size_t size) {
    uint32_t elem = o->m.format.elem;
    bool narrow = bsmm_elem_is_narrow(elem);
    if (!bsmm_elem_traits_of[elem].exact_in_bf16)
        return bsmm_reason(why, size, "%s has %s elements, which bf16 does not hold exactly", what,
                           bsmm_elem_row(elem)->name);
    if (!narrow && o->m.format.scale != BSMM_SCALE_NONE)
        return bsmm_reason(
            why, size,
            "%s has bf16 elements with scales; the kernel takes scales only with at most 8 bits",
            what);
    return refuse_blocks(o, what, why, size);
}

enum { LANES = BSMM_PACK_LANES, SPAN = BSMM_PACK_SPAN, STEPS = BSMM_PACK_STEPS };

/* NOTHING is the value for an exponent or a scale code that does not exist, for example in a row of
 * zeros. It is smaller than any exponent and any code. */
enum { NOTHING = -1000 };

/* Holds what the packer must know about a row of the operand before it packs the row's first
 * element. A pass over the whole row finds it. */
typedef struct lane {
    /* `top` is the exponent of the row's largest scale, or of its largest element if the operand is
     * bf16. The packer divides the row by this power of two. NOTHING means that the row has no such
     * exponent. */
    int top;
    /* In a bf16 operand, `bottom` is the exponent of the row's smallest nonzero element. */
    int bottom;
    bool wide;
} lane;

typedef struct tile {
    const bsmm_operand *o;
    const bsmm_pack_isa *isa;
    const bsmm_pack_table *t;
    int64_t row, rows; /* `row` is the first row. `rows` is the number of rows, which may be 0. */
    /* `at` is the position of the tile in its panel, i.e. the address of the tile's first column of
     * K. */
    bsmm_pack_place at;
    lane lanes[LANES];
    /* `factors` receives the factor that is divided out of each row, for the epilogue. */
    double *factors;
    uint8_t *wide;
} tile;

/* This struct describes a range of K of one tile of rows, and has the factors by which the elements
 * in this range are multiplied. */
typedef struct span {
    int64_t k, n;
    /* `offsets_of` is the value of k for which `offsets` was computed. It is -1 at first. */
    int64_t offsets_of;
    /* The index of a scale in the operand's array of scales is the sum of two numbers: one for the
     * scale's column and one for its row. `offsets` holds the numbers of the columns of this range
     * of K, so that they are computed once for all rows of the tile. */
    uint64_t offsets[STEPS];
    bsmm_pack_codes codes;
    bsmm_pack_buffer buffer;
    int16_t shifts[LANES][STEPS / 2];
    float factors[LANES][STEPS];
    /* `scales` holds the bits of fp32 scales. In the packed rows they follow each 128 elements. */
    int32_t scales[LANES][STEPS];
} span;

/* `treatment` holds the functions that pack rows of one element and scale format. */
typedef struct treatment {
    /* `survey` examines the scales or the elements of row i of a tile, for example to find the
     * largest scale, which decides how the row is packed. It is called for all rows of the tile
     * before the first row is packed. It is NULL if the format needs no such pass. */
    void (*survey)(tile *t, span *s, int64_t i);
    void (*scale)(tile *t, span *s, int64_t i); /* `scale` sets the factors of row i of the tile. */
    /* `by_codes` is true if `survey` reads the elements, not only the scales. */
    bool by_codes;
    bool by_shifts, by_factors;
} treatment;

static void raise_top(lane *l, int exponent) {
    if (exponent > l->top) l->top = exponent;
}

/* e8m0 scales are powers of two. Multiplying an element by such a scale adds the scale's exponent
 * to the element's exponent. */
enum { BLOCK = BSMM_BF16_FOLDED_UNIT, E8M0_BIAS = 127, E8M0_NAN = 255 };

static int64_t load_codes(const tile *t, const span *s, int64_t i, uint8_t *codes) {
    const uint8_t *row = (const uint8_t *)t->o->m.scales + bsmm_pack_row_offset(t->o, t->row + i);
    int64_t blocks = bsmm_ceil_div(s->n, BLOCK);
    for (int64_t b = 0; b < blocks; b++)
        codes[b] = row[s->offsets[b]];
    return blocks;
}

static bool is_empty(const tile *t, const span *s, int64_t i, int64_t block) {
    int64_t first = s->k + block * BLOCK;
    return bsmm_pack_is_empty(t->o, t->row + i, first, bsmm_min_i64(first + BLOCK, s->k + s->n));
}

/* Returns the largest of the codes that are below `limit`, or NOTHING. */
static int largest_below(const uint8_t *codes, int64_t blocks, int limit) {
    int largest = NOTHING;
    for (int64_t b = 0; b < blocks; b++)
        largest = codes[b] < limit && codes[b] > largest ? codes[b] : largest;
    return largest;
}

/* Finds the exponent that is divided out of a row: the largest exponent of its scales. It ignores
 * scales of blocks in which all elements are zero. */
static void survey_e8m0(tile *t, span *s, int64_t i) {
    uint8_t codes[STEPS / 2];
    int64_t blocks = load_codes(t, s, i, codes);
    int code = largest_below(codes, blocks, E8M0_NAN);
    for (; code - E8M0_BIAS > t->lanes[i].top; code = largest_below(codes, blocks, code))
        for (int64_t b = 0; b < blocks; b++)
            if (codes[b] == code && !is_empty(t, s, i, b)) {
                raise_top(&t->lanes[i], code - E8M0_BIAS);
                return;
            }
}

/* When row i of a tile is packed, a power of two is divided out of the row. Its elements are
 * multiplied by their block scales divided by this power, i.e. a number (shift) is added to their
 * exponents. Computes the shift of each block: the exponent of the block's scale minus the exponent
 * that is divided out. Only a block of zeros may have a scale larger than the power that is divided
 * out; its shift is 0. If a block's scale is so small that the shifted elements would not be
 * multiples of 2^lowest_bit, the row becomes wide, i.e. its results are summed in double. The row
 * does not become wide if all elements of the block are zero. */
static void scale_e8m0(tile *t, span *s, int64_t i) {
    uint8_t codes[STEPS / 2];
    int64_t blocks = load_codes(t, s, i, codes);
    lane *l = &t->lanes[i];
    int top = (l->top == NOTHING ? 0 : l->top) + E8M0_BIAS, deepest = lowest_bit - t->t->lowest_bit;
    int lowest = E8M0_NAN;
    for (int64_t b = 0; b < blocks; b++) {
        int code = codes[b], shift = code - top;
        int inside = shift >= deepest && shift <= 0 ? shift * 128 : 0;
        s->shifts[i][b] = (int16_t)(code == E8M0_NAN ? BSMM_PACK_NAN : inside);
        lowest = code < lowest ? code : lowest;
    }
    if (lowest - top >= deepest) return;
    for (int64_t b = 0; b < blocks && !l->wide; b++)
        l->wide = codes[b] - top < deepest && !is_empty(t, s, i, b);
}

/* Sets the factors by which packing multiplies the elements of row i. They are the row's e4m3
 * scales themselves. For other types of scales, the packer first divides a power of two out of the
 * row, so that sums stay in fp32's range. This is not necessary here, because e4m3 scales are only
 * from 2^-9 to 448. */
static void scale_e4m3(tile *t, span *s, int64_t i) {
    const uint8_t *codes = (const uint8_t *)t->o->m.scales + bsmm_pack_row_offset(t->o, t->row + i);
    const float *values = bsmm_pack_scales_of(BSMM_SCALE_E4M3);
    for (int64_t b = 0; b * BSMM_PACK_STEP < s->n; b++)
        s->factors[i][b] = values[codes[s->offsets[b]]];
}

static const float *f32_scales(const tile *t, int64_t i) {
    return (const float *)t->o->m.scales + bsmm_pack_row_offset(t->o, t->row + i);
}

static void survey_f32(tile *t, span *s, int64_t i) {
    const float *scales = f32_scales(t, i);
    float largest = 0;
    for (int64_t b = 0; b * BSMM_BF16_SEGMENT_UNIT < s->n; b++) {
        float magnitude = fabsf(scales[s->offsets[b]]);
        if (isinf(magnitude)) t->lanes[i].wide = true;
        if (magnitude > largest && isfinite(magnitude)) largest = magnitude;
    }
    if (largest > 0) raise_top(&t->lanes[i], ilogbf(largest));
}

static void scale_f32(tile *t, span *s, int64_t i) {
    const float *scales = f32_scales(t, i);
    lane *l = &t->lanes[i];
    double inverse = ldexp(1, l->top == NOTHING ? 0 : -l->top);
    double smallest = ldexp(1, lowest_bit / 2);
    for (int64_t b = 0; b * BSMM_BF16_SEGMENT_UNIT < s->n; b++) {
        double scale = (double)scales[s->offsets[b]] * inverse;
        float value = (float)scale;
        if (scale != 0 && fabs(scale) < smallest) l->wide = true;
        memcpy(&s->scales[i][b], &value, 4);
    }
}

static int exponent_of(int16_t magnitude) {
    return ilogb(bsmm_elem_decode(BSMM_ELEM_BF16, (uint32_t)magnitude));
}

static void survey_bf16(tile *t, span *s, int64_t i) {
    int16_t largest, smallest;
    lane *l = &t->lanes[i];
    t->isa->extent((const uint16_t *)(const void *)s->codes.row[i], s->n, &largest, &smallest);
    if (largest == 0) return;
    raise_top(l, exponent_of(largest));
    int bottom = exponent_of(smallest);
    if (bottom < l->bottom) l->bottom = bottom;
    if (l->bottom - 7 - l->top < lowest_bit) l->wide = true;
}

/* Divides a row's elements by 2^top, the power of two that is divided out of the row, and writes
 * them as new codes. For normal elements, a subtraction from the exponent bits would do. This
 * function is for rows with subnormal elements, whose exponent bits are 0. */
static void normalize(tile *t, span *s, int64_t i) {
    const uint16_t *from = (const uint16_t *)(const void *)s->codes.row[i];
    uint16_t *to = s->buffer.codes[i];
    for (int64_t k = 0; k < s->n; k++) {
        double value = bsmm_elem_decode(BSMM_ELEM_BF16, from[k]);
        bool moves = value != 0 && isfinite(value);
        to[k] = moves ? (uint16_t)bsmm_elem_encode(BSMM_ELEM_BF16, ldexp(value, -t->lanes[i].top),
                                                   false)
                      : from[k];
    }
    s->codes.row[i] = (const uint8_t *)to;
}

static void scale_bf16(tile *t, span *s, int64_t i) {
    static const int smallest_normal = -126;
    const lane *l = &t->lanes[i];
    bool moves = l->top != NOTHING && !l->wide;
    bool subnormal = moves && l->bottom < smallest_normal;
    int16_t shift = (int16_t)(moves && !subnormal ? -l->top * 128 : 0);
    if (subnormal) normalize(t, s, i);
    for (int64_t b = 0; b * BLOCK < s->n; b++)
        s->shifts[i][b] = shift;
}

static const treatment by_scale[] = {
    [BSMM_SCALE_NONE] = {.survey = NULL},
    [BSMM_SCALE_E8M0] = {.survey = survey_e8m0, .scale = scale_e8m0, .by_shifts = true},
    [BSMM_SCALE_E4M3] = {.scale = scale_e4m3, .by_factors = true},
    [BSMM_SCALE_F32] = {.survey = survey_f32, .scale = scale_f32},
};
static const treatment of_bf16 = {
    .survey = survey_bf16, .scale = scale_bf16, .by_codes = true, .by_shifts = true};

static const treatment *treatment_of(const bsmm_operand *o) {
    return o->m.format.elem == BSMM_ELEM_BF16 ? &of_bf16 : &by_scale[o->m.format.scale];
}

static void open_span(const tile *t, int64_t k, span *s) {
    const bsmm_operand *o = t->o;
    s->k = k;
    s->n = bsmm_min_i64(bsmm_pack_columns_at_once(o), o->m.cols - k);
    if (o->m.format.scale != BSMM_SCALE_NONE && s->offsets_of != k)
        bsmm_pack_offsets(o, k, s->n, block_multiples[o->m.format.scale], s->offsets);
    s->offsets_of = k;
}

static void read_codes(const tile *t, span *s) {
    bsmm_pack_read(t->isa, t->o, t->row, t->rows, s->k, s->n, &s->buffer, &s->codes);
}

/* Sets the factors and scales of lane number `first` and of all later lanes to 1. The function is
 * called for lanes past the operand's last row and for rows without scales. */
static void set_to_one(span *s, int64_t first, int64_t n) {
    for (int64_t i = first; i < LANES; i++)
        for (int64_t b = 0; b * BSMM_PACK_STEP < n; b++) {
            s->factors[i][b] = 1;
            s->scales[i][b] = 127 << 23; /* 127 << 23 are the bits of 1.0f. */
            s->shifts[i][b / 2] = 0;
        }
}

static void pack_span(tile *t, span *s, const treatment *how) {
    bsmm_pack_place at = t->at;
    bsmm_pack_scaling scaling = {how->by_shifts ? (const int16_t(*)[STEPS / 2]) s->shifts : NULL,
                                 how->by_factors ? (const float(*)[STEPS])s->factors : NULL};
    int64_t unit = at.unit_groups * 2, units = bsmm_ceil_div(s->n, unit);
    at.to += s->k / unit * at.unit_bytes;
    at.groups = units * at.unit_groups;
    set_to_one(s, t->rows, s->n);
    for (int64_t i = 0; i < t->rows && how->scale; i++)
        how->scale(t, s, i);
    t->isa->halves(&s->codes, t->t, &scaling, &at);
    if (unit == BSMM_BF16_SEGMENT_UNIT)
        t->isa->words((const int32_t(*)[STEPS])s->scales, units, at.lanes,
                      at.to + at.unit_groups * at.pitch, at.unit_bytes);
}

/* Packs several tiles of rows. The function goes through K in ranges, and handles a range of all
 * tiles before it goes on to the next range. If the format of the operand needs a survey (a pass
 * over each row that finds, for example, its largest scale), there are two passes over K: one calls
 * `survey`, and one packs. Both may read the codes. They are read only once if there is a single
 * tile and one range covers all of K. */
static void pack_tiles(tile *tiles, int64_t count, span *s) {
    const treatment *how = treatment_of(tiles->o);
    int64_t cols = tiles->o->m.cols;
    bool are_read = false;
    for (int64_t k = 0; k < cols && how->survey; k += s->n)
        for (int64_t j = 0; j < count; j++) {
            open_span(&tiles[j], k, s);
            if (how->by_codes) read_codes(&tiles[j], s);
            for (int64_t i = 0; i < tiles[j].rows; i++)
                how->survey(&tiles[j], s, i);
            are_read = how->by_codes && count == 1 && s->n == cols;
        }
    for (int64_t k = 0; k < cols; k += s->n)
        for (int64_t j = 0; j < count; j++) {
            open_span(&tiles[j], k, s);
            if (!are_read) read_codes(&tiles[j], s);
            pack_span(&tiles[j], s, how);
        }
}

/* After a tile's rows were packed, stores the factor that was divided out of each row. Also stores
 * which rows are wide, i.e. have results that must be summed in double (engine_gemm.h). */
static void finish_tile(const tile *t, double global) {
    for (int64_t i = 0; i < t->rows; i++) {
        int top = t->lanes[i].top;
        t->factors[i] = top == NOTHING ? global : global * bsmm_double_pow2(top);
        t->wide[i] = t->lanes[i].wide;
    }
}

/* AT_ONCE is the number of tiles that are packed together if the operand is column-major. */
enum { AT_ONCE = 16 };

static void pack_some(tile *tiles, int64_t count, span *s) {
    double global = bsmm_operand_global(tiles->o);
    for (int64_t j = 0; j < count; j++)
        for (int64_t i = 0; i < LANES; i++)
            tiles[j].lanes[i] = (lane){NOTHING, INT32_MAX, !isfinite(global)};
    pack_tiles(tiles, count, s);
    for (int64_t j = 0; j < count; j++)
        finish_tile(&tiles[j], global);
}

/* Returns a tile, i.e. up to 8 rows of a panel, beginning with row number `first` of the panel. The
 * panel's rows are `row` to row + rows - 1 of the operand. `like` gives the members that are the
 * same for all tiles of an operand. */
static tile tile_of(const tile *like, int64_t width, int64_t first, int64_t row, int64_t rows,
                    const bsmm_panel *to) {
    tile t = *like;
    t.row = row + first;
    t.at.to = to->units + 4 * first;
    t.at.lanes = bsmm_min_i64(LANES, width - first);
    t.rows = rows < first ? 0 : bsmm_min_i64(t.at.lanes, rows - first);
    t.factors = to->factors + first;
    t.wide = to->wide + first;
    return t;
}

void bsmm_bf16_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_bf16_form form,
                       int64_t width, int64_t row, int64_t rows, bsmm_panel *to) {
    int64_t unit = bsmm_bf16_by_segment(p) ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT;
    bool wide = form == BSMM_BF16_A_WIDE;
    tile t = {.o = form == BSMM_BF16_B ? &p->b : &p->a, .isa = isa}, tiles[AT_ONCE];
    if (t.o->m.format.elem != BSMM_ELEM_BF16) t.t = bsmm_pack_table_of(t.o->m.format.elem);
    t.at = (bsmm_pack_place){.unit_groups = unit / 2,
                             .unit_bytes = wide ? BSMM_BF16_WIDE_UNIT_BYTES(width, unit)
                                                : BSMM_BF16_UNIT_BYTES(width, unit),
                             .pitch = (wide ? 8 : 4) * width,
                             .widened = wide};
    int64_t panel_bytes = bsmm_ceil_div(t.o->m.cols, unit) * t.at.unit_bytes, count = 0;
    int64_t most = bsmm_pack_columns_at_once(t.o) < SPAN ? AT_ONCE : 1;
    span s;
    s.offsets_of = -1;
    s.buffer.n = 0;
    set_to_one(&s, 0, bsmm_min_i64(SPAN, t.o->m.cols));
    for (int64_t i = 0; i < rows; i += width)
        for (int64_t first = 0; first < width; first += LANES) {
            bsmm_panel panel = {to->units + i / width * panel_bytes, to->factors + i, to->wide + i};
            tiles[count++] =
                tile_of(&t, width, first, row + i, bsmm_min_i64(width, rows - i), &panel);
            bool is_last = i + width >= rows && first + LANES >= width;
            if (count < most && !is_last) continue;
            pack_some(tiles, count, &s);
            count = 0;
        }
}

void bsmm_bf16_pack(const bsmm_product *p, bsmm_bf16_form form, int64_t width, int64_t row,
                    int64_t rows, bsmm_panel *to) {
    bsmm_bf16_pack_by(bsmm_pack_best(), p, form, width, row, rows, to);
}

double bsmm_bf16_bound(const bsmm_product *p, const void *state) {
    (void)state;
    int64_t k = p->a.m.cols;
    double terms =
        bsmm_bf16_by_segment(p) ? 128 + (double)k / 128 : bsmm_gemm_terms(BSMM_BF16_CHUNK, k);
    return 1.1 * (terms + 4) * 0x1p-24;
}
