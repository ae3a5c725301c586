/* Executes one v_mfma_f32_32x32x16_fp8_fp8, by which a wave multiplies A (32 x 16) by B (16 x 32)
 * in fp8. Each lane holds eight consecutive elements of a row of A and of a column of B. CDNA3
 * reads the codes as e4m3fnuz (exponent bias 8), so this example is for gfx942. On gfx950 the same
 * instruction reads e4m3 (exponent bias 7). */
#ifdef __AMDGCN__
#    include "device.h"

typedef uint8_t u8x8 __attribute__((vector_size(8)));

KERNEL void multiply(const GLOBAL uint8_t *a, const GLOBAL uint8_t *b, GLOBAL float *d) {
    const int i = lane() % 32, k = lane() / 32 * 8;
    const u8x8 row = *(const GLOBAL u8x8 *)(a + i * 16 + k);
    u8x8 column;
    for (int n = 0; n < 8; n++)
        column[n] = b[(k + n) * 32 + i];
    const f32x16 zero = {0};
    store_32x32(d,
                __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8((long)row, (long)column, zero, 0, 0, 0));
}

#else
#    include "host.h"

int main(int count, char **arguments) {
    static float a[32 * 16], b[16 * 32], d[32 * 32];
    static uint8_t a_codes[32 * 16], b_codes[16 * 32];
    if (count != 2) return fprintf(stderr, "usage: %s CODE_OBJECT\n", arguments[0]), 2;
    for (int i = 0; i < 512;
         i++) { /* These codes have magnitudes from 2^-2 to 30, so that sums are exact. */
        a_codes[i] = (uint8_t)(sample(5, i, 48, 103) | sample(6, i, 0, 1) << 7);
        b_codes[i] = (uint8_t)(sample(7, i, 48, 103) | sample(8, i, 0, 1) << 7);
        a[i] = small_float(a_codes[i], 4, 3, 8), b[i] = small_float(b_codes[i], 4, 3, 8);
    }
    const buffer buffers[] = {{a_codes, sizeof a_codes}, {b_codes, sizeof b_codes}, {d, sizeof d}};
    run_wave(arguments[1], "multiply", buffers, 3);
    return check_product("fp8 (e4m3fnuz)", a, b, d, 32, 32, 16);
}
#endif
