/* What the host sides of CUDA kernels share. */
#ifndef BSMM_CUDA_HOST_KERNEL_H
#define BSMM_CUDA_HOST_KERNEL_H

#include "core/kernel.h"
#include "cuda/runtime/device.h"

/* The reasons that every CUDA kernel has: its module is not in this build, or has no image that the
 * device runs ("sm90a/..." runs on 9.0 alone, "sm80/..." from 8.0 on). NULL: none. For a kernel's
 * refuse, ahead of its own reasons. */
const char *bsmm_cuda_refuse(const bsmm_product *product, const bsmm_cuda_function *function,
                             char *why, size_t size);

/* The reasons of all kernels but the one that takes what no other does: a block-scaled D, extents
 * that are 0 or beyond 32 bits. NULL: none. */
const char *bsmm_cuda_refuse_product(const bsmm_product *product);

/* The elements of Hopper's FP8 tensor cores. */
bool bsmm_cuda_is_fp8(uint32_t elem);

/* fp32 scales of 1 x 128 or 128 x 128. */
bool bsmm_cuda_has_groups(const bsmm_operand *o);

#endif
