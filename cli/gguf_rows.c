#include "gguf_rows.h"
#include "common.h"
#include "files.h"
#include <stdlib.h>
#include <string.h>

int64_t cli_gguf_row(int64_t row, int64_t head_rows) {
    const int64_t in_head = row % head_rows;
    return row - in_head + in_head % 2 * (head_rows / 2) + in_head / 2;
}

static void copy_rows(const void *from, void *to, uint64_t bytes, int64_t rows, int64_t head_rows) {
    const uint64_t each = bytes / (uint64_t)rows;
    for (int64_t row = 0; row < rows && from; row++)
        memcpy((char *)to + (uint64_t)row * each,
               (const char *)from + (uint64_t)cli_gguf_row(row, head_rows) * each, each);
}

/* Tells whether the rows of a matrix can be reordered by copying bytes. The matrix must be
 * row-major, without gaps between rows. It must have no scales, row-major scales of single rows
 * without gaps, or one scale for all rows. `scales` is the number of bytes that the scales take
 * without gaps. */
static bool has_rows(const bsmm_matrix *matrix, uint64_t scales) {
    if (matrix->order != BSMM_ORDER_ROW || (matrix->ld && matrix->ld != matrix->cols)) return false;
    if (matrix->format.scale == BSMM_SCALE_NONE) return true;
    return matrix->scale_layout == BSMM_LAYOUT_ROW_MAJOR && matrix->format.block_rows <= 1 &&
           matrix->scale_bytes == scales;
}

void *cli_gguf_reorder(bsmm_matrix *matrix, int64_t heads, const char **why) {
    bsmm_matrix copy = *matrix;
    uint64_t data, scales = 0;
    copy.ld = copy.scale_ld = 0;
    copy.data = copy.scales = NULL;
    copy.data_bytes = copy.scale_bytes = 0;
    if ((*why = cli_reason(bsmm_data_bytes(&copy, &data))) ||
        (*why = cli_reason(bsmm_scale_bytes(&copy, &scales))))
        return NULL;
    *why = "its rows cannot be reordered for GGUF, because several rows share scales";
    if (!has_rows(matrix, scales) || matrix->rows % (2 * heads)) return NULL;
    void *memory = cli_matrix_allocate(&copy);
    *why = memory ? NULL : bsmm_error_message();
    if (!memory) return NULL;
    copy_rows(matrix->data, copy.data, data, matrix->rows, matrix->rows / heads);
    if (copy.format.block_rows == 1)
        copy_rows(matrix->scales, copy.scales, scales, matrix->rows, matrix->rows / heads);
    else if (scales)
        memcpy(copy.scales, matrix->scales, scales);
    *matrix = copy;
    return memory;
}
