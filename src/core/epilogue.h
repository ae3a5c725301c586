/* The epilogue that scalar kernels share (core/epilogue.c). */
#ifndef BSMM_CORE_EPILOGUE_H
#define BSMM_CORE_EPILOGUE_H

#include "core/kernel.h"

/* One row of the table of activations (core/activation.c). */
typedef struct bsmm_activation_row {
    bsmm_activation_info info;
    double (*apply)(double x, double slope);
} bsmm_activation_row;

const bsmm_activation_row *bsmm_activation_row_of(uint32_t activation); /* NULL if there is none */

/* f(x) of one row, or of a gated one f(gate) * up, with clamps and offset. */
double bsmm_finish_activate(const bsmm_finish *finish, double gate, double up);

/* Whether a result is made of two columns of A x B^T. */
static inline bool bsmm_is_gated(const bsmm_product *product) {
    return product->finish && product->finish->activation->info.is_gated;
}

/* Sums of a block of D. The first column's sum in row r is acc[r * pitch], that of the column after
 * it `step` further; under a gated activation these are the gates, and ups lie `up` further. */
typedef struct bsmm_sums {
    const double *acc;
    int64_t pitch, step, up;
} bsmm_sums;

/* Stores rows [row, row + rows) x columns [col, col + cols) of the finished product into an
 * unscaled D, rounding once. */
void bsmm_epilogue_store(const bsmm_product *product, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, const bsmm_sums *sums);

/* Stores whole rows [row, row + rows), whole blocks of rows, of a block-scaled D: the finished
 * values are rounded to fp32 and quantized by the product's recipe. values: scratch, rows x D's
 * columns. The scales' padding is bsmm_recipe_pad's. */
void bsmm_epilogue_quantize(const bsmm_product *product, int64_t row, int64_t rows,
                            const bsmm_sums *sums, float *values);

#endif
