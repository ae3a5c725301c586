/* Stores consecutive codes into the memory of a matrix, and loads codes and values from it. */
#include "quantize/strip.h"

#include <string.h>

static void pack4(uint8_t *to, const uint16_t *codes, int64_t n) {
    for (int64_t i = 0; i + 1 < n; i += 2)
        to[i / 2] = (uint8_t)(codes[i] | codes[i + 1] << 4);
    if (n % 2) to[n / 2] = (uint8_t)codes[n - 1];
}

static void pack6(uint8_t *to, const uint16_t *codes, int64_t n) {
    for (int64_t i = 0; i < n; i += 4, to += 3) {
        uint32_t word = 0;
        for (int64_t j = 0; j < bsmm_min_i64(4, n - i); j++)
            word |= (uint32_t)codes[i + j] << 6 * j;
        for (int j = 0; j < 3; j++)
            to[j] = (uint8_t)(word >> 8 * j);
    }
}

static void pack8(uint8_t *to, const uint16_t *codes, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)codes[i];
}

static void pack16(uint8_t *to, const uint16_t *codes, int64_t n) {
    memcpy(to, codes, (size_t)n * sizeof *codes);
}

static void store_strided(const bsmm_operand *dst, int64_t r, int64_t c, int64_t n,
                          const uint16_t *codes) {
    uint32_t elem = dst->m.format.elem;
    int64_t padded = bsmm_round_up(dst->m.rows, bsmm_elem_group(elem));
    /* In a column of elements of 4 or 6 bits, 2 elements share one byte, or 4 elements share 3
     * bytes. If the column ends inside such a group of elements, the missing elements of the group
     * are padding and are set to 0. But dst may be one of several parts of a larger matrix. The
     * elements after dst's last row then belong to the next part, so they are not written. */
    int64_t pads = r + 1 == dst->m.rows && !dst->more_rows ? padded - dst->m.rows : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t index = bsmm_operand_index(dst, r, c + i);
        bsmm_elem_store(elem, dst->m.data, index, codes[i]);
        for (int64_t p = 1; p <= pads; p++)
            bsmm_elem_store(elem, dst->m.data, index + (uint64_t)p, 0);
    }
}

void bsmm_codes_store(const bsmm_operand *dst, int64_t r, int64_t c, int64_t n,
                      const uint16_t *codes) {
    if (dst->m.order == BSMM_ORDER_COL) {
        store_strided(dst, r, c, n, codes);
        return;
    }
    uint32_t bits = bsmm_elem_row(dst->m.format.elem)->bits;
    uint8_t *to = (uint8_t *)dst->m.data + bsmm_operand_index(dst, r, c) * bits / 8;
    (bits == 4 ? pack4 : bits == 6 ? pack6 : bits == 8 ? pack8 : pack16)(to, codes, n);
}

static void unpack4(const uint8_t *from, uint16_t *codes, int64_t n) {
    for (int64_t i = 0; i + 1 < n; i += 2) {
        codes[i] = from[i / 2] & 0xf;
        codes[i + 1] = from[i / 2] >> 4;
    }
    if (n % 2) codes[n - 1] = from[n / 2] & 0xf;
}

static void unpack6(const uint8_t *from, uint16_t *codes, int64_t n) {
    for (int64_t i = 0; i < n; i += 4, from += 3) {
        uint32_t word = from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
        for (int64_t j = 0; j < bsmm_min_i64(4, n - i); j++)
            codes[i + j] = (uint16_t)(word >> 6 * j & 0x3f);
    }
}

static void unpack8(const uint8_t *from, uint16_t *codes, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        codes[i] = from[i];
}

static void unpack16(const uint8_t *from, uint16_t *codes, int64_t n) {
    memcpy(codes, from, (size_t)n * sizeof *codes);
}

void bsmm_codes_load(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, uint16_t *codes) {
    uint32_t elem = src->m.format.elem, bits = bsmm_elem_row(elem)->bits;
    uint64_t index = bsmm_operand_index(src, r, c);
    if (src->m.order == BSMM_ORDER_COL) {
        for (int64_t i = 0; i < n; i++, index += (uint64_t)src->m.ld)
            codes[i] = (uint16_t)bsmm_elem_load(elem, src->m.data, index);
        return;
    }
    const uint8_t *from = (const uint8_t *)src->m.data + index * bits / 8;
    (bits == 4 ? unpack4 : bits == 6 ? unpack6 : bits == 8 ? unpack8 : unpack16)(from, codes, n);
}

typedef void load_run(const uint8_t *from, int64_t step, int64_t n, float *to, int64_t to_step);

static void load_f32(const uint8_t *from, int64_t step, int64_t n, float *to, int64_t to_step) {
    for (int64_t i = 0; i < n; i++)
        memcpy(&to[i * to_step], from + i * step, sizeof(float));
}

static uint32_t load_u16(const uint8_t *from) {
    uint16_t code;
    memcpy(&code, from, sizeof code);
    return code;
}

static float bf16_value(uint32_t code) {
    return bsmm_bits_float(code << 16);
}

/* Converts an f16 code to fp32. For a normal number the function shifts exponent and mantissa to
 * their place in fp32, and adds 112, the difference of the exponent biases, to the exponent. The
 * exponent of Inf and NaN stays all ones. For a subnormal number it makes a normal fp32 number with
 * the same mantissa bits after a leading 1, and subtracts the value of this 1. No step computes
 * with a subnormal fp32 number, because processors are slow with these. */
static float f16_value(uint32_t code) {
    uint32_t shifted = (code & 0x7fff) << 13, sign = (code & 0x8000) << 16;
    uint32_t special = bsmm_select((code & 0x7c00) == 0x7c00, 0x7f800000u, 0);
    float small = bsmm_bits_float(shifted + (113u << 23)) - 0x1p-14f;
    bool is_small = (code & 0x7c00) == 0;
    uint32_t bits = bsmm_select(is_small, bsmm_float_bits(small), shifted + (112u << 23));
    return bsmm_bits_float(bits | special | sign);
}

/* Converts n f16 or bf16 values, which lie `step` bytes apart, to fp32. For adjacent values there
 * is a separate loop that the compiler can vectorize. */
static inline void load_words(const uint8_t *from, int64_t step, int64_t n, float *to,
                              int64_t to_step, float (*value)(uint32_t)) {
    if (step == 2 && to_step == 1)
        for (int64_t i = 0; i < n; i++)
            to[i] = value(load_u16(from + i * 2));
    else
        for (int64_t i = 0; i < n; i++)
            to[i * to_step] = value(load_u16(from + i * step));
}

static void load_bf16(const uint8_t *from, int64_t step, int64_t n, float *to, int64_t to_step) {
    load_words(from, step, n, to, to_step, bf16_value);
}

static void load_f16(const uint8_t *from, int64_t step, int64_t n, float *to, int64_t to_step) {
    load_words(from, step, n, to, to_step, f16_value);
}

static int64_t bytes_of(uint32_t elem) {
    return elem == BSMM_ELEM_F32 ? 4 : 2;
}

static load_run *load_of(uint32_t elem) {
    return elem == BSMM_ELEM_F32 ? load_f32 : elem == BSMM_ELEM_F16 ? load_f16 : load_bf16;
}

void bsmm_values_load(const bsmm_operand *src, int64_t r, int64_t rows, int64_t c, int64_t cols,
                      float *values, int64_t pitch) {
    int64_t bytes = bytes_of(src->m.format.elem);
    load_run *load = load_of(src->m.format.elem);
    const uint8_t *data = src->m.data;
    if (src->m.order == BSMM_ORDER_ROW)
        for (int64_t i = 0; i < rows; i++)
            load(data + bsmm_operand_index(src, r + i, c) * (uint64_t)bytes, bytes, cols,
                 values + i * pitch, 1);
    else /* The loop walks along the contiguous index, so that each cache line is read once. */
        for (int64_t j = 0; j < cols; j++)
            load(data + bsmm_operand_index(src, r, c + j) * (uint64_t)bytes, bytes, rows,
                 values + j, pitch);
}

void bsmm_plain_load(const bsmm_plain *row, int64_t first, int64_t count, float *to) {
    bsmm_plain at = bsmm_plain_at(row, 0, first);
    load_of(at.elem)(at.data, bytes_of(at.elem), count, to, 1);
}
