/* The epilogue that scalar kernels share (core/epilogue.c). */
#ifndef BSMM_CORE_EPILOGUE_H
#define BSMM_CORE_EPILOGUE_H

#include "core/kernel.h"

/* A row of the table of activations (core/activation.c). */
typedef struct bsmm_activation_row {
    bsmm_activation_info info;
    double (*apply)(double x, double slope);
} bsmm_activation_row;

/* Returns the row of an activation, or NULL if there is none. */
const bsmm_activation_row *bsmm_activation_row_of(uint32_t activation);

/* Computes the activation: f(x), or f(gate) * up of a gated activation, with the clamps and the
 * offset. Without a gate, x is passed as `gate`. */
double bsmm_finish_activate(const bsmm_finish *finish, double gate, double up);

/* Tells whether each result is made of two columns of A x B^T (gate and up). */
static inline bool bsmm_is_gated(const bsmm_product *product) {
    return product->finish && product->finish->activation->info.is_gated;
}

/* The accumulators of a block of D. acc[r * pitch] belongs to row r and the first column; the
 * accumulator of each next column is `step` further. With a gated activation these are the gates,
 * and the accumulators of the ups are `up` further. */
typedef struct bsmm_sums {
    const double *acc;
    int64_t pitch, step, up;
} bsmm_sums;

/* Applies the epilogue to rows [row, row + rows) x columns [col, col + cols) and stores them in an
 * unscaled D, rounded once. */
void bsmm_epilogue_store(const bsmm_product *product, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, const bsmm_sums *sums);

/* Applies the epilogue to the whole rows [row, row + rows) and stores them in a block-scaled D. The
 * rows must be whole blocks. The results are rounded to fp32 and quantized by the product's recipe.
 * `values` is scratch memory of rows x D's columns. The function does not write the padding of the
 * scales; bsmm_recipe_pad does. */
void bsmm_epilogue_quantize(const bsmm_product *product, int64_t row, int64_t rows,
                            const bsmm_sums *sums, float *values);

#endif
