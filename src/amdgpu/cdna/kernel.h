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

/* The launch's parameters, which begin with a `type`, for a kernel that has more of them than
 * scalar registers: the compiler, which no longer knows that all threads read the same there, reads
 * them into vector registers when it needs them. */
#define BSMM_PARAMETERS(type)                                                                      \
    ((const type *)(const __attribute__((address_space(4))) type *)bsmm_hidden_parameters())

BSMM_DEVICE const __attribute__((address_space(4))) void *bsmm_hidden_parameters(void) {
    const __attribute__((address_space(4))) void *from = __builtin_amdgcn_kernarg_segment_ptr();
    __asm__("" : "+v"(from));
    return from;
}

/* Workgroup along x and y, and how many there are. */
BSMM_DEVICE uint32_t bsmm_group_x(void) {
    return __builtin_amdgcn_workgroup_id_x();
}

BSMM_DEVICE uint32_t bsmm_group_y(void) {
    return __builtin_amdgcn_workgroup_id_y();
}

#endif
