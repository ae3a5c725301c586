/* Executes one v_mfma_f32_16x16x16_f16, by which a wave multiplies A (16 x 16) by B (16 x 16) in
 * fp16 with sums in fp32. Each lane holds four consecutive elements of a row of A and of a column
 * of B, and four consecutive rows of a column of D. */
#ifdef __AMDGCN__
#    include "device.h"

typedef _Float16 f16x4 __attribute__((vector_size(8)));

KERNEL void multiply(const GLOBAL _Float16 *a, const GLOBAL _Float16 *b, GLOBAL float *d) {
    const int i = lane() % 16, k = lane() / 16 * 4;
    const f16x4 row = *(const GLOBAL f16x4 *)(a + i * 16 + k);
    f16x4 column;
    for (int n = 0; n < 4; n++)
        column[n] = b[(k + n) * 16 + i];
    const f32x4 sums = __builtin_amdgcn_mfma_f32_16x16x16f16(row, column, (f32x4){0}, 0, 0, 0);
    for (int n = 0; n < 4; n++)
        d[(k + n) * 16 + i] = sums[n];
}

#else
#    include "host.h"

/* Converts an integer of at most 2047 to fp16. The conversion is exact, because fp16 numbers have
 * 11 significant bits. It only adjusts the exponent and drops mantissa bits that are 0. */
static uint16_t half_of(float value) {
    union {
        float f;
        uint32_t u;
    } bits = {value};
    if (value == 0) return 0;
    const uint32_t exponent = (bits.u >> 23 & 255) - 127 + 15;
    return (uint16_t)(bits.u >> 31 << 15 | exponent << 10 | (bits.u >> 13 & 1023));
}

int main(int count, char **arguments) {
    static float a[16 * 16], b[16 * 16], d[16 * 16];
    static uint16_t a_codes[16 * 16], b_codes[16 * 16];
    if (count != 2) return fprintf(stderr, "usage: %s CODE_OBJECT\n", arguments[0]), 2;
    for (int i = 0; i < 256; i++) {
        a[i] = (float)sample(3, i, -99, 99), b[i] = (float)sample(4, i, -99, 99);
        a_codes[i] = half_of(a[i]), b_codes[i] = half_of(b[i]);
    }
    const buffer buffers[] = {{a_codes, sizeof a_codes}, {b_codes, sizeof b_codes}, {d, sizeof d}};
    run_wave(arguments[1], "multiply", buffers, 3);
    return check_product("fp16", a, b, d, 16, 16, 16);
}
#endif
