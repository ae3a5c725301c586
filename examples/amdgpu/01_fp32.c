/* Executes one v_mfma_f32_32x32x2_f32, by which a wave multiplies A (32 x 2) by B (2 x 32) in
 * fp32. Each lane holds one element of A, one element of B and 16 elements of D. The command "bsmm
 * mfma v_mfma_f32_32x32x2_f32 --operand D" shows which registers hold D. */
#ifdef __AMDGCN__
#    include "device.h"

KERNEL void multiply(const GLOBAL float *a, const GLOBAL float *b, GLOBAL float *d) {
    const int i = lane() % 32, k = lane() / 32;
    const f32x16 zero = {0};
    store_32x32(d,
                __builtin_amdgcn_mfma_f32_32x32x2f32(a[i * 2 + k], b[k * 32 + i], zero, 0, 0, 0));
}

#else
#    include "host.h"

int main(int count, char **arguments) {
    static float a[32 * 2], b[2 * 32], d[32 * 32];
    if (count != 2) return fprintf(stderr, "usage: %s CODE_OBJECT\n", arguments[0]), 2;
    for (int i = 0; i < 64; i++)
        a[i] = (float)sample(1, i, -9, 9), b[i] = (float)sample(2, i, -9, 9);
    const buffer buffers[] = {{a, sizeof a}, {b, sizeof b}, {d, sizeof d}};
    run_wave(arguments[1], "multiply", buffers, 3);
    return check_product("fp32", a, b, d, 32, 32, 2);
}
#endif
