/* Makes a plan and runs it twice, to multiply two batches of bf16 activations by nvfp4 weights.
 * The plan checks the product and chooses a kernel once. Several threads may run one plan at the
 * same time, each with its own workspace. */
#include <bsmm.h>

#include <stdio.h>
#include <stdlib.h>

enum { M = 4, N = 8, K = 32 };

static uint16_t x[M * K]; /* Holds bf16 codes. */
static uint8_t w[N * K / 2], ws[N * K / 16];
static float w_global = 0.25f;
static float y[M * N];

static int run(const bsmm_plan *plan, void *workspace, uint16_t activation) {
    for (int i = 0; i < M * K; i++)
        x[i] = activation;
    bsmm_buffers buffers = {sizeof buffers, .a = x, .b = w, .b_scales = ws, .b_global = &w_global};
    buffers.d = y;
    buffers.workspace = workspace;
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    return bsmm_plan_run(plan, &buffers) == BSMM_OK;
}

int main(void) {
    for (size_t i = 0; i < sizeof w; i++)
        w[i] = 0x22; /* Each byte holds two e2m1 codes of 1.0. */
    for (size_t i = 0; i < sizeof ws; i++)
        ws[i] = 0x40; /* This is the e4m3 code of 2.0. */

    bsmm_format bf16, nvfp4, f32;
    if (bsmm_format_from_name("bf16", &bf16) || bsmm_format_from_name("nvfp4", &nvfp4) ||
        bsmm_format_from_name("f32", &f32))
        return 1;
    bsmm_matrix a = {sizeof a, .format = bf16, .rows = M, .cols = K};
    bsmm_matrix b = {sizeof b, .format = nvfp4, .rows = N, .cols = K};
    bsmm_matrix d = {sizeof d, .format = f32, .rows = M, .cols = N};
    bsmm_matmul_desc product = {sizeof product, .a = &a, .b = &b, .d = &d};

    bsmm_plan *plan;
    if (bsmm_plan_create(&product, &plan) != BSMM_OK) {
        fprintf(stderr, "%s\n", bsmm_error_message());
        return 1;
    }
    size_t bytes = ((size_t)bsmm_plan_workspace_bytes(plan) + 63) / 64 * 64;
    void *workspace = aligned_alloc(64, bytes ? bytes : 64);
    /* The activations are 1.0, so each result is K * 1 * (element 1 * scale 2 * global 0.25). */
    int right = run(plan, workspace, 0x3F80) && y[0] == 16;
    /* The activations are -3.0 in bf16. */
    right = right && run(plan, workspace, 0xC040) && y[M * N - 1] == -48;
    printf("kernel %s, workspace %zu bytes: %s\n", bsmm_plan_kernel(plan), bytes,
           right ? "right" : bsmm_error_message());
    free(workspace);
    bsmm_plan_destroy(plan);
    return right ? 0 : 1;
}
