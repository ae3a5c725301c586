/* The bf16 engines' packing; see bf16.h for the layout of a unit.
 *
 * vdpbf16ps flushes subnormals to zero, inputs and sums. Packed values are therefore multiples of
 * 2^-60 (a row that is not is wide): every product and every sum is a multiple of 2^-120, far from
 * fp32's subnormals, and at most K * 2^34 in magnitude. */
#include "cpu/bf16.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const int lowest_bit = -60; /* of anything packed */

/* ---- which products ---- */

static bool has_segments(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32;
}

bool bsmm_bf16_by_segment(const bsmm_product *p) {
    return has_segments(&p->a) || has_segments(&p->b);
}

static const char *refuse_blocks(const bsmm_operand *o, const char *what, char *why, size_t size) {
    int64_t multiple = has_segments(o) ? BSMM_BF16_SEGMENT_UNIT : 2;
    if (o->m.format.block_cols % multiple == 0) return NULL;
    snprintf(why, size, "%s has blocks of %u along K; with %s scales it takes multiples of %lld",
             what, o->m.format.block_cols, bsmm_scale_row_of(o->m.format.scale)->name,
             (long long)multiple);
    return why;
}

static const char *refuse_operand(const bsmm_operand *o, const char *what, char *why, size_t size) {
    uint32_t elem = o->m.format.elem;
    bool narrow = bsmm_elem_row(elem)->bits <= 8;
    if (!narrow && elem != BSMM_ELEM_BF16) {
        snprintf(why, size, "%s has %s elements, which bf16 does not hold exactly", what,
                 bsmm_elem_row(elem)->name);
        return why;
    }
    if (!narrow && o->m.format.scale != BSMM_SCALE_NONE) {
        snprintf(why, size, "%s has bf16 elements with scales", what);
        return why;
    }
    return refuse_blocks(o, what, why, size);
}

const char *bsmm_bf16_refuse(const bsmm_product *p, char *why, size_t size) {
    const char *reason = refuse_operand(&p->a, "A", why, size);
    if (!reason) reason = refuse_operand(&p->b, "B", why, size);
    if (reason) return reason;
    if (p->a.m.cols > 1 << 20) return "K is above 2^20: fp32 sums might leave their range";
    return NULL;
}

/* ---- elements ---- */

static uint16_t bf16_of(double value) {
    return (uint16_t)bsmm_elem_encode(BSMM_ELEM_BF16, value, false);
}

/* Code -> bf16, and how far a shift down may go before the smallest bit of any value falls below
 * lowest_bit. */
typedef struct elements {
    uint32_t elem, bits;
    int deepest; /* smallest exponent that values may be shifted by */
    uint16_t table[256];
} elements;

static elements elements_of(uint32_t elem) {
    elements t = {.elem = elem, .bits = bsmm_elem_row(elem)->bits};
    if (t.bits > 8) return t;
    for (uint32_t code = 0; code < 1u << t.bits; code++)
        t.table[code] = bf16_of(bsmm_elem_decode(elem, code));
    t.deepest = lowest_bit - ilogb(bsmm_elem_row(elem)->min_subnormal);
    return t;
}

/* bf16 times 2^shift; zeros, NaN and Inf stay. The result is normal: rows that are not wide keep
 * their shifts within `deepest`. */
static uint16_t shifted(uint16_t bf16, int shift) {
    uint32_t exponent = bf16 >> 7 & 0xff;
    if (exponent == 0 || exponent == 0xff) return bf16;
    return (uint16_t)(bf16 + shift * 128);
}

static uint32_t load(const bsmm_operand *o, int64_t r, int64_t k) {
    return bsmm_elem_load(o->m.format.elem, o->m.data, bsmm_operand_index(o, r, k));
}

/* A lane of a unit: element i goes to pairs[(i / 2 * width) * 2 + i % 2]. */
static void store(uint16_t *lane, int64_t width, int64_t i, uint16_t bf16) {
    lane[i / 2 * width * 2 + i % 2] = bf16;
}

static double scale_at(const bsmm_operand *o, int64_t r, int64_t k) {
    const bsmm_format *f = &o->m.format;
    return bsmm_scale_load(f->scale, o->m.scales,
                           bsmm_scale_map_at(&o->map, r / f->block_rows, k / f->block_cols));
}

/* ---- one row, by kind of scale ---- */

typedef struct row_job {
    const bsmm_operand *o;
    const elements *t;
    int64_t r, k;
    int64_t width, unit, unit_bytes;
    uint8_t *lane; /* of the first unit: element pairs of this row */
    double factor;
    bool wide;
} row_job;

static uint16_t *lane_at(const row_job *job, int64_t k) {
    return (uint16_t *)(void *)(job->lane + k / job->unit * job->unit_bytes);
}

/* Elements [k0, k1), inside one unit or many, shifted by one exponent or times one e4m3 scale. */
static void pack_run(const row_job *job, int64_t k0, int64_t k1, int shift) {
    for (int64_t k = k0; k < k1; k++)
        store(lane_at(job, k), job->width, k % job->unit,
              shifted(job->t->table[load(job->o, job->r, k)], shift));
}

static void pack_products(const row_job *job, int64_t k0, int64_t k1, double scale) {
    uint16_t products[256];
    for (uint32_t code = 0; code < 1u << job->t->bits; code++)
        products[code] = bf16_of(bsmm_elem_decode(job->t->elem, code) * scale);
    for (int64_t k = k0; k < k1; k++)
        store(lane_at(job, k), job->width, k % job->unit, products[load(job->o, job->r, k)]);
}

static bool is_empty(const row_job *job, int64_t k0, int64_t k1) {
    for (int64_t k = k0; k < k1; k++)
        if (job->t->table[load(job->o, job->r, k)] & 0x7fff) return false;
    return true;
}

/* The largest exponent of a block with elements; INT32_MIN if there is none. */
static int largest_exponent(const row_job *job) {
    int64_t block = job->o->m.format.block_cols;
    int largest = INT32_MIN;
    for (int64_t k = 0; k < job->k; k += block) {
        double scale = scale_at(job->o, job->r, k);
        if (isnan(scale) || ilogb(scale) <= largest) continue;
        if (!is_empty(job, k, bsmm_min_i64(job->k, k + block))) largest = ilogb(scale);
    }
    return largest;
}

static void pack_nan(const row_job *job, int64_t k0, int64_t k1) {
    for (int64_t k = k0; k < k1; k++)
        store(lane_at(job, k), job->width, k % job->unit, 0x7fc0);
}

static void pack_e8m0(row_job *job) {
    int64_t block = job->o->m.format.block_cols;
    int largest = largest_exponent(job);
    if (largest != INT32_MIN) job->factor *= ldexp(1, largest);
    for (int64_t k = 0; k < job->k; k += block) {
        int64_t end = bsmm_min_i64(job->k, k + block);
        double scale = scale_at(job->o, job->r, k);
        if (isnan(scale)) {
            pack_nan(job, k, end);
            continue;
        }
        int shift = largest == INT32_MIN ? 0 : ilogb(scale) - largest;
        bool empty = shift > 0 || shift < job->t->deepest ? is_empty(job, k, end) : false;
        if (shift < job->t->deepest && !empty) job->wide = true;
        pack_run(job, k, end, empty || job->wide ? 0 : shift);
    }
}

/* e4m3 scales span 2^-9 to 448: no exponent needs to leave the row. */
static void pack_e4m3(row_job *job) {
    int64_t block = job->o->m.format.block_cols;
    for (int64_t k = 0; k < job->k; k += block)
        pack_products(job, k, bsmm_min_i64(job->k, k + block), scale_at(job->o, job->r, k));
}

static void pack_unscaled(row_job *job) {
    pack_run(job, 0, job->k, 0);
}

static int bf16_exponent(uint16_t bf16) {
    return ilogb(bsmm_elem_decode(BSMM_ELEM_BF16, bf16 & 0x7fff));
}

/* bf16 elements have their own exponents: the row's largest one leaves it. */
static void pack_bf16(row_job *job) {
    int largest = INT32_MIN;
    for (int64_t k = 0; k < job->k; k++) {
        uint16_t code = (uint16_t)load(job->o, job->r, k);
        if ((code & 0x7fff) && (code & 0x7f80) != 0x7f80 && bf16_exponent(code) > largest)
            largest = bf16_exponent(code);
    }
    if (largest != INT32_MIN) job->factor *= ldexp(1, largest);
    for (int64_t k = 0; k < job->k; k++) {
        uint16_t code = (uint16_t)load(job->o, job->r, k);
        bool finite = (code & 0x7fff) && (code & 0x7f80) != 0x7f80;
        if (finite && bf16_exponent(code) - 7 - largest < lowest_bit) job->wide = true;
        if (finite && !job->wide)
            code = bf16_of(ldexp(bsmm_elem_decode(BSMM_ELEM_BF16, code), -largest));
        store(lane_at(job, k), job->width, k % job->unit, code);
    }
}

/* fp32 scales stay beside the elements, the row's largest power of two taken out. */
static void pack_segments(row_job *job, int64_t lane) {
    double largest = 0;
    for (int64_t k = 0; k < job->k; k += job->unit) {
        double magnitude = fabs(scale_at(job->o, job->r, k));
        if (isinf(magnitude)) job->wide = true;
        if (magnitude > largest && isfinite(magnitude)) largest = magnitude;
    }
    int exponent = largest > 0 ? ilogb(largest) : 0;
    job->factor *= ldexp(1, exponent);
    for (int64_t k = 0; k < job->k; k += job->unit) {
        double scale = ldexp(scale_at(job->o, job->r, k), -exponent);
        if (scale != 0 && fabs(scale) < ldexp(1, lowest_bit / 2)) job->wide = true;
        float *scales = (float *)(void *)(job->lane - lane * 4 + k / job->unit * job->unit_bytes +
                                          job->unit * job->width * 2);
        scales[lane] = (float)scale;
    }
    pack_run(job, 0, job->k, 0);
}

static void set_scales_to_one(uint8_t *units, int64_t count, int64_t width, int64_t unit_bytes) {
    for (int64_t u = 0; u < count; u++) {
        float *scales =
            (float *)(void *)(units + u * unit_bytes + BSMM_BF16_SEGMENT_UNIT * width * 2);
        for (int64_t i = 0; i < width; i++)
            scales[i] = 1;
    }
}

static void pack_row(row_job *job, int64_t lane) {
    switch (job->o->m.format.scale) {
    case BSMM_SCALE_E8M0:
        pack_e8m0(job);
        break;
    case BSMM_SCALE_E4M3:
        pack_e4m3(job);
        break;
    case BSMM_SCALE_F32:
        pack_segments(job, lane);
        break;
    default:
        job->t->bits > 8 ? pack_bf16(job) : pack_unscaled(job);
    }
}

void bsmm_bf16_pack(const bsmm_product *p, bool is_b, int64_t width, int64_t row, int64_t rows,
                    bsmm_panel *to) {
    const bsmm_operand *o = is_b ? &p->b : &p->a;
    bool segmented = bsmm_bf16_by_segment(p);
    int64_t unit = segmented ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT;
    int64_t unit_bytes = BSMM_BF16_UNIT_BYTES(width, unit), k = o->m.cols;
    int64_t units = bsmm_ceil_div(k, unit);
    elements t = elements_of(o->m.format.elem);
    double global = bsmm_operand_global(o);
    memset(to->units, 0, (size_t)(units * unit_bytes));
    if (segmented) set_scales_to_one(to->units, units, width, unit_bytes);
    for (int64_t lane = 0; lane < rows; lane++) {
        row_job job = {.o = o,
                       .t = &t,
                       .r = row + lane,
                       .k = k,
                       .width = width,
                       .unit = unit,
                       .unit_bytes = unit_bytes,
                       .lane = to->units + lane * 4,
                       .factor = global,
                       .wide = !isfinite(global)};
        pack_row(&job, lane);
        to->factors[lane] = job.factor;
        to->wide[lane] = job.wide;
    }
}
