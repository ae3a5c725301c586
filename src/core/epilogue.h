/* The epilogue that scalar kernels share (core/epilogue.c). */
#ifndef BSMM_CORE_EPILOGUE_H
#define BSMM_CORE_EPILOGUE_H

#include "core/kernel.h"

/* Stores rows [row, row + rows) x columns [col, col + cols) of alpha * acc + beta * C + bias into
 * an unscaled D, rounding once; acc is dense, `pitch` doubles from row to row. */
void bsmm_epilogue_store(const bsmm_product *product, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, const double *acc, int64_t pitch);

/* Stores whole rows [row, row + rows), whole blocks of rows, of a block-scaled D: the finished
 * values are rounded to fp32 and quantized by the product's recipe. values: scratch, rows x N. The
 * scales' padding is bsmm_recipe_pad's. */
void bsmm_epilogue_quantize(const bsmm_product *product, int64_t row, int64_t rows,
                            const double *acc, float *values);

#endif
