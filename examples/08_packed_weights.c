/* Packs weights once, writes them to a file and maps the file. A run then reads the packed weights
 * from the mapping. Products with any number of activations (M) can use the same packed bytes. */
#include <bsmm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { M = 64, N = 48, K = 64 };

/* These arrays hold the operands a (x, xs) and b (w, ws), i.e. mxfp4 elements and their scales. */
static uint8_t x[M * K / 2], xs[M * K / 32], w[N * K / 2], ws[N * K / 32];
static float y[M * N];

static int fail(void) {
    fprintf(stderr, "%s\n", bsmm_error_message());
    return 1;
}

/* Packs the weights into a temporary file and returns a read-only mapping of the file. */
static const void *pack(const bsmm_plan *plan, const bsmm_buffers *buffers, uint64_t bytes) {
    FILE *file = tmpfile();
    void *packed = aligned_alloc(64, (bytes + 63) / 64 * 64), *mapped = NULL;
    if (file && packed && bsmm_pack_b(plan, buffers, packed, bytes) == BSMM_OK &&
        fwrite(packed, 1, bytes, file) == bytes && fflush(file) == 0)
        mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    free(packed);
    if (file) fclose(file);
    return mapped == MAP_FAILED ? NULL : mapped;
}

int main(void) {
    memset(x, 0x22, sizeof x); /* Each byte holds two e2m1 codes of 1.0. */
    memset(w, 0x44, sizeof w); /* Each byte holds two e2m1 codes of 2.0. */
    memset(xs, 127, sizeof xs);
    memset(ws, 126, sizeof ws); /* This is the e8m0 code of 2^-1. */
    bsmm_format mxfp4, f32;
    if (bsmm_format_from_name("mxfp4", &mxfp4) || bsmm_format_from_name("f32", &f32)) return fail();
    bsmm_matrix a = {sizeof a, .format = mxfp4, .rows = M, .cols = K};
    bsmm_matrix b = {sizeof b, .format = mxfp4, .rows = N, .cols = K};
    bsmm_matrix d = {sizeof d, .format = f32, .rows = M, .cols = N};
    bsmm_matmul_desc product = {sizeof product, .a = &a, .b = &b, .d = &d, .b_packed = 1};
    bsmm_plan *plan;
    bsmm_status status = bsmm_plan_create(&product, &plan);
    if (status == BSMM_E_UNSUPPORTED) return puts("no kernel of this processor packs B") == EOF;
    if (status) return fail();

    bsmm_buffers buffers = {sizeof buffers, .a = x, .a_scales = xs, .b = w, .b_scales = ws, .d = y};
    buffers.packed_b_bytes = bsmm_plan_packed_b_bytes(plan);
    buffers.packed_b = pack(plan, &buffers, buffers.packed_b_bytes);
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = aligned_alloc(64, (buffers.workspace_bytes + 63) / 64 * 64);
    if (!buffers.packed_b || bsmm_plan_run(plan, &buffers) != BSMM_OK) return fail();
    printf("kernel %s, %zu bytes of packed weights: %s\n", bsmm_plan_kernel(plan),
           (size_t)buffers.packed_b_bytes, y[0] == K ? "right" : "wrong");
    free(buffers.workspace);
    bsmm_plan_destroy(plan);
    return y[0] == K && y[M * N - 1] == K ? 0 : 1;
}
