/* Decodes ggml's types of one and two bits (Q1_0, Q2_0, TQ1_0, TQ2_0) to fp32, bitwise identical to
 * ggml. A code of 0 stands for -d, where d is the block's f16 scale. Source of the layouts:
 * ggml-common.h. Source of the rules: ggml-quants.c. */
#include "io/gguf.h"

/* Decodes a block of Q1_0. Its bytes are the f16 scale d, then one bit for each element. An element
 * is d if its bit is 1, else -d. */
void bsmm_gguf_q1_0(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (uint32_t i = 0; i < 128; i++)
        values[i] = block[2 + i / 8] >> (i % 8) & 1 ? d : -d;
}

/* Decodes a block of Q2_0. Its bytes are the f16 scale d, then a code of two bits for each element.
 * The codes 0, 1 and 2 stand for -d, 0 and d. */
void bsmm_gguf_q2_0(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (uint32_t i = 0; i < 64; i++)
        values[i] = (float)((block[2 + i / 4] >> (i % 4 * 2) & 3) - 1) * d;
}

/* Decodes a block of TQ2_0. Its bytes are a code of two bits for each element (0, 1 and 2 stand for
 * -d, 0 and d), then the f16 scale d. Each byte holds the codes of four elements, whose indices
 * differ by 32. */
void bsmm_gguf_tq2_0(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block + 64);
    for (uint32_t i = 0; i < 256; i++)
        values[i] = (float)((block[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3) - 1) * d;
}

/* Decodes `count` bytes of ggml's ternary format. A byte holds `digits` (4 or 5) elements with the
 * values -d, 0 or d. The first element of byte i is element i of the result. Each further element
 * of the byte has an index that is larger by `count`.
 *
 * A byte stands for a number n of five base-3 digits, so n is less than 3^5 = 243. Each element is
 * one digit: the digits 0, 1 and 2 mean -d, 0 and d. The first element is the highest digit. If
 * there are only four elements, the lowest digit is 0. The byte is n * 256 / 243, rounded up, so
 * byte / 256 is about n / 243. The integer part of 3 * byte / 256 is therefore the highest digit,
 * and the remainder (the lower 8 bits of 3 * byte) holds the other digits in the same way. */
static float *store_digits(const uint8_t *bytes, uint32_t count, uint32_t digits, float d,
                           float *values) {
    uint8_t power = 1;
    for (uint32_t digit = 0; digit < digits; digit++, power = (uint8_t)(power * 3))
        for (uint32_t i = 0; i < count; i++) {
            uint8_t rest = (uint8_t)(bytes[i] * power);
            *values++ = (float)((rest * 3 >> 8) - 1) * d;
        }
    return values;
}

/* Decodes a block of TQ1_0. Its bytes are 48 bytes of five elements each, 4 bytes of four elements
 * each, and the f16 scale d. */
void bsmm_gguf_tq1_0(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block + 52);
    values = store_digits(block, 32, 5, d, values);
    values = store_digits(block + 32, 16, 5, d, values);
    store_digits(block + 48, 4, 4, d, values);
}
