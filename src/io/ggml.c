/* Decodes ggml's quantized blocks to fp32. The operations and their order are those of ggml's
 * functions dequantize_row_*, so that the results are bitwise identical. Source of the layouts:
 * ggml-common.h (block_*). Source of the rules: ggml-quants.c. In the comments below, d and dmin
 * are the f16 scales of a block, and a "quant" is the integer code of an element. */
#include "io/gguf.h"

/* SUPER is the number of elements in a block of the K types (Q2_K to Q6_K). */
enum { SUPER = 256 };

float bsmm_gguf_half(const uint8_t *from) {
    uint32_t code = (uint32_t)from[0] | (uint32_t)from[1] << 8;
    return (float)bsmm_elem_decode(BSMM_ELEM_F16, code);
}

/* Returns the integer code ("quant") of element i in a block of 32 elements. The low nibbles of the
 * 16 bytes belong to elements 0 to 15, the high nibbles to elements 16 to 31. Bit i of `fifth`
 * becomes bit 4 of the code. */
static int quant_of_32(const uint8_t *nibbles, uint32_t fifth, uint32_t i) {
    uint32_t low = i < 16 ? nibbles[i] & 15u : (uint32_t)nibbles[i - 16] >> 4;
    return (int)(low | (fifth >> i & 1u) << 4);
}

/* Decodes a block of Q4_0. Its bytes are the f16 scale d, then the 4-bit codes of the elements. */
void bsmm_gguf_q4_0(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)(quant_of_32(block + 2, 0, i) - 8) * d;
}

/* Decodes a block of Q4_1. Its bytes are the f16 scale d, the f16 minimum, then the 4-bit codes of
 * the elements. */
void bsmm_gguf_q4_1(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block), minimum = bsmm_gguf_half(block + 2);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)quant_of_32(block + 4, 0, i) * d + minimum;
}

/* Decodes a block of Q5_0. Its bytes are the f16 scale d, the fifth bits of all 32 element codes,
 * then the lower four bits of these codes. */
void bsmm_gguf_q5_0(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    uint32_t fifth = bsmm_load_u32(block + 2);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)(quant_of_32(block + 6, fifth, i) - 16) * d;
}

/* Decodes a block of Q5_1. Its bytes are the f16 scale d, the f16 minimum, the fifth bits of all 32
 * element codes, then the lower four bits of these codes. */
void bsmm_gguf_q5_1(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block), minimum = bsmm_gguf_half(block + 2);
    uint32_t fifth = bsmm_load_u32(block + 4);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)quant_of_32(block + 8, fifth, i) * d + minimum;
}

/* Decodes a block of Q8_0. Its bytes are the f16 scale d, then a signed byte for each element. */
void bsmm_gguf_q8_0(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)(int8_t)block[2 + i] * d;
}

/* Decodes a block of Q8_1. Its bytes are the f16 scale d, two bytes that only ggml's dot products
 * use, then a signed byte for each element. */
void bsmm_gguf_q8_1(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)(int8_t)block[4 + i] * d;
}

/* Decodes a block of Q8_K. Its bytes are the f32 scale d, a signed byte for each element, then sums
 * that only ggml's dot products use. */
void bsmm_gguf_q8_k(const uint8_t *block, float *values) {
    float d = (float)bsmm_elem_decode(BSMM_ELEM_F32, bsmm_load_u32(block));
    for (uint32_t i = 0; i < SUPER; i++)
        values[i] = d * (float)(int8_t)block[4 + i];
}

/* Decodes 32 elements of a type IQ4. Each element is a nibble that is an index into a table of
 * values. */
static void decode_iq4(const uint8_t *nibbles, float scale, float *values) {
    static const int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
    for (uint32_t i = 0; i < 32; i++)
        values[i] = scale * (float)table[quant_of_32(nibbles, 0, i)];
}

/* Decodes a block of IQ4_NL. Its bytes are the f16 scale d, then the elements. */
void bsmm_gguf_iq4_nl(const uint8_t *block, float *values) {
    decode_iq4(block + 2, bsmm_gguf_half(block), values);
}

/* Decodes a block of IQ4_XS. Its bytes are the f16 factor d of the scales, the upper two bits of
 * eight scales, their lower four bits, then the elements. A scale has a bias of 32. */
void bsmm_gguf_iq4_xs(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (size_t j = 0; j < SUPER / 32; j++) {
        int low = block[4 + j / 2] >> (j % 2 * 4) & 15, high = block[2 + j / 4] >> (j % 4 * 2) & 3;
        decode_iq4(block + 8 + 16 * j, d * (float)((low | high << 4) - 32), values + 32 * j);
    }
}

/* Returns the two bits of element i. Each byte holds the two bits of four elements, whose indices
 * differ by 32. */
static int two_bits(const uint8_t *quants, uint32_t i) {
    return quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

/* Returns the four bits of element i. Each byte holds the four bits of two elements, whose indices
 * differ by 32. */
static int four_bits(const uint8_t *quants, uint32_t i) {
    return quants[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
}

/* Decodes a block of Q2_K. The block begins with 16 bytes, each of which holds a scale (low nibble)
 * and a minimum (high nibble) of 16 elements. Then follow the 2-bit codes of all elements, the f16
 * factor d of the scales, and the f16 factor dmin of the minima. */
void bsmm_gguf_q2_k(const uint8_t *block, float *values) {
    const uint8_t *quants = block + 16;
    float d = bsmm_gguf_half(block + 80), dmin = bsmm_gguf_half(block + 82);
    for (uint32_t i = 0; i < SUPER; i++) {
        float scale = d * (float)(block[i / 16] & 15), minimum = dmin * (float)(block[i / 16] >> 4);
        values[i] = scale * (float)two_bits(quants, i) - minimum;
    }
}

/* Returns scale j of the 16 scales of a Q3_K block. A stored scale has 6 bits and is the scale plus
 * 32. The lower 4 bits of all scales come first, two scales in a byte: scale j and scale j + 8.
 * Four bytes with the upper 2 bits follow; the four scales with the same j % 4 share a byte. */
static int q3_k_scale(const uint8_t *scales, uint32_t j) {
    uint32_t low = j < 8 ? scales[j] & 15u : (uint32_t)scales[j - 8] >> 4;
    uint32_t high = (uint32_t)scales[8 + j % 4] >> (j / 4 * 2) & 3u;
    return (int)(low | high << 4) - 32;
}

/* Decodes a block of Q3_K. Its bytes are the third bits of all element codes, the lower two bits of
 * these codes, the scales, and the f16 factor d of the scales. If an element's third bit is 0, the
 * number 4 is subtracted from the value of the element's lower two bits. */
void bsmm_gguf_q3_k(const uint8_t *block, float *values) {
    const uint8_t *quants = block + 32, *scales = block + 96;
    float d = bsmm_gguf_half(block + 108);
    for (uint32_t i = 0; i < SUPER; i++) {
        float scale = d * (float)q3_k_scale(scales, i / 16);
        int third = block[i % 32] >> (i / 32) & 1;
        values[i] = scale * (float)(two_bits(quants, i) - (third ? 0 : 4));
    }
}

/* A Q4_K or Q5_K block has 8 scales and 8 minima of 6 bits each, in 12 bytes. Returns scale j and
 * minimum j. For j below 4, scale j is the lower 6 bits of byte j, and minimum j is the lower 6
 * bits of byte j + 4. For j from 4 to 7, each number is in two places: the lower four bits of scale
 * j are the lower half of byte j + 4, and its upper two bits are the top bits of byte j - 4. The
 * lower four bits of minimum j are the upper half of byte j + 4, and its upper two bits are the top
 * bits of byte j. */
static void k4_scale(const uint8_t *scales, uint32_t j, int *scale, int *minimum) {
    if (j < 4) {
        *scale = scales[j] & 63;
        *minimum = scales[j + 4] & 63;
    } else {
        *scale = (scales[j + 4] & 15) | scales[j - 4] >> 6 << 4;
        *minimum = scales[j + 4] >> 4 | scales[j] >> 6 << 4;
    }
}

/* Decodes a block of Q4_K, or of Q5_K if `fifth` is not NULL. `fifth` has the fifth bits of the
 * element codes. Both kinds of block begin with the f16 factor d of the scales, the f16 factor dmin
 * of the minima, and the scales and minima. */
static void decode_k4(const uint8_t *block, const uint8_t *fifth, const uint8_t *quants,
                      float *values) {
    float d = bsmm_gguf_half(block), dmin = bsmm_gguf_half(block + 2);
    for (uint32_t j = 0; j < SUPER / 32; j++) {
        int scale, minimum;
        k4_scale(block + 4, j, &scale, &minimum);
        float part_scale = d * (float)scale, part_minimum = dmin * (float)minimum;
        for (uint32_t i = 32 * j; i < 32 * j + 32; i++) {
            int high = fifth && fifth[i % 32] >> j & 1 ? 16 : 0;
            values[i] = part_scale * (float)(four_bits(quants, i) + high) - part_minimum;
        }
    }
}

void bsmm_gguf_q4_k(const uint8_t *block, float *values) {
    decode_k4(block, NULL, block + 16, values);
}

void bsmm_gguf_q5_k(const uint8_t *block, float *values) {
    decode_k4(block, block + 16, block + 48, values);
}

/* Decodes a block of Q6_K. Its bytes are the lower 4 bits of the element codes, the upper 2 bits of
 * these codes, 16 signed scales, and the f16 factor d of the scales. */
void bsmm_gguf_q6_k(const uint8_t *block, float *values) {
    const uint8_t *upper = block + 128, *scales = block + 192;
    float d = bsmm_gguf_half(block + 208);
    for (uint32_t i = 0; i < SUPER; i++) {
        int low = block[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        int high = two_bits(upper, i);
        float scale = d * (float)(int8_t)scales[i / 16];
        values[i] = scale * (float)((low | high << 4) - 32);
    }
}
