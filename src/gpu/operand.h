/* Reads single elements and scales of an operand with any element format, storage order and scale
 * layout. Kernels use it on their slow paths, for formats that have no fast decoder. The code is
 * plain C, so that tests on a CPU compute the same values as a GPU. */
#ifndef BSMM_GPU_OPERAND_H
#define BSMM_GPU_OPERAND_H

#include "bsmm.h"
#include "gpu/axis_map.h"
#include "gpu/codec.h"

typedef struct bsmm_gpu_operand {
    const uint8_t *data, *scales;
    /* `row_step` and `col_step` are the strides of the operand's rows and columns, in elements. */
    uint64_t row_step, col_step;
    /* `elem` is the element type, a value of the enum bsmm_elem. `bits` is the number of bits of an
     * element. */
    uint32_t elem, bits;
    /* `scale` is the type of the block scales, a value of the enum bsmm_scale. */
    uint32_t scale;
    /* `codec` holds the constants that decode elements of at most 8 bits. */
    bsmm_narrow_codec codec;
    /* The index of an element's scale is the sum of two numbers: the value of row_map for the
     * element's row, and the value of col_map for its column. */
    bsmm_axis_map row_map, col_map;
} bsmm_gpu_operand;

/* Returns the code of one element. Codes of 4 and 6 bits are loaded byte by byte, because 6-bit
 * codes straddle bytes and the operand's address may be odd. */
BSMM_SHARED uint32_t bsmm_gpu_code(const bsmm_gpu_operand *o, uint32_t row, uint32_t col) {
    uint64_t index = row * o->row_step + col * o->col_step;
    if (o->bits == 8) return o->data[index];
    if (o->bits == 16) return ((const uint16_t *)(const void *)o->data)[index];
    if (o->bits == 32) return ((const uint32_t *)(const void *)o->data)[index];
    if (o->bits == 4) return o->data[index >> 1] >> 4 * (index & 1) & 0xf;
    const uint8_t *group = o->data + index / 4 * 3;
    uint32_t word = group[0] | (uint32_t)group[1] << 8 | (uint32_t)group[2] << 16;
    return word >> 6 * (index & 3) & 0x3f;
}

BSMM_SHARED float bsmm_gpu_f16_value(uint32_t code) {
    uint32_t bits = (uint32_t)((int32_t)(code << 16) >> 3) & 0x8fffe000u;
    float value = bsmm_bits_float(bits) * bsmm_pow2(112);
    if ((code & 0x7c00) != 0x7c00) return value;
    return bsmm_bits_float((code & 0x8000) << 16 | 0x7f800000u | (code & 0x3ff) << 13);
}

/* Returns the value of an element's code, which fp32 holds exactly for every element format. */
BSMM_SHARED float bsmm_gpu_elem(const bsmm_gpu_operand *o, uint32_t code) {
    if (o->bits <= 8) return bsmm_narrow_value(&o->codec, code);
    if (o->elem == BSMM_ELEM_BF16) return bsmm_bits_float(code << 16);
    return o->elem == BSMM_ELEM_F16 ? bsmm_gpu_f16_value(code) : bsmm_bits_float(code);
}

/* Returns the value of a scale code. The smallest e8m0 scale, 2^-127, is subnormal in fp32. */
BSMM_SHARED float bsmm_gpu_scale_value(uint32_t scale, uint32_t code) {
    if (scale == BSMM_SCALE_E8M0)
        return bsmm_bits_float(code == 255 ? 0x7fc00000u : code ? code << 23 : 0x00400000u);
    if (scale == BSMM_SCALE_E4M3) return bsmm_e4m3_scale(code);
    return scale == BSMM_SCALE_F32 ? bsmm_bits_float(code) : 1;
}

/* Returns the scale of the block that contains (row, col). */
BSMM_SHARED float bsmm_gpu_scale(const bsmm_gpu_operand *o, uint32_t row, uint32_t col) {
    if (o->scale == BSMM_SCALE_NONE) return 1;
    uint64_t offset = bsmm_axis_at(&o->row_map, row) + bsmm_axis_at(&o->col_map, col);
    uint32_t code = o->scale == BSMM_SCALE_F32 ? ((const uint32_t *)(const void *)o->scales)[offset]
                                               : o->scales[offset];
    return bsmm_gpu_scale_value(o->scale, code);
}

/* Returns an element times its block scale. The product is exact in double. */
BSMM_SHARED double bsmm_gpu_value(const bsmm_gpu_operand *o, uint32_t row, uint32_t col) {
    return (double)bsmm_gpu_elem(o, bsmm_gpu_code(o, row, col)) *
           (double)bsmm_gpu_scale(o, row, col);
}

#endif
