/* Functions that the host sides of the CUDA kernels share. */
#ifndef BSMM_CUDA_HOST_KERNEL_H
#define BSMM_CUDA_HOST_KERNEL_H

#include "core/kernel.h"
#include "cuda/runtime/device.h"

/* Returns a reason that applies to every CUDA kernel, or NULL if there is none: the kernel's module
 * is not in this build, or the module has no image for the device (modules in "sm90a/" run on
 * compute capability 9.0 only, those in "sm80/" from 8.0 on). A kernel's refuse calls it before it
 * tests its own reasons. */
const char *bsmm_cuda_refuse(const bsmm_product *product, const bsmm_cuda_function *function,
                             char *why, size_t size);

/* Returns a reason that applies to every CUDA kernel except the generic one, or NULL if there is
 * none: D is block-scaled, or an extent is 0 or beyond 32 bits. */
const char *bsmm_cuda_refuse_product(const bsmm_product *product);

/* Returns true for the element formats that Hopper's FP8 tensor cores multiply. */
bool bsmm_cuda_is_fp8(uint32_t elem);

/* Returns true if the operand has fp32 scales, and each scale holds for 128 columns that begin at a
 * multiple of 128, or for whole rows. */
bool bsmm_cuda_has_groups(const bsmm_operand *o);
/* Returns true if bsmm_cuda_has_groups does, and each scale also holds for 128 rows that begin at a
 * multiple of 128, or for all rows. */
bool bsmm_cuda_has_row_groups(const bsmm_operand *o);

#endif
