/* Describes the operands of three other libraries for bsmm without moving a byte (docs/moving.md).
 * They are mxfp8 with scales in cuBLASLt's tiles, weights in the order K x N as oneDNN's tag `ab`
 * stores them, and float8 with one scale per row as torch._scaled_mm takes it. */
#include <bsmm.h>
#include <stdio.h>
#include <string.h>

enum { M = 128, N = 128, K = 128 };
static uint8_t x[M * K], x_scales[M * K / 32], w[N * K], w_scales[N * K / 32];
static float x_rows[M], w_rows[N], y[M * N], src[M * K], w_kn[K * N];
static const bsmm_format f32 = {.elem = BSMM_ELEM_F32};

/* Computes what cuBLASLt computes with CUDA_R_8F_E4M3 and CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
 * for both operands. */
static bsmm_status from_cublaslt(void) {
    bsmm_format mxfp8 = {BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, .block_rows = 1, .block_cols = 32};
    bsmm_matrix a = {sizeof a, .format = mxfp8, .rows = M, .cols = K, .data = x};
    bsmm_matrix b = {sizeof b, .format = mxfp8, .rows = N, .cols = K, .data = w};
    bsmm_matrix d = {sizeof d, .format = f32, .rows = M, .cols = N, .data = y};
    a.scales = x_scales, a.scale_layout = BSMM_LAYOUT_NV_128X4, a.scale_bytes = sizeof x_scales;
    b.scales = w_scales, b.scale_layout = BSMM_LAYOUT_NV_128X4, b.scale_bytes = sizeof w_scales;
    bsmm_matmul_desc product = {sizeof product, .a = &a, .b = &b, .d = &d};
    return bsmm_matmul(&product);
}

/* Computes what oneDNN computes with the source `ab` of M x K, the weights `ab` of K x N, and one
 * eltwise post-op. */
static bsmm_status from_onednn(void) {
    bsmm_matrix a = {sizeof a, .format = f32, .rows = M, .cols = K, .data = src};
    bsmm_matrix b = {sizeof b, .format = f32, .rows = N, .cols = K, .data = w_kn};
    bsmm_matrix d = {sizeof d, .format = f32, .rows = M, .cols = N, .data = y};
    b.order = BSMM_ORDER_COL; /* Element (n, k) is at index k * N + n. */
    bsmm_epilogue relu = {sizeof relu, .activation = BSMM_ACTIVATION_RELU};
    bsmm_matmul_desc product = {sizeof product, .a = &a, .b = &b, .d = &d, .epilogue = &relu};
    return bsmm_matmul(&product);
}

/* Computes what torch._scaled_mm(x, w.t(), scale_a, scale_b) computes with scale_a of shape (M, 1)
 * and scale_b of shape (1, N). */
static bsmm_status from_torch(void) {
    bsmm_format rows = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, .block_rows = 1, .block_cols = K};
    bsmm_matrix a = {sizeof a, .format = rows, .rows = M, .cols = K, .data = x, .scales = x_rows};
    bsmm_matrix b = {sizeof b, .format = rows, .rows = N, .cols = K, .data = w, .scales = w_rows};
    bsmm_matrix d = {sizeof d, .format = f32, .rows = M, .cols = N, .data = y};
    bsmm_matmul_desc product = {sizeof product, .a = &a, .b = &b, .d = &d};
    return bsmm_matmul(&product);
}

static int check(const char *name, bsmm_status status, float right) {
    int good = status == BSMM_OK && y[0] == right && y[M * N - 1] == right;
    printf("%s: %s\n", name, good ? "right" : status ? bsmm_error_message() : "wrong");
    return good;
}

int main(void) {
    memset(x, 0x38, sizeof x);              /* This is the e4m3 code of 1.0. */
    memset(w, 0x40, sizeof w);              /* This is the e4m3 code of 2.0. */
    memset(x_scales, 127, sizeof x_scales); /* This is the e8m0 code of 1. */
    memset(w_scales, 126, sizeof w_scales);
    for (int i = 0; i < M * K; i++)
        src[i] = -1, w_kn[i] = i < N ? -2 : 0, x_rows[i % M] = 3, w_rows[i % N] = 0.5f;
    /* Each result is the sum of 1 * 2 * 2^-1 over K. */
    int good = check("cuBLASLt", from_cublaslt(), K);
    /* x is -1. Only the weights with k = 0 are not 0, and they are -2. Each result is therefore 2.
     */
    good &= check("oneDNN", from_onednn(), 2);
    return check("torch", from_torch(), 3 * K) && good ? 0 : 1;
}
