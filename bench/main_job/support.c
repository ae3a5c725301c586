/* Implements functions of the main job of `make run` (job.h), which the program bsmm_main_job runs:
 * memory allocation, error messages, and GEMMs in double. */
#include "job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void job_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("main job: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

void job_check(bsmm_status status, const char *what) {
    if (status) job_fail("%s: %s", what, bsmm_error_message());
}

void *job_alloc(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) job_fail("no memory for %zu times %zu bytes", count, size);
    return memory;
}

job_batch job_batch_create(int64_t rows, int64_t cols) {
    return (job_batch){rows, cols, job_alloc((size_t)(rows * cols), sizeof(float))};
}

bsmm_matrix job_matrix(const job_batch *batch) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    matrix.format.elem = BSMM_ELEM_F32;
    matrix.rows = batch->rows;
    matrix.cols = batch->cols;
    matrix.data = batch->values;
    return matrix;
}

bsmm_matrix job_matrix_create(bsmm_format format, int64_t rows, int64_t cols) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    matrix.format = format;
    matrix.rows = rows;
    matrix.cols = cols;
    uint64_t data_bytes, scale_bytes;
    job_check(bsmm_data_bytes(&matrix, &data_bytes), "size");
    job_check(bsmm_scale_bytes(&matrix, &scale_bytes), "size");
    matrix.data = job_alloc(data_bytes, 1);
    if (format.scale) {
        matrix.scales = job_alloc(scale_bytes, 1);
        matrix.global_scale = job_alloc(1, sizeof(float));
        *matrix.global_scale = 1;
    }
    return matrix;
}

void job_matrix_destroy(bsmm_matrix *matrix) {
    free(matrix->data);
    free(matrix->scales);
    free(matrix->global_scale);
}

static double dot(const float *a, const float *b, int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

void job_multiply_exactly(const job_batch *x, const job_batch *w, double *y) {
#pragma omp parallel for
    for (int64_t n = 0; n < w->rows; n++)
        for (int64_t m = 0; m < x->rows; m++)
            y[m * w->rows + n] = dot(x->values + m * x->cols, w->values + n * w->cols, w->cols);
}
