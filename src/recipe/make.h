/* Computes the constants that recipes need for an element format. The functions run on the host.
 * GPU kernels get the constants as parameters. */
#ifndef BSMM_RECIPE_MAKE_H
#define BSMM_RECIPE_MAKE_H

#include "format/format.h"
#include "recipe/coder.h"

/* Makes the encoder of an element format with at most 16 bits. */
bsmm_coder bsmm_coder_make(uint32_t elem, bool saturate, bsmm_ties ties, bsmm_zero_sign zero_sign);

/* Makes the constants that the rules for block scales need (bsmm_tensor_step). The second-level
 * scale (the scale of the whole tensor) is 1 at first. `elem` is the element format of the result,
 * and source_elem is that of the values to be quantized. */
bsmm_tensor_step bsmm_tensor_step_make(uint32_t elem, uint32_t source_elem, bool pow2);

#endif
