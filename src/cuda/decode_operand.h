/* How the decode kernels take an operand: its fp32 scales, and what blocks read A from. */
#ifndef BSMM_CUDA_DECODE_OPERAND_H
#define BSMM_CUDA_DECODE_OPERAND_H

#include "cuda/decode_params.h"
#include "cuda/kernel.h"

/* It has fp32 scales, and each step of K lies in one block. */
bool bsmm_decode_has_steady_floats(const bsmm_operand *o);

/* One fp32 scale for all of K: it is applied to results. */
bool bsmm_decode_has_row_floats(const bsmm_operand *o);

/* bf16 numbers that make one value of A. */
uint32_t bsmm_decode_count_parts(const bsmm_operand *a);

bsmm_decode_source bsmm_decode_find_source(const bsmm_operand *a);

#endif
