/* What the host sides of CUDA kernels share. */
#ifndef BSMM_CUDA_KERNEL_H
#define BSMM_CUDA_KERNEL_H

#include "core/kernel.h"
#include "cuda/device.h"

/* The reasons that every CUDA kernel has: its module is not in this build, or the device is of
 * another architecture ("sm90a/..." runs on 9.0 alone, "sm80/..." from 8.0 on). NULL: none. For a
 * kernel's refuse, ahead of its own reasons. */
const char *bsmm_cuda_refuse(const bsmm_product *product, const bsmm_cuda_function *function,
                             char *why, size_t size);

#endif
