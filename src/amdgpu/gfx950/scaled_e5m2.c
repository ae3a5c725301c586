/* Defines the kernels for A with elements of type e5m2 (scaled_body.h). */
#define A_TYPE BSMM_F8F6F4_E5M2
#include "amdgpu/gfx950/scaled_body.h"

LARGE(e5m2, E5M2)
