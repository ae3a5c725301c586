/* Recipes, as kernels and conversions see them; src/quantize implements them. */
#ifndef BSMM_CORE_RECIPE_H
#define BSMM_CORE_RECIPE_H

#include "format/format.h"

typedef struct bsmm_recipe bsmm_recipe;

/* The recipe of a name (NULL = the format's default) for a format; NOT_FOUND or UNSUPPORTED. */
bsmm_status bsmm_recipe_find(const char *name, bsmm_format format, const bsmm_recipe **recipe);

/* Quantizes rows [row, row + rows) x columns [col, col + cols) of dst, whole blocks (the matrix's
 * last may be short), from fp32 values, `pitch` floats from row to row; global is the second-level
 * factor that is already chosen (1 when there is none). Reentrant; disjoint parts may be stored
 * from different threads where they share no byte of packed elements. */
void bsmm_recipe_store(const bsmm_recipe *recipe, const bsmm_operand *dst, int64_t row,
                       int64_t rows, int64_t col, int64_t cols, const float *values, int64_t pitch,
                       float global);

/* Writes 0 to all padding of dst's scales. */
void bsmm_recipe_pad(const bsmm_operand *dst);

#endif
