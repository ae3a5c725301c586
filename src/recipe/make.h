/* The constants of the quantization steps for a format. GPU kernels get them as parameters; this
 * code runs on the host only. */
#ifndef BSMM_RECIPE_MAKE_H
#define BSMM_RECIPE_MAKE_H

#include "format/format.h"
#include "recipe/coder.h"

/* Makes the encoder of an element format of at most 16 bits. */
bsmm_coder bsmm_coder_make(uint32_t elem, bool saturate, bsmm_ties ties, bsmm_zero_sign zero_sign);

/* Makes the constants of a tensor without a second-level scale. source_elem is the format of the
 * values to be quantized. */
bsmm_tensor_step bsmm_tensor_step_make(uint32_t elem, uint32_t source_elem, bool pow2);

#endif
