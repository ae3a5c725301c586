/* Packs operands for the f32seg engine, a multiply loop of the CPU kernels. Elements of any format
 * are converted to fp32 exactly. Their scales are stored separately. Flags mark those segments
 * (ranges of K without a change of scale) of a row for which fp32 sums could leave fp32's range. */
#include "cpu/engine/engine_f32seg.h"

#include <math.h>
#include <string.h>

static int64_t gcd(int64_t a, int64_t b) {
    return b ? gcd(b, a % b) : a;
}

int64_t bsmm_f32seg_segment(const bsmm_operand *a, const bsmm_operand *b) {
    /* block_cols of an operand without scales is 0, and gcd(x, 0) is x. */
    int64_t length = gcd(gcd(a->m.format.block_cols, b->m.format.block_cols), BSMM_F32SEG_SEGMENT);
    return length;
}

/* Returns true if a product with this element could underflow in fp32, or if a sum of 128 such
 * products could overflow. Such an element has a magnitude outside [2^-63, 2^60). Only f32 and bf16
 * have such elements. NaN and Inf do not count, because fp32 sums treat them as double sums do. */
static bool element_is_wide(float value) {
    float magnitude = fabsf(value);
    return (magnitude < 0x1p-63f && magnitude > 0) || (magnitude >= 0x1p60f && !isinf(magnitude));
}

static double scale_of(const bsmm_operand *o, int64_t r, int64_t k) {
    const bsmm_format *f = &o->m.format;
    double global = bsmm_operand_global(o);
    if (f->scale == BSMM_SCALE_NONE) return global;
    uint64_t offset = bsmm_scale_map_at(&o->map, r / f->block_rows, k / f->block_cols);
    return bsmm_scale_load(f->scale, o->m.scales, offset) * global;
}

/* This struct has what is needed to decode codes of one element format: a table of values for
 * formats of up to 8 bits. Wider codes are decoded one by one without a table. */
typedef struct decoder {
    uint32_t elem, bits;
    float table[256];
} decoder;

static void decoder_init(decoder *d, uint32_t elem) {
    *d = (decoder){.elem = elem, .bits = bsmm_elem_row(elem)->bits};
    if (d->bits > 8) return;
    for (uint32_t code = 0; code < 1u << d->bits; code++)
        d->table[code] = (float)bsmm_elem_decode(elem, code);
}

static float decode(const decoder *d, const void *data, uint64_t index) {
    uint32_t code = bsmm_elem_load(d->elem, data, index);
    return d->bits <= 8 ? d->table[code] : (float)bsmm_elem_decode(d->elem, code);
}

/* Packs the elements of one row as fp32 numbers to its lane of a panel. K is divided into segments
 * (ranges without a change of scale). If an element is so large or small that the fp32 sum of its
 * segment could leave fp32's range, the function marks this segment as wide. Results that need the
 * segment then sum it in double. */
static void pack_row(const bsmm_operand *o, const decoder *d, int64_t r, int64_t k0, int64_t k,
                     int64_t segment, int64_t panel, float *lane, uint8_t *wide, int64_t pitch) {
    uint8_t codes[BSMM_F32SEG_KC * 4];
    const void *data = o->m.data;
    uint64_t step = o->m.order == BSMM_ORDER_COL ? (uint64_t)o->m.ld : 1, index = 0;
    if (o->m.order == BSMM_ORDER_COMPACT) {
        bsmm_compact_read(o, r, k0, k, codes);
        data = codes;
    } else {
        index = bsmm_operand_index(o, r, k0);
    }
    for (int64_t i = 0; i < k; i++, index += step) {
        float value = decode(d, data, index);
        lane[i * panel] = value;
        if (d->bits > 8 && element_is_wide(value)) wide[i / segment * pitch] = 1;
    }
}

/* Packs the scales of a row, one for each segment (range of K without a change of scale). The
 * kernel multiplies the sum of a segment by the scale. If the scale is Inf, this may give Inf where
 * the correct result is NaN, because terms of both signs become Inf and -Inf. The segment is
 * therefore marked wide, so that it is summed in double with the scale applied to each term. */
static void pack_scales(const bsmm_operand *o, int64_t r, int64_t k0, int64_t k, int64_t segment,
                        double *scales, uint8_t *wide, int64_t pitch) {
    for (int64_t s = 0; s * segment < k; s++) {
        double scale = scale_of(o, r, k0 + s * segment);
        scales[s * pitch] = scale;
        wide[s * pitch] = (uint8_t)isinf(scale);
    }
}

void bsmm_f32seg_pack(const bsmm_operand *o, int64_t row, int64_t rows, int64_t padded,
                      int64_t panel, int64_t k0, int64_t k, int64_t segment,
                      bsmm_f32seg_block *to) {
    decoder d;
    decoder_init(&d, o->m.format.elem);
    int64_t segments = bsmm_ceil_div(k, segment);
    memset(to->elements, 0, sizeof(float) * (size_t)(padded * k));
    memset(to->wide, 0, (size_t)(padded * segments));
    for (int64_t i = 0; i < segments * padded; i++)
        to->scales[i] = 1;
    for (int64_t r = 0; r < rows; r++) {
        float *lane = to->elements + r / panel * panel * k + r % panel;
        pack_scales(o, row + r, k0, k, segment, to->scales + r, to->wide + r, padded);
        pack_row(o, &d, row + r, k0, k, segment, panel, lane, to->wide + r, padded);
    }
}
