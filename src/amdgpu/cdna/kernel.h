/* Declares what kernels for CDNA3 and CDNA4 need in plain C: address spaces, the kernel attribute,
 * and the thread and workgroup numbers. A kernel takes a structure as a parameter by value and
 * passes its address on. The compiler then reads the structure where the launch stored it, without
 * a copy. */
#ifndef BSMM_AMDGPU_CDNA_KERNEL_H
#define BSMM_AMDGPU_CDNA_KERNEL_H

#include "base/device.h"

#define BSMM_GLOBAL __attribute__((address_space(1)))
#define BSMM_LDS    __attribute__((address_space(3), loader_uninitialized))

/* Declares a kernel whose workgroups have `threads` threads. The number must be a multiple of
 * 64. */
#define BSMM_KERNEL(threads)                                                                       \
    __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(threads, threads))) void

BSMM_DEVICE uint32_t bsmm_thread(void) {
    return __builtin_amdgcn_workitem_id_x();
}

/* Returns a pointer to the kernel's parameters, which begin with a structure `type`. Kernels use
 * this macro if they have more parameters than the scalar registers can hold. The empty assembly
 * hides from the compiler that all threads read the same address. The compiler therefore loads a
 * field into vector registers where the kernel uses it. */
#define BSMM_PARAMETERS(type)                                                                      \
    ((const type *)(const __attribute__((address_space(4))) type *)bsmm_hidden_parameters())

BSMM_DEVICE const __attribute__((address_space(4))) void *bsmm_hidden_parameters(void) {
    const __attribute__((address_space(4))) void *from = __builtin_amdgcn_kernarg_segment_ptr();
    __asm__("" : "+v"(from));
    return from;
}

/* bsmm_group_x and bsmm_group_y return the workgroup's number along x and along y of the grid. */
BSMM_DEVICE uint32_t bsmm_group_x(void) {
    return __builtin_amdgcn_workgroup_id_x();
}

BSMM_DEVICE uint32_t bsmm_group_y(void) {
    return __builtin_amdgcn_workgroup_id_y();
}

#endif
