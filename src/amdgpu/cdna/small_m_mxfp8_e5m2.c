/* These are the kernels for few rows of A whose weights are mxfp8_e5m2. */
#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS(bf16_mxfp8_e5m2, BF16, MXFP8_E5M2)
FUNCTIONS(f16_mxfp8_e5m2, F16, MXFP8_E5M2)
FUNCTIONS(mxfp8_e5m2_mxfp8_e5m2, MXFP8_E5M2, MXFP8_E5M2)
FUNCTIONS(e4m3_mxfp8_e5m2, E4M3, MXFP8_E5M2)
