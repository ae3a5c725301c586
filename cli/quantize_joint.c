#include "quantize_joint.h"
#include "common.h"
#include <stdlib.h>
#include <string.h>

/* Fused weights, such as those of q, k and v, share a scale that follows from the largest magnitude
 * of all of them. Returns the description of a copy of a matrix that has one more row. This row
 * receives the largest magnitude, so that quantizing the copy gives the shared scale. The function
 * allocates memory for the copy's elements. A matrix that has a scale
 * has only one, whose block is the whole matrix. The copy's block therefore has one more row, too.
 */
static bsmm_matrix taller(const bsmm_matrix *matrix, const char **why) {
    bsmm_matrix copy = *matrix;
    copy.rows++;
    if (copy.format.scale != BSMM_SCALE_NONE) copy.format.block_rows++;
    copy.ld = 0;
    copy.data = NULL;
    copy.data_bytes = 0;
    *why = cli_reason(bsmm_data_bytes(&copy, &copy.data_bytes));
    if (!*why) copy.data = cli_alloc(copy.data_bytes, 1);
    return copy;
}

/* Returns the number of bytes of `cols` elements in a row of the matrix. */
static uint64_t row_bytes(const bsmm_matrix *matrix, int64_t cols) {
    bsmm_matrix row = BSMM_INIT(bsmm_matrix);
    uint64_t bytes = 0;
    row.format.elem = matrix->format.elem;
    row.rows = 1;
    row.cols = cols;
    return bsmm_data_bytes(&row, &bytes) ? 0 : bytes;
}

static uint8_t *row_at(const bsmm_matrix *matrix, int64_t row) {
    const uint64_t pitch = row_bytes(matrix, matrix->ld ? matrix->ld : matrix->cols);
    return (uint8_t *)matrix->data + (uint64_t)row * pitch;
}

static void copy_rows(const bsmm_matrix *from, const bsmm_matrix *to, int64_t rows) {
    const uint64_t bytes = row_bytes(from, from->cols);
    for (int64_t row = 0; row < rows; row++)
        memcpy(row_at(to, row), row_at(from, row), bytes);
}

/* Stores a number as the first element of the last row, where it becomes the largest magnitude of
 * the matrix. */
static const char *put_last(const bsmm_matrix *matrix, float value) {
    bsmm_matrix from = BSMM_INIT(bsmm_matrix), to = BSMM_INIT(bsmm_matrix);
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    from.format.elem = BSMM_ELEM_F32;
    to.format = matrix->format;
    from.rows = from.cols = to.rows = to.cols = 1;
    from.data = &value;
    to.data = row_at(matrix, matrix->rows - 1);
    desc.src = &from;
    desc.dst = &to;
    return cli_reason(bsmm_quantize(&desc, NULL));
}

const char *quantize_joint(const bsmm_matrix *source, const bsmm_matrix *target, float amax,
                           quantize_fill *fill, const void *context) {
    const char *why, *other;
    bsmm_matrix from = taller(source, &why), to = taller(target, &other);
    if (!why) why = other;
    if (!why) {
        copy_rows(source, &from, source->rows);
        why = put_last(&from, amax);
    }
    if (!why) why = fill(context, &from, &to);
    if (!why) copy_rows(&to, target, target->rows);
    free(from.data);
    free(to.data);
    return why;
}
