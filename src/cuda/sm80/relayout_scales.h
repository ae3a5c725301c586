/* The kernels move_scales and move_both share this function, which copies block scales of any
 * layout one by one, or four adjacent scales at once. */
#ifndef BSMM_CUDA_SM80_RELAYOUT_SCALES_H
#define BSMM_CUDA_SM80_RELAYOUT_SCALES_H

#include "gpu/recode_small.h"

/* Loads four adjacent scale codes of a row, by `count` loads (2 or 4). Each load reads 4 / count
 * codes and stores them to one entry of `pieces`. A code outside the source matrix must become 0.
 * To avoid a branch, this function loads some other code of the source instead, and join_pieces
 * later replaces it by 0. */
static __device__ __forceinline__ void load_pieces(const bsmm_relayout_job *job, uint32_t count,
                                                   uint32_t row, uint32_t column,
                                                   uint32_t *pieces) {
    const uint32_t bytes = 4 / count, known_row = min(row, job->known_rows - 1),
                   known_column = min(column, (job->known_cols - 1) / 4 * 4),
                   last = job->known_cols - known_column - bytes;
    const uint8_t *const from = job->from + bsmm_axis_at(&job->from_row_map, known_row) +
                                bsmm_axis_at(&job->from_col_map, known_column);
#pragma unroll
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *const at = from + min(i * bytes, last);
        pieces[i] = bytes == 2 ? __ldg((const uint16_t *)at) : __ldg(at);
    }
}

/* Joins what load_pieces has loaded to one word. Codes outside the source are 0. */
static __device__ __forceinline__ uint32_t join_pieces(const bsmm_relayout_job *job, uint32_t count,
                                                       uint32_t row, uint32_t column,
                                                       const uint32_t *pieces) {
    const uint32_t bytes = 4 / count;
    uint32_t word = 0;
#pragma unroll
    for (uint32_t i = 0; i < count; i++) {
        const bool known = row < job->known_rows && column + i * bytes < job->known_cols;
        word |= known ? pieces[i] << 8 * bytes * i : 0;
    }
    return word;
}

/* Copies the scales of one thread: BSMM_MOVED_ROWS rows, beginning with row `row0` and row_stride
 * rows apart, and in each row either column `column` alone or the four columns `column` to `column`
 * + 3 (move_block). `loads` is the number of loads for four codes. Callers pass it as a constant:
 * job->by_words, or 1 if a thread makes one load per row. All loads begin before the thread uses
 * what it has loaded, so that they overlap. */
static __device__ __forceinline__ void move_rows(const bsmm_relayout_job *job, uint32_t loads,
                                                 uint32_t row_stride, uint32_t row0,
                                                 uint32_t column) {
    const bool word = job->by_words || job->wide;
    uint32_t codes[BSMM_MOVED_ROWS][4];
#pragma unroll
    for (int i = 0; i < BSMM_MOVED_ROWS; i++)
        if (loads > 1)
            load_pieces(job, loads, row0 + i * row_stride, column, codes[i]);
        else
            codes[i][0] = bsmm_move_load(job, word, row0 + i * row_stride, column);
#pragma unroll
    for (int i = 0; i < BSMM_MOVED_ROWS; i++) {
        const uint32_t row = row0 + i * row_stride;
        if (row < job->rows)
            bsmm_move_store(job, word, row, column,
                            loads > 1 ? join_pieces(job, loads, row, column, codes[i])
                                      : codes[i][0]);
    }
}

/* Copies the scales that one thread of a thread block of `threads` threads moves. `across` and
 * `down` are the position of the thread block in the grid, along a row and along a column of the
 * scale matrix. The thread copies BSMM_MOVED_ROWS rows of one column, or of four adjacent columns
 * if `by_words` is set. Returns false if the thread has no scales, because its first row or column
 * lies past the end of the matrix. */
static __device__ __forceinline__ bool move_block(const bsmm_relayout_job *job, uint32_t threads,
                                                  uint32_t across, uint32_t down) {
    const uint32_t lanes = 1u << job->lanes_log2, row_stride = threads >> job->lanes_log2,
                   index = across * lanes + (threadIdx.x & (lanes - 1)),
                   column = job->by_words ? 4 * index : index,
                   row0 = down * row_stride * BSMM_MOVED_ROWS + (threadIdx.x >> job->lanes_log2);
    if (column >= job->cols || row0 >= job->rows) return false;
    if (job->by_words == 2)
        move_rows(job, 2, row_stride, row0, column);
    else if (job->by_words == 4)
        move_rows(job, 4, row_stride, row0, column);
    else
        move_rows(job, 1, row_stride, row0, column);
    return true;
}

#endif
