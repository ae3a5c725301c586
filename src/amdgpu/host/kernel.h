/* Declares a function that the host code of all AMD kernels uses. */
#ifndef BSMM_AMDGPU_HOST_KERNEL_H
#define BSMM_AMDGPU_HOST_KERNEL_H

#include "amdgpu/runtime/device.h"
#include "core/kernel.h"

/* Returns NULL if the kernel `function` can compute the product as far as all AMD kernels test it,
 * else the reason why not. Reasons are that the module is not in this build, that it has no code
 * for the device's processor, or that device code does not support an operand's elements. The
 * function `refuse` of each kernel calls it first. */
const char *bsmm_hip_refuse(const bsmm_product *product, const bsmm_hip_function *function,
                            char *why, size_t size);

#endif
