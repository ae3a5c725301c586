/* Defines the kernels for A with elements of type e4m3 (scaled_body.h). */
#define A_TYPE BSMM_F8F6F4_E4M3
/* Without this macro, the kernel large_e2m1 would spill a scalar register (gemm_part_here). */
#define GEMM_SKIPS_PARTS
#include "amdgpu/gfx950/scaled_body.h"

LARGE(e4m3, E4M3)
LARGE(e2m1, E2M1)
