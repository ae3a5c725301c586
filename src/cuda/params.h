/* From a product to what kernels are given of it. */
#ifndef BSMM_CUDA_PARAMS_H
#define BSMM_CUDA_PARAMS_H

#include "core/kernel.h"
#include "cuda/epilogue.h"

bsmm_cuda_operand bsmm_cuda_operand_of(const bsmm_operand *o);

/* D is unscaled. */
bsmm_cuda_epilogue bsmm_cuda_epilogue_of(const bsmm_product *p);

/* Whether all extents fit the 32-bit indices of kernels. */
bool bsmm_cuda_is_small(const bsmm_product *p);

#endif
