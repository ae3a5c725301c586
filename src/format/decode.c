/* Decodes an operand to doubles. A table lookup turns each code into the element's value, which is
 * then multiplied by the scale of its block and by the second-level scale (one scale for the whole
 * matrix). */
#include "format/format.h"

#include <math.h>
#include <string.h>

static void decode4(const uint8_t *from, const double *values, int64_t n, double *to) {
    for (int64_t i = 0; i + 1 < n; i += 2) {
        to[i] = values[from[i / 2] & 0xf];
        to[i + 1] = values[from[i / 2] >> 4];
    }
    if (n % 2) to[n - 1] = values[from[n / 2] & 0xf];
}

static void decode6(const uint8_t *from, const double *values, int64_t n, double *to) {
    for (int64_t i = 0; i + 3 < n; i += 4, from += 3) {
        uint32_t word = from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
        for (int j = 0; j < 4; j++)
            to[i + j] = values[word >> 6 * j & 0x3f];
    }
    for (int64_t i = 0; i < n % 4; i++)
        to[n / 4 * 4 + i] = values[bsmm_elem_load(BSMM_ELEM_E3M2, from, (uint64_t)i)];
}

static void decode8(const uint8_t *from, const double *values, int64_t n, double *to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = values[from[i]];
}

static double f32_value(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return isnan(value) ? (double)NAN : (double)value;
}

/* Converts the bits of an f16 to a double. The exponent and mantissa bits are shifted to their
 * positions in a double. The sign bit is added last by bit operations, because the processor cannot
 * predict a branch on the sign. */
static double f16_value(uint32_t code) {
    uint32_t magnitude = code & 0x7fff;
    if (magnitude >= 0x7c00) return bsmm_elem_decode(BSMM_ELEM_F16, code);
    double value = magnitude * 0x1p-24; /* A subnormal f16 is a multiple of 2^-24. */
    uint64_t bits = ((uint64_t)magnitude << 42) + ((uint64_t)(1023 - 15) << 52);
    if (magnitude < 0x400) memcpy(&bits, &value, sizeof bits);
    bits |= (uint64_t)(code & 0x8000) << 48;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double wide_value(uint32_t elem, const uint8_t *from) {
    uint32_t half = from[0] | (uint32_t)from[1] << 8;
    if (elem == BSMM_ELEM_BF16) return f32_value(half << 16);
    if (elem == BSMM_ELEM_F16) return f16_value(half);
    return f32_value(half | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24);
}

static void decode_wide(uint32_t elem, const uint8_t *from, int64_t step, int64_t n, double *to) {
    for (int64_t i = 0; i < n; i++, from += step)
        to[i] = wide_value(elem, from);
}

/* Describes codes in a packed array: those with the indices index, index + step, index + 2 * step
 * and so on. */
typedef struct source {
    uint32_t elem;
    const void *data;
    uint64_t index;
    int64_t step;
} source;

/* Decodes codes one at a time. It is the slow path for codes that are not adjacent. It also decodes
 * the first codes of a row if they do not begin at the start of a byte, as is possible with 4 and 6
 * bits. */
static void decode_each(const source *s, const double *values, int64_t n, double *to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = values[bsmm_elem_load(s->elem, s->data, s->index + (uint64_t)(i * s->step))];
}

static void decode_run(const source *s, uint64_t index, int64_t n, double *to) {
    uint32_t bits = bsmm_elem_row(s->elem)->bits;
    const uint8_t *from = (const uint8_t *)s->data + index * bits / 8;
    (bits == 4 ? decode4 : bits == 6 ? decode6 : decode8)(from, bsmm_elem_values(s->elem), n, to);
}

static void decode_source(const source *s, int64_t n, double *to) {
    const double *values = bsmm_elem_values(s->elem);
    if (!values) {
        int64_t bytes = bsmm_elem_row(s->elem)->bits / 8;
        const uint8_t *from = (const uint8_t *)s->data + s->index * (uint64_t)bytes;
        decode_wide(s->elem, from, s->step * bytes, n, to);
        return;
    }
    int64_t group = bsmm_elem_group(s->elem), within = (int64_t)(s->index % (uint64_t)group);
    int64_t head = s->step == 1 ? bsmm_min_i64(n, bsmm_round_up(within, group) - within) : n;
    decode_each(s, values, head, to);
    if (head < n) decode_run(s, s->index + (uint64_t)head, n - head, to + head);
}

/* RUN is the number of elements that are decoded to doubles and then scaled at a time. It is so
 * small that the doubles of RUN elements stay in L1 until they are scaled. */
enum { RUN = 512 };

/* Decodes elements of packed weights in compact order, in which pieces of 16 rows are interleaved.
 * The function first copies their codes to a buffer in row order. */
static void decode_compact(const bsmm_operand *o, int64_t r, int64_t c, int64_t n, double *to) {
    enum { LONGEST_PIECE = 8 };
    _Alignas(8) uint8_t codes[(RUN + LONGEST_PIECE) * 4];
    int64_t before = c % bsmm_compact_piece(o->m.format.elem);
    bsmm_compact_read(o, r, c - before, before + n, codes);
    const source s = {o->m.format.elem, codes, (uint64_t)before, 1};
    decode_source(&s, n, to);
}

static void decode_elements(const bsmm_operand *o, int64_t r, int64_t c, int64_t n, double *to) {
    const source s = {o->m.format.elem, o->m.data, bsmm_operand_index(o, r, c),
                      o->m.order == BSMM_ORDER_ROW ? 1 : o->m.ld};
    if (o->m.order == BSMM_ORDER_COMPACT)
        decode_compact(o, r, c, n, to);
    else
        decode_source(&s, n, to);
}

static double scale_value(const bsmm_operand *o, uint64_t at) {
    uint32_t scale = o->m.format.scale;
    if (scale == BSMM_SCALE_F32) return bsmm_scale_load(scale, o->m.scales, at);
    return bsmm_elem_values(bsmm_scale_row_of(scale)->elem)[((const uint8_t *)o->m.scales)[at]];
}

static void apply_scales(const bsmm_operand *o, int64_t r, int64_t c, int64_t n, double *to) {
    const bsmm_format *f = &o->m.format;
    int64_t row = r / f->block_rows, block = c / f->block_cols;
    for (int64_t i = 0, end; i < n; i = end, block++) {
        end = bsmm_min_i64(n, (block + 1) * f->block_cols - c);
        double scale = scale_value(o, bsmm_scale_map_at(&o->map, row, block));
        for (int64_t j = i; j < end; j++)
            to[j] *= scale;
    }
}

/* Applies the second-level scale, one scale for the whole matrix. If the scale is a divisor, the
 * function divides by it. A multiplication by its reciprocal would round twice instead of once. */
static void apply_global(const bsmm_matrix *m, int64_t n, double *to) {
    double global = (double)*m->global_scale;
    if (m->global_kind == BSMM_GLOBAL_DIVISOR)
        for (int64_t i = 0; i < n; i++)
            to[i] /= global;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] *= global;
}

void bsmm_operand_scale_row(const bsmm_operand *o, int64_t r, int64_t c, int64_t n, double *to) {
    if (o->m.format.scale != BSMM_SCALE_NONE) apply_scales(o, r, c, n, to);
    if (o->m.global_scale) apply_global(&o->m, n, to);
}

/* Decodes and then scales RUN elements at a time, so that the doubles are still in L1 when they are
 * scaled. */
void bsmm_operand_decode_row(const bsmm_operand *o, int64_t r, int64_t c0, int64_t n, double *to) {
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t count = bsmm_min_i64(RUN, n - i);
        decode_elements(o, r, c0 + i, count, to + i);
        bsmm_operand_scale_row(o, r, c0 + i, count, to + i);
    }
}
