/* Declares the functions by which kernels and conversions use recipes. A recipe is a rule that
 * chooses the scales of blocks and rounds values to elements. src/quantize implements these
 * functions. */
#ifndef BSMM_CORE_RECIPE_H
#define BSMM_CORE_RECIPE_H

#include "core/backend.h"

typedef struct bsmm_recipe bsmm_recipe;

/* Finds the recipe with a name for a format. If `name` is NULL, it finds the format's default
 * recipe. It fails with NOT_FOUND if no recipe has that name, and with UNSUPPORTED if the recipe
 * does not support the format. */
bsmm_status bsmm_recipe_find(const char *name, bsmm_format format, const bsmm_recipe **recipe);

/* Sets the fields `recipe` and `steps` of a conversion that a device will run. */
void bsmm_recipe_set(const bsmm_recipe *recipe, bsmm_recode *job);

/* Quantizes fp32 values into rows [row, row + rows) and columns [col, col + cols) of dst. `values`
 * has a row pitch of `pitch` floats. The rectangle must consist of whole scale blocks; only at the
 * edges of the matrix may its last blocks be shorter. `global` is the second-level scale, which the
 * caller has chosen already, or 1 if there is none. Several threads may call the function at the
 * same time for rectangles that share no byte of packed elements. */
void bsmm_recipe_store(const bsmm_recipe *recipe, const bsmm_operand *dst, int64_t row,
                       int64_t rows, int64_t col, int64_t cols, const float *values, int64_t pitch,
                       float global);

/* Writes 0 to the padding of dst's scales, i.e. to the bytes of the scale layout that hold no
 * scale. */
void bsmm_recipe_pad(const bsmm_operand *dst);

#endif
