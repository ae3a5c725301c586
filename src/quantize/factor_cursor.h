/* Declares a cursor that walks along the factors of adjacent blocks, some columns at a time, for
 * vectors of any width. A factor is the number by which a block's values are multiplied or
 * divided. */
#ifndef BSMM_QUANTIZE_FACTOR_CURSOR_H
#define BSMM_QUANTIZE_FACTOR_CURSOR_H

#include "base/base.h"

/* A cursor is a position in an array of factors, which has one factor for each block of `width`
 * columns. `left` is the number of columns that remain in the current block. After the last factor,
 * the cursor stays on it. A caller loads the current factor as a scalar. The factors were stored as
 * scalars just before, and a scalar load gets such a value by store forwarding. A vector load of
 * several factors could not: it would wait until all earlier stores are done, including stores that
 * miss the caches. */
typedef struct factor_cursor {
    const float *at, *last;
    int64_t left, width;
} factor_cursor;

static inline __attribute__((always_inline)) factor_cursor
factors_from(const float *factors, int64_t cols, int64_t width) {
    int64_t blocks = bsmm_ceil_div(cols, width);
    return (factor_cursor){factors, factors + blocks - 1, width, width};
}

/* Advances the cursor by `count` columns. */
static inline __attribute__((always_inline)) void pass_columns(factor_cursor *cursor, int count) {
    cursor->left -= count;
    bool ends = cursor->left <= 0;
    cursor->at += ends && cursor->at != cursor->last;
    cursor->left += ends ? cursor->width : 0;
}

#endif
