/* The epilogue by rows: sums in fp32 leave the engine, everything after is in double, and one
 * rounding ends in D. Rows of fp32, f16 and bf16 that lie contiguous take loops that compilers
 * vectorize. */
#include "cpu/gemm.h"

#include <math.h>
#include <string.h>

void bsmm_finish_scale(const float *acc, double row_factor, const double *factors, int64_t cols,
                       double *values) {
    for (int64_t i = 0; i < cols; i++)
        values[i] = (double)acc[i] * (row_factor * factors[i]);
}

/* ---- C and bias ---- */

/* values[i] += factor * element index + i * step. */
static void add_elements(uint32_t elem, const void *from, uint64_t index, uint64_t step,
                         double factor, int64_t cols, double *values) {
    if (elem == BSMM_ELEM_F32 && step == 1) {
        const float *row = (const float *)from + index;
        for (int64_t i = 0; i < cols; i++)
            values[i] += factor * (double)row[i];
        return;
    }
    for (int64_t i = 0; i < cols; i++, index += step)
        values[i] += factor * bsmm_elem_decode(elem, bsmm_elem_load(elem, from, index));
}

static uint64_t step_along_row(const bsmm_operand *o) {
    return o->m.order == BSMM_ORDER_ROW ? 1 : (uint64_t)o->m.ld;
}

void bsmm_finish_add(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                     double *values) {
    if (p->alpha != 1)
        for (int64_t i = 0; i < cols; i++)
            values[i] *= p->alpha;
    if (p->has_c)
        add_elements(p->c.m.format.elem, p->c.m.data, bsmm_operand_index(&p->c, row, col),
                     step_along_row(&p->c), p->beta, cols, values);
    if (p->bias_elem) add_elements(p->bias_elem, p->bias, (uint64_t)col, 1, 1, cols, values);
    double global = p->recipe ? 1 : bsmm_operand_global(&p->d); /* a recipe applies it itself */
    if (global != 1)
        for (int64_t i = 0; i < cols; i++)
            values[i] /= global;
}

/* ---- the last rounding ---- */

static void store_f32(const double *values, int64_t cols, float *to) {
    for (int64_t i = 0; i < cols; i++)
        to[i] = (float)values[i];
}

/* The bits of a value as fp32, cut to 24 bits of which the last one tells whether anything was cut:
 * a second rounding then equals one from double. Not so below fp32's normal values. */
static uint32_t sticky_bits(double value) {
    static const uint64_t cut = 0x1fffffff;
    uint64_t bits;
    uint32_t single_bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits | ((bits & cut) + cut)) & ~cut;
    memcpy(&value, &bits, sizeof value);
    float single = (float)value;
    memcpy(&single_bits, &single, sizeof single_bits);
    return single_bits;
}

/* Without branches, so that compilers vectorize the loop. Adding 1/2 makes a subnormal's last place
 * that of the sum. */
static uint16_t f16_from(double value) {
    uint32_t bits = sticky_bits(value), magnitude = bits & 0x7fffffff, shifted_bits;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    float shifted;
    memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5f;
    memcpy(&shifted_bits, &shifted, sizeof shifted_bits);
    uint32_t code = magnitude < 113u << 23 ? shifted_bits - (126u << 23) : normal;
    code = magnitude >= 143u << 23 ? 0x7c00 : code;
    code = magnitude > 255u << 23 ? 0x7e00 : code;
    return (uint16_t)(code | (bits >> 16 & 0x8000));
}

static void store_f16(const double *values, int64_t cols, uint16_t *to) {
    for (int64_t i = 0; i < cols; i++)
        to[i] = f16_from(values[i]);
}

static uint16_t bf16_from(double value) {
    uint32_t bits = sticky_bits(value), code = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    code = (bits & 0x7fffffff) > 255u << 23 ? (bits >> 16 & 0x8000) | 0x7fc0 : code;
    return (uint16_t)code;
}

/* bf16 is subnormal where fp32 is: a row with such a value takes the codec. */
static bool has_subnormal(const double *values, int64_t cols) {
    int found = 0;
    for (int64_t i = 0; i < cols; i++)
        found |= (fabs(values[i]) < 0x1p-126) & (values[i] != 0);
    return found;
}

static void store_bf16(const double *values, int64_t cols, uint16_t *to) {
    if (has_subnormal(values, cols)) {
        for (int64_t i = 0; i < cols; i++)
            to[i] = (uint16_t)bsmm_elem_encode(BSMM_ELEM_BF16, values[i], false);
        return;
    }
    for (int64_t i = 0; i < cols; i++)
        to[i] = bf16_from(values[i]);
}

void bsmm_finish_store(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                       const double *values) {
    const bsmm_operand *d = &p->d;
    uint32_t elem = d->m.format.elem;
    uint64_t index = bsmm_operand_index(d, row, col), step = step_along_row(d);
    if (elem == BSMM_ELEM_F32 && step == 1) {
        store_f32(values, cols, (float *)d->m.data + index);
        return;
    }
    if (elem == BSMM_ELEM_F16 && step == 1) {
        store_f16(values, cols, (uint16_t *)d->m.data + index);
        return;
    }
    if (elem == BSMM_ELEM_BF16 && step == 1) {
        store_bf16(values, cols, (uint16_t *)d->m.data + index);
        return;
    }
    bool saturate = bsmm_elem_row(elem)->bits == 8;
    for (int64_t i = 0; i < cols; i++, index += step)
        bsmm_elem_store(elem, d->m.data, index, bsmm_elem_encode(elem, values[i], saturate));
}
