/* Plain C for AMD's matrix cores: what the kernels of these examples share. No HIP headers. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 64)))

/* Vectors as the instructions take them: each lane of a wave holds one. */
typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x8 __attribute__((vector_size(32)));

static inline int lane(void) {
    return (int)__builtin_amdgcn_workitem_id_x();
}

/* D of the 32 x 32 instructions: a lane holds column lane % 32, four rows of each eight. */
static inline void store_32x32(GLOBAL float *d, f32x16 sums) {
    for (int i = 0; i < 16; i++)
        d[(8 * (i / 4) + 4 * (lane() / 32) + i % 4) * 32 + lane() % 32] = sums[i];
}

#endif
