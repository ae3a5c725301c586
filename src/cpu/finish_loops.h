/* The epilogue's loops over contiguous rows, compiled for what the processor has. */
#ifndef BSMM_CPU_FINISH_LOOPS_H
#define BSMM_CPU_FINISH_LOOPS_H

#include "format/format.h"

enum { BSMM_FINISH_ELEMS = BSMM_ELEM_BF16 + 1 };

/* Rounds values once, to nearest even. */
typedef void bsmm_finish_store_loop(const double *values, int64_t cols, void *to);

typedef struct bsmm_finish_loops {
    /* values[i] = acc[i] * row_factor * factors[i] */
    void (*scale)(const float *acc, double row_factor, const double *factors, int64_t cols,
                  double *values);
    bsmm_finish_store_loop *store[BSMM_FINISH_ELEMS]; /* by element format */
} bsmm_finish_loops;

/* All give the same bits. */
const bsmm_finish_loops *bsmm_finish_loops_get(void);

#endif
