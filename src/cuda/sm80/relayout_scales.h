/* The kernels move_scales and move_both share this function, which copies block scales of any
 * layout one by one, or four adjacent scales at once. */
#ifndef BSMM_CUDA_SM80_RELAYOUT_SCALES_H
#define BSMM_CUDA_SM80_RELAYOUT_SCALES_H

#include "gpu/recode_small.h"

/* Copies the scales of one thread block of `threads` threads, which is number `across` along a row
 * of thread blocks and number `down` along a column. Each thread copies BSMM_MOVED_ROWS rows of one
 * column, or of four adjacent columns if `by_words` is set. Returns false if the thread has no
 * scales because the matrix ends before them. */
static __device__ __forceinline__ bool move_block(const bsmm_relayout_job *job, uint32_t threads,
                                                  uint32_t across, uint32_t down) {
    const uint32_t lanes = 1u << job->lanes_log2, rows_apart = threads >> job->lanes_log2,
                   index = across * lanes + (threadIdx.x & (lanes - 1)),
                   column = job->by_words ? 4 * index : index,
                   row0 = down * rows_apart * BSMM_MOVED_ROWS + (threadIdx.x >> job->lanes_log2);
    const bool word = job->by_words || job->wide;
    uint32_t codes[BSMM_MOVED_ROWS];
    if (column >= job->cols || row0 >= job->rows) return false;
#pragma unroll
    for (int i = 0; i < BSMM_MOVED_ROWS; i++)
        codes[i] = bsmm_move_load(job, word, row0 + i * rows_apart, column);
#pragma unroll
    for (int i = 0; i < BSMM_MOVED_ROWS; i++)
        if (row0 + i * rows_apart < job->rows)
            bsmm_move_store(job, word, row0 + i * rows_apart, column, codes[i]);
    return true;
}

#endif
