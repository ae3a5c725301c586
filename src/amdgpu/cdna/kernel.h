/* How kernels for AMD's CDNA3 and CDNA4 are declared, in plain C by clang: address spaces, and
 * where a thread is. A parameter that is a structure comes by value, and a kernel passes its
 * address on: the compiler reads it where the launch put it. */
#ifndef BSMM_AMDGPU_CDNA_KERNEL_H
#define BSMM_AMDGPU_CDNA_KERNEL_H

#include "base/device.h"

#define BSMM_GLOBAL __attribute__((address_space(1)))
#define BSMM_LDS    __attribute__((address_space(3), loader_uninitialized))

/* A kernel whose workgroups have `threads` threads, a multiple of 64. */
#define BSMM_KERNEL(threads)                                                                       \
    __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(threads, threads))) void

BSMM_DEVICE uint32_t bsmm_thread(void) {
    return __builtin_amdgcn_workitem_id_x();
}

/* Workgroup along x and y, and how many there are. */
BSMM_DEVICE uint32_t bsmm_group_x(void) {
    return __builtin_amdgcn_workgroup_id_x();
}

BSMM_DEVICE uint32_t bsmm_group_y(void) {
    return __builtin_amdgcn_workgroup_id_y();
}

#endif
