/* Recipes as kernels and conversions use them; src/quantize implements these functions. A recipe is
 * a rule that chooses scales and rounds values. */
#ifndef BSMM_CORE_RECIPE_H
#define BSMM_CORE_RECIPE_H

#include "format/format.h"

typedef struct bsmm_recipe bsmm_recipe;

/* Finds the recipe of a name for a format; NULL means the format's default. NOT_FOUND or
 * UNSUPPORTED if there is none. */
bsmm_status bsmm_recipe_find(const char *name, bsmm_format format, const bsmm_recipe **recipe);

/* Quantizes rows [row, row + rows) x columns [col, col + cols) of dst from fp32 values; `pitch` is
 * the distance of their rows in floats. The ranges must be whole blocks, except for short last
 * blocks at the edges of the matrix. `global` is the second-level factor that was already chosen,
 * or 1 if there is none. The function is reentrant: several threads may store disjoint parts that
 * share no byte of packed elements. */
void bsmm_recipe_store(const bsmm_recipe *recipe, const bsmm_operand *dst, int64_t row,
                       int64_t rows, int64_t col, int64_t cols, const float *values, int64_t pitch,
                       float global);

/* Writes 0 to all padding of dst's scales. */
void bsmm_recipe_pad(const bsmm_operand *dst);

#endif
