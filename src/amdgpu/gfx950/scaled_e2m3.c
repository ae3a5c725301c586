/* Defines the kernels for A with elements of type e2m3 (scaled_body.h). */
#define A_TYPE BSMM_F8F6F4_E2M3
#include "amdgpu/gfx950/scaled_body.h"

LARGE(e4m3, E4M3)
LARGE(e5m2, E5M2)
LARGE(e2m3, E2M3)
LARGE(e3m2, E3M2)
