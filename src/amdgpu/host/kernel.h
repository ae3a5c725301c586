/* Declares a function that the host code of all AMD kernels uses. */
#ifndef BSMM_AMDGPU_HOST_KERNEL_H
#define BSMM_AMDGPU_HOST_KERNEL_H

#include "amdgpu/runtime/device.h"
#include "gpu/refuse.h"

/* Returns NULL if the product passes the tests that all AMD kernels share, else the reason why the
 * kernel `function` cannot compute it. Reasons are that the module is not in this build, that the
 * module has no code for the device's processor, or that device code does not support an operand's
 * elements. The function `refuse` of each kernel calls this function first. */
const char *bsmm_hip_refuse(const bsmm_product *product, const bsmm_hip_function *function,
                            char *why, size_t size);

#endif
