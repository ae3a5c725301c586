/* Declares the activations and the scalar epilogue (core/epilogue.c). */
#ifndef BSMM_CORE_EPILOGUE_H
#define BSMM_CORE_EPILOGUE_H

#include "core/kernel.h"

/* `bsmm_activation_row` is an entry of the table of activations (core/activation.c). It holds the
 * activation's properties and the function that applies it. */
typedef struct bsmm_activation_row {
    bsmm_activation_info info;
    double (*apply)(double x, double slope);
} bsmm_activation_row;

/* Returns the table entry of an activation, or NULL if the number is not one of an activation. */
const bsmm_activation_row *bsmm_activation_row_of(uint32_t activation);

/* Computes the activation in double. A plain activation f returns f(gate), and `up` is ignored. A
 * gated activation returns f(gate) * (up + offset), after gate and up have been clamped to the
 * epilogue's limit. */
double bsmm_epilogue_activate(const bsmm_product_epilogue *epilogue, double gate, double up);

/* Tells whether the product has a gated activation, which computes each column of D from two
 * columns of A x B^T: a gate and an up. */
static inline bool bsmm_is_gated(const bsmm_product *product) {
    return product->epilogue && product->epilogue->activation->info.is_gated;
}

/* Describes the accumulators of a rectangle of D, as an array of doubles. The accumulator for row r
 * and column c of the rectangle is acc[r * pitch + c * step]. With a gated activation, f(gate) *
 * up, a result has two accumulators: acc[r * pitch + c * step] is that of the gate, and acc[r *
 * pitch + c * step + up] is that of the up. */
typedef struct bsmm_sums {
    const double *acc;
    int64_t pitch, step, up;
} bsmm_sums;

/* Applies the epilogue to the accumulators of rows [row, row + rows) and columns [col, col + cols)
 * of D. It rounds each result once and stores it. D must not have scales. */
void bsmm_epilogue_store(const bsmm_product *product, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, const bsmm_sums *sums);

/* Applies the epilogue to rows [row, row + rows) of D and stores the results as block-scaled
 * values. The rows must consist of whole scale blocks. The results are rounded to fp32 and
 * quantized by the product's recipe. `values` is scratch memory for rows x (D's columns) floats.
 * This function does not write the padding of D's scales. The caller must call bsmm_recipe_pad to
 * write the padding. */
void bsmm_epilogue_quantize(const bsmm_product *product, int64_t row, int64_t rows,
                            const bsmm_sums *sums, float *values);

#endif
