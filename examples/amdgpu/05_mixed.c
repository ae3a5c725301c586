/* Executes one v_mfma_scale_f32_16x16x128_f8f6f4 with mixed types, by which a wave multiplies A
 * (16 x 128) in e4m3 by B (128 x 16) in e2m1. 32 elements along k share an e8m0 scale. A lane
 * holds two groups of 16 consecutive elements of a row of A, and the second group begins 64
 * elements after the first. A lane holds 32 consecutive elements of a column of B. Lane i + 16 g
 * passes the scales of row i of A and column i of B, for elements 32 g to 32 g + 31. */
#ifdef __AMDGCN__
#    include "device.h"

enum { E4M3 = 0, E2M1 = 4 };
typedef int32_t i32x4 __attribute__((vector_size(16)));

KERNEL void multiply(const GLOBAL uint8_t *a, const GLOBAL uint8_t *b,
                     const GLOBAL uint8_t *a_scales, const GLOBAL uint8_t *b_scales,
                     GLOBAL float *d) {
    const int i = lane() % 16, group = lane() / 16;
    const i32x4 low = *(const GLOBAL i32x4 *)(a + i * 128 + group * 16);
    const i32x4 high = *(const GLOBAL i32x4 *)(a + i * 128 + group * 16 + 64);
    const i32x4 y = *(const GLOBAL i32x4 *)(b + i * 64 + group * 16);
    const f32x4 sums = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(
        (i32x8){low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]},
        (i32x8){y[0], y[1], y[2], y[3]}, (f32x4){0}, E4M3, E2M1, 0, a_scales[i * 4 + group], 0,
        b_scales[i * 4 + group]);
    for (int n = 0; n < 4; n++)
        d[(group * 4 + n) * 16 + i] = sums[n];
}

#else
#    include "host.h"
#    include <math.h>

int main(int count, char **arguments) {
    static uint8_t a[16 * 128], b[16 * 64], a_scales[16 * 4], b_scales[16 * 4];
    static float x[16][128], y[128][16], d[16 * 16];
    if (count != 2) return fprintf(stderr, "usage: %s CODE_OBJECT\n", arguments[0]), 2;
    for (int i = 0; i < 64; i++)
        a_scales[i] = (uint8_t)sample(13, i, 125, 129),
        b_scales[i] = (uint8_t)sample(14, i, 125, 129);
    for (int n = 0; n < 16 * 128; n++) {
        const int i = n / 128, k = n % 128, block = i * 4 + k / 32;
        const unsigned code = (unsigned)sample(15, n, 0, 15);
        /* A's elements have magnitudes from 2^-2 to 8, so that sums are exact. */
        a[n] = (uint8_t)(sample(16, n, 40, 80) | sample(17, n, 0, 1) << 7);
        b[n / 2] |= (uint8_t)(code << 4 * (k % 2));
        x[i][k] = ldexpf(small_float(a[n], 4, 3, 7), a_scales[block] - 127);
        y[k][i] = ldexpf(small_float(code, 2, 1, 1), b_scales[block] - 127);
    }
    const buffer buffers[] = {
        {a, sizeof a}, {b, sizeof b}, {a_scales, 64}, {b_scales, 64}, {d, sizeof d}};
    run_wave(arguments[1], "multiply", buffers, 5);
    return check_product("mixed fp8 and fp4", x[0], y[0], d, 16, 16, 128);
}
#endif
