/* Defines the kernels for A with elements of type e3m2 (scaled_body.h). */
#define A_TYPE    BSMM_F8F6F4_E3M2
#define TILE_e3m2 KERNEL
/* Without this macro, kernels with large tiles would spill scalar registers (gemm_part_here). */
#define GEMM_SKIPS_PARTS
#include "amdgpu/gfx950/scaled_body.h"
