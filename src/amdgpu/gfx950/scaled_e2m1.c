/* Defines the kernels for A with elements of type e2m1 (scaled_body.h). */
#define A_TYPE BSMM_F8F6F4_E2M1
/* Without this macro, kernels with large tiles would spill scalar registers (gemm_part_here). */
#define GEMM_SKIPS_PARTS
#include "amdgpu/gfx950/scaled_body.h"

LARGE(e4m3, E4M3)
LARGE(e5m2, E5M2)
LARGE(e2m1, E2M1)
