/* ggml's quantized blocks as fp32, with the operations and the order of ggml's dequantize_row_*, so
 * that every bit is the same. Layouts: ggml-common.h (block_*); rules: ggml-quants.c. */
#include "io/gguf.h"

enum { SUPER = 256 }; /* elements of a block of the K types */

static float half_at(const uint8_t *from) {
    uint32_t code = (uint32_t)from[0] | (uint32_t)from[1] << 8;
    return (float)bsmm_elem_decode(BSMM_ELEM_F16, code);
}

/* ---- blocks of 32 ---- */

/* Element i of 32: the low nibbles come first, then the high ones; bit i of `fifth` is bit 4. */
static int quant_of_32(const uint8_t *nibbles, uint32_t fifth, uint32_t i) {
    uint32_t low = i < 16 ? nibbles[i] & 15u : (uint32_t)nibbles[i - 16] >> 4;
    return (int)(low | (fifth >> i & 1u) << 4);
}

/* d, nibbles. */
void bsmm_gguf_q4_0(const uint8_t *block, float *values) {
    float d = half_at(block);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)(quant_of_32(block + 2, 0, i) - 8) * d;
}

/* d, minimum, nibbles. */
void bsmm_gguf_q4_1(const uint8_t *block, float *values) {
    float d = half_at(block), minimum = half_at(block + 2);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)quant_of_32(block + 4, 0, i) * d + minimum;
}

/* d, fifth bits, nibbles. */
void bsmm_gguf_q5_0(const uint8_t *block, float *values) {
    float d = half_at(block);
    uint32_t fifth = bsmm_load_u32(block + 2);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)(quant_of_32(block + 6, fifth, i) - 16) * d;
}

/* d, minimum, fifth bits, nibbles. */
void bsmm_gguf_q5_1(const uint8_t *block, float *values) {
    float d = half_at(block), minimum = half_at(block + 2);
    uint32_t fifth = bsmm_load_u32(block + 4);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)quant_of_32(block + 8, fifth, i) * d + minimum;
}

/* d, signed bytes. */
void bsmm_gguf_q8_0(const uint8_t *block, float *values) {
    float d = half_at(block);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (float)(int8_t)block[2 + i] * d;
}

/* d, nibbles that number the values of a table. */
void bsmm_gguf_iq4_nl(const uint8_t *block, float *values) {
    static const int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
    float d = half_at(block);
    for (uint32_t i = 0; i < 32; i++)
        values[i] = d * (float)table[quant_of_32(block + 2, 0, i)];
}

/* ---- blocks of 256, with scales of their parts ---- */

/* 2 bits of element i: four layers of 32 elements share 32 bytes. */
static int two_bits(const uint8_t *quants, uint32_t i) {
    return quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

/* 4 bits of element i: two groups of 32 elements share 32 bytes. */
static int four_bits(const uint8_t *quants, uint32_t i) {
    return quants[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
}

/* 16 scales (low nibble) and minima (high nibble), quants, d, dmin. */
void bsmm_gguf_q2_k(const uint8_t *block, float *values) {
    const uint8_t *quants = block + 16;
    float d = half_at(block + 80), dmin = half_at(block + 82);
    for (uint32_t i = 0; i < SUPER; i++) {
        float scale = d * (float)(block[i / 16] & 15), minimum = dmin * (float)(block[i / 16] >> 4);
        values[i] = scale * (float)two_bits(quants, i) - minimum;
    }
}

/* Scale j of 16, 6 bits biased by 32: 16 nibbles, then the upper bits, those of j % 4 together. */
static int q3_k_scale(const uint8_t *scales, uint32_t j) {
    uint32_t low = j < 8 ? scales[j] & 15u : (uint32_t)scales[j - 8] >> 4;
    uint32_t high = (uint32_t)scales[8 + j % 4] >> (j / 4 * 2) & 3u;
    return (int)(low | high << 4) - 32;
}

/* Third bits (a clear one subtracts 4), quants, scales, d. */
void bsmm_gguf_q3_k(const uint8_t *block, float *values) {
    const uint8_t *quants = block + 32, *scales = block + 96;
    float d = half_at(block + 108);
    for (uint32_t i = 0; i < SUPER; i++) {
        float scale = d * (float)q3_k_scale(scales, i / 16);
        int third = block[i % 32] >> (i / 32) & 1;
        values[i] = scale * (float)(two_bits(quants, i) - (third ? 0 : 4));
    }
}

/* Scale and minimum j of 8, 6 bits each: the upper two of the last four lie over the first eight.
 */
static void k4_scale(const uint8_t *scales, uint32_t j, int *scale, int *minimum) {
    if (j < 4) {
        *scale = scales[j] & 63;
        *minimum = scales[j + 4] & 63;
    } else {
        *scale = (scales[j + 4] & 15) | scales[j - 4] >> 6 << 4;
        *minimum = scales[j + 4] >> 4 | scales[j] >> 6 << 4;
    }
}

/* d, dmin, scales; then what Q4_K and Q5_K differ in. fifth NULL: 4 bits. */
static void decode_k4(const uint8_t *block, const uint8_t *fifth, const uint8_t *quants,
                      float *values) {
    float d = half_at(block), dmin = half_at(block + 2);
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

/* Lower 4 bits, upper 2 bits, 16 signed scales, d. */
void bsmm_gguf_q6_k(const uint8_t *block, float *values) {
    const uint8_t *upper = block + 128, *scales = block + 192;
    float d = half_at(block + 208);
    for (uint32_t i = 0; i < SUPER; i++) {
        int low = block[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        int high = two_bits(upper, i);
        float scale = d * (float)(int8_t)scales[i / 16];
        values[i] = scale * (float)((low | high << 4) - 32);
    }
}
