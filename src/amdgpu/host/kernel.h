/* What the host sides of AMD kernels share. */
#ifndef BSMM_AMDGPU_HOST_KERNEL_H
#define BSMM_AMDGPU_HOST_KERNEL_H

#include "amdgpu/runtime/device.h"
#include "core/kernel.h"

/* The reasons that every AMD kernel has: its module is not in this build, or has no code for the
 * device's processor, or an operand's elements are none that device code knows. NULL: none. For a
 * kernel's refuse, ahead of its own reasons. */
const char *bsmm_hip_refuse(const bsmm_product *product, const bsmm_hip_function *function,
                            char *why, size_t size);

#endif
