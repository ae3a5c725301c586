/* Defines the kernels for A with elements of type e4m3 (scaled_body.h). */
#define A_TYPE BSMM_F8F6F4_E4M3
#include "amdgpu/gfx950/scaled_body.h"

LARGE(e4m3, E4M3)
LARGE(e2m1, E2M1)
