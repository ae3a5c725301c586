/* Defines the kernels for A with elements of type e2m3 (scaled_body.h). */
#define A_TYPE    BSMM_F8F6F4_E2M3
#define TILE_e2m3 KERNEL
/* With this macro, a kernel does not compute the number of its part of K if K is not split
 * (gemm_part_here). Without it, kernels with large tiles would spill scalar registers. */
#define GEMM_SKIPS_PARTS
#include "amdgpu/gfx950/scaled_body.h"
