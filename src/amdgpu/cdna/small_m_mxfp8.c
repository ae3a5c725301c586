/* These are the kernels for few rows of A whose weights are mxfp8. */
#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS(bf16_mxfp8, BF16, MXFP8)
FUNCTIONS(f16_mxfp8, F16, MXFP8)
FUNCTIONS(mxfp8_mxfp8, MXFP8, MXFP8)
FUNCTIONS(e4m3_mxfp8, E4M3, MXFP8)
