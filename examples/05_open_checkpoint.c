/* Opens a checkpoint of any supported family and multiplies a batch of activations by its first
 * weight.
 * usage: 05_open_checkpoint FILE.safetensors */
#include <bsmm.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 2 };

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, bsmm_error_message());
    return 1;
}

static bsmm_status multiply(const bsmm_matrix *weight, float *x, float *y) {
    bsmm_matrix a = {sizeof a, .rows = BATCH, .cols = weight->cols, .data = x};
    bsmm_matrix d = {sizeof d, .rows = BATCH, .cols = weight->rows, .data = y};
    a.format.elem = d.format.elem = BSMM_ELEM_F32;
    bsmm_matmul_desc product = {sizeof product, .a = &a, .b = weight, .d = &d};
    return bsmm_matmul(&product);
}

int main(int argc, char **argv) {
    bsmm_file *file;
    if (argc != 2 || bsmm_file_open(argv[1], &file) != BSMM_OK) return fail("open");

    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    if (bsmm_file_weight_at(file, 0, &weight) != BSMM_OK) return fail("weight");
    if (bsmm_weight_matrix(file, 0, 0, &matrix) != BSMM_OK) return fail(weight.name);
    printf("%s: %s, %s, %lld x %lld\n", weight.name, weight.family, bsmm_format_name(weight.format),
           (long long)weight.rows, (long long)weight.cols);
    if (!weight.mapped) return fail("this file's weights must be unpacked first");

    float *x = calloc((size_t)weight.cols, BATCH * sizeof *x);
    float *y = calloc((size_t)weight.rows, BATCH * sizeof *y);
    int failed = !x || !y;
    for (int64_t i = 0; !failed && i < BATCH * weight.cols; i++)
        x[i] = 1;
    if (!failed && multiply(&matrix, x, y) != BSMM_OK) failed = fail("multiply");
    if (!failed) printf("y[0][0] = %g\n", (double)y[0]);
    free(x);
    free(y);
    bsmm_file_close(file);
    return failed;
}
