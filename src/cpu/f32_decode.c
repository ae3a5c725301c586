#include "cpu/f32_decode.h"

#include <string.h>

void bsmm_f32_decoder_make(bsmm_f32_decoder *d, uint32_t elem) {
    d->elem = elem;
    d->bits = bsmm_elem_row(elem)->bits;
    if (d->bits > 8) return;
    for (uint32_t code = 0; code < 256; code++)
        d->table[code] = (float)bsmm_elem_decode(elem, code); /* higher bits are ignored */
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Subnormals are integers times 2^-24; Inf and NaN take fp32's exponent and keep their mantissas.
 */
static float from_f16(uint32_t code) {
    uint32_t magnitude = code & 0x7fff, sign = (code & 0x8000) << 16;
    uint32_t subnormal = bits_of((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t rebias = magnitude < 0x7c00 ? 112u << 23 : 224u << 23;
    uint32_t normal = (magnitude << 13) + rebias;
    uint32_t choose = 0u - (magnitude < 0x400); /* not a branch: compilers then vectorize */
    return float_of((subnormal & choose) | (normal & ~choose) | sign);
}

static float from_bf16(uint32_t code) {
    return float_of(code << 16);
}

/* ---- contiguous runs: from element `index` on ---- */

static void f16_to_f32(const uint16_t *from, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = from_f16(from[i]);
}

static void bf16_to_f32(const uint16_t *from, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = from_bf16(from[i]);
}

static void bytes_to_f32(const float *table, const uint8_t *from, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = table[from[i]];
}

static void nibbles_to_f32(const float *table, const uint8_t *from, int64_t odd, int64_t n,
                           float *to) {
    int64_t i = 0;
    if (odd && n > 0) to[i++] = table[*from++ >> 4];
    for (; i + 1 < n; i += 2, from++) {
        to[i] = table[*from & 0xf];
        to[i + 1] = table[*from >> 4];
    }
    if (i < n) to[i] = table[*from & 0xf];
}

/* ---- anything, a step apart ---- */

static float widen(const bsmm_f32_decoder *d, uint32_t code) {
    if (d->bits <= 8) return d->table[code];
    if (d->elem == BSMM_ELEM_F16) return from_f16(code);
    return d->elem == BSMM_ELEM_BF16 ? from_bf16(code) : float_of(code);
}

static void steps_to_f32(const bsmm_f32_decoder *d, const void *from, uint64_t index, uint64_t step,
                         int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++, index += step)
        to[i] = widen(d, bsmm_elem_load(d->elem, from, index));
}

/* Whole groups of four in three bytes. */
static void sixes_to_f32(const float *table, const uint8_t *from, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i += 4, from += 3) {
        uint32_t word = from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
        for (int j = 0; j < 4; j++)
            to[i + j] = table[word >> 6 * j & 0x3f];
    }
}

static void any_sixes_to_f32(const bsmm_f32_decoder *d, const uint8_t *from, uint64_t index,
                             int64_t n, float *to) {
    int64_t head = bsmm_min_i64(n, (int64_t)(-index & 3)), whole = (n - head) / 4 * 4;
    steps_to_f32(d, from, index, 1, head, to);
    sixes_to_f32(d->table, from + (index + 3) / 4 * 3, whole, to + head);
    steps_to_f32(d, from, index + (uint64_t)(head + whole), 1, n - head - whole, to + head + whole);
}

void bsmm_f32_decode(const bsmm_f32_decoder *d, const bsmm_operand *o, int64_t r, int64_t k,
                     int64_t n, float *to) {
    const uint8_t *from = o->m.data;
    uint64_t index = bsmm_operand_index(o, r, k);
    if (o->m.order != BSMM_ORDER_ROW)
        steps_to_f32(d, from, index, (uint64_t)o->m.ld, n, to);
    else if (d->bits == 4)
        nibbles_to_f32(d->table, from + index / 2, (int64_t)(index & 1), n, to);
    else if (d->bits == 6)
        any_sixes_to_f32(d, from, index, n, to);
    else if (d->bits == 8)
        bytes_to_f32(d->table, from + index, n, to);
    else if (d->elem == BSMM_ELEM_F32)
        memcpy(to, from + index * 4, (size_t)n * 4);
    else if (d->elem == BSMM_ELEM_F16)
        f16_to_f32((const uint16_t *)(const void *)(from + index * 2), n, to);
    else
        bf16_to_f32((const uint16_t *)(const void *)(from + index * 2), n, to);
}
