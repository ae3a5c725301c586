/* The kernels for few rows of A whose weights are mxfp6. They exist for gfx950 only, which has
 * instructions that decode 6-bit elements. */
#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS(bf16_mxfp6_e2m3, BF16, MXFP6_E2M3)
FUNCTIONS(bf16_mxfp6_e3m2, BF16, MXFP6_E3M2)
FUNCTIONS(f16_mxfp6_e2m3, F16, MXFP6_E2M3)
FUNCTIONS(f16_mxfp6_e3m2, F16, MXFP6_E3M2)
FUNCTIONS(mxfp6_e2m3_mxfp6_e2m3, MXFP6_E2M3, MXFP6_E2M3)
FUNCTIONS(mxfp6_e3m2_mxfp6_e3m2, MXFP6_E3M2, MXFP6_E3M2)
FUNCTIONS(mxfp8_mxfp6_e2m3, MXFP8, MXFP6_E2M3)
FUNCTIONS(mxfp8_mxfp6_e3m2, MXFP8, MXFP6_E3M2)
