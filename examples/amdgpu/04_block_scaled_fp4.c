/* Executes one v_mfma_scale_f32_32x32x64_f8f6f4 with e2m1 operands, by which a wave multiplies A
 * (32 x 64) by B (64 x 32). 32 elements along k share an e8m0 scale, which is a power of two. Each
 * lane holds 32 consecutive elements of a row of A and of a column of B, with their scales. The 32
 * elements take 16 bytes, and the element with even k is in the low four bits of its byte. */
#ifdef __AMDGCN__
#    include "device.h"

enum { E2M1 = 4 };
typedef int32_t i32x4 __attribute__((vector_size(16)));

/* Multiplies A by B on the GPU. `b` holds the columns of B one after another, so that the kernel
 * reads A and B in the same way. */
KERNEL void multiply(const GLOBAL uint8_t *a, const GLOBAL uint8_t *b,
                     const GLOBAL uint8_t *a_scales, const GLOBAL uint8_t *b_scales,
                     GLOBAL float *d) {
    const int i = lane() % 32, block = lane() / 32;
    const i32x4 row = *(const GLOBAL i32x4 *)(a + i * 32 + block * 16);
    const i32x4 column = *(const GLOBAL i32x4 *)(b + i * 32 + block * 16);
    const i32x8 x = {row[0], row[1], row[2], row[3]},
                y = {column[0], column[1], column[2], column[3]};
    const int scale_x = a_scales[i * 2 + block], scale_y = b_scales[i * 2 + block];
    const f32x16 zero = {0};
    store_32x32(d, __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(x, y, zero, E2M1, E2M1, 0,
                                                                   scale_x, 0, scale_y));
}

#else
#    include "host.h"
#    include <math.h>

/* Fills codes and scales with random numbers, and computes the values element * 2^(scale - 127). */
static void fill(int seed, uint8_t *codes, uint8_t *scales, float (*values)[64]) {
    for (int i = 0; i < 32 * 2; i++)
        scales[i] = (uint8_t)sample(seed, i, 124, 130);
    for (int i = 0; i < 32; i++)
        for (int k = 0; k < 64; k++) {
            const unsigned code = (unsigned)sample(seed + 1, i * 64 + k, 0, 15);
            codes[(i * 64 + k) / 2] |= (uint8_t)(code << 4 * (k % 2));
            values[i][k] = ldexpf(small_float(code, 2, 1, 1), scales[i * 2 + k / 32] - 127);
        }
}

int main(int count, char **arguments) {
    static uint8_t a[32 * 32], b[32 * 32], a_scales[32 * 2], b_scales[32 * 2];
    static float x[32][64], y[32][64], transposed[64][32], d[32 * 32];
    if (count != 2) return fprintf(stderr, "usage: %s CODE_OBJECT\n", arguments[0]), 2;
    fill(9, a, a_scales, x), fill(11, b, b_scales, y);
    for (int i = 0; i < 32 * 64; i++)
        transposed[i % 64][i / 64] = y[i / 64][i % 64];
    const buffer buffers[] = {
        {a, sizeof a}, {b, sizeof b}, {a_scales, 64}, {b_scales, 64}, {d, sizeof d}};
    run_wave(arguments[1], "multiply", buffers, 5);
    return check_product("block-scaled fp4", x[0], transposed[0], d, 32, 32, 64);
}
#endif
