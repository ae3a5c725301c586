/* Multiplies mxfp8 activations by mxfp4 weights with one call of the library. Both formats have
 * one scale for 32 elements of a row. */
#include <bsmm.h>

#include <stdio.h>

enum { M = 2, N = 3, K = 64 };

/* Every element of the activations x is 1.5 (e4m3 code 0x3C) with scale 2 (e8m0 code 128). Every
 * element of the weights w is -0.5 (e2m1 code 0x9, two codes per byte) with scale 1 (e8m0 code
 * 127). */
static uint8_t x[M * K], xs[M * K / 32];
static uint8_t w[N * K / 2], ws[N * K / 32];
static float y[M * N];

static void fill(uint8_t *bytes, size_t count, uint8_t value) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = value;
}

int main(void) {
    fill(x, sizeof x, 0x3C);
    fill(xs, sizeof xs, 128);
    fill(w, sizeof w, 0x99);
    fill(ws, sizeof ws, 127);

    bsmm_format mxfp8, mxfp4, f32 = {.elem = BSMM_ELEM_F32};
    bsmm_format_from_name("mxfp8", &mxfp8);
    bsmm_format_from_name("mxfp4", &mxfp4);

    bsmm_matrix a = {sizeof a, .format = mxfp8, .rows = M, .cols = K, .data = x, .scales = xs};
    bsmm_matrix b = {sizeof b, .format = mxfp4, .rows = N, .cols = K, .data = w, .scales = ws};
    bsmm_matrix d = {sizeof d, .format = f32, .rows = M, .cols = N, .data = y};
    bsmm_matmul_desc product = {sizeof product, .a = &a, .b = &b, .d = &d}; /* d = a x b^T */
    if (bsmm_matmul(&product) != BSMM_OK) {
        fprintf(stderr, "%s\n", bsmm_error_message());
        return 1;
    }

    printf("y[0][0] = %g\n", (double)y[0]); /* The result must be 64 * (1.5 * 2) * (-0.5 * 1). */
    return y[0] == -96 && y[M * N - 1] == -96 ? 0 : 1;
}
