/* Defines the kernels for A with elements of type e2m1 (scaled_body.h). */
#define A_TYPE BSMM_F8F6F4_E2M1
#include "amdgpu/gfx950/scaled_body.h"

LARGE(e2m1, E2M1)
