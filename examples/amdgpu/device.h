/* Defines what the kernels of these AMD examples share, in plain C and without HIP headers. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 64)))

/* These are the vector types of the operands of matrix instructions. Each lane of a wave holds one
 * such vector. */
typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x8 __attribute__((vector_size(32)));

static inline int lane(void) {
    return (int)__builtin_amdgcn_workitem_id_x();
}

/* Stores the matrix D of a 32 x 32 instruction. A lane holds 16 elements of column lane % 32. In
 * each group of eight rows, lanes 0 to 31 hold the first four rows, and lanes 32 to 63 hold the
 * last four rows. */
static inline void store_32x32(GLOBAL float *d, f32x16 sums) {
    for (int i = 0; i < 16; i++)
        d[(8 * (i / 4) + 4 * (lane() / 32) + i % 4) * 32 + lane() % 32] = sums[i];
}

#endif
