/* Defines the kernels for A with elements of type e2m1 (scaled_body.h). */
#define A_TYPE    BSMM_F8F6F4_E2M1
#define TILE_e2m1 KERNEL
/* Without this macro, kernels with large tiles would spill scalar registers (gemm_part_here). */
#define GEMM_SKIPS_PARTS
/* bsmm_isa_touch needs two vector registers that the compiler does not use. */
#define KERNEL_ATTRIBUTES __attribute__((amdgpu_num_vgpr(126)))
#include "amdgpu/gfx950/scaled_body.h"
