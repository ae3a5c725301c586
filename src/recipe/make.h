/* The steps' constants for a format; host only. */
#ifndef BSMM_RECIPE_MAKE_H
#define BSMM_RECIPE_MAKE_H

#include "format/format.h"
#include "recipe/coder.h"

/* elem: of 16 bits or fewer. */
bsmm_coder bsmm_coder_make(uint32_t elem, bool saturate, bsmm_ties ties, bsmm_zero_sign zero_sign);

/* Without a second level, for values that come from format source_elem. */
bsmm_tensor_step bsmm_tensor_step_make(uint32_t elem, uint32_t source_elem, bool pow2);

#endif
