/* These are the kernels for few rows of A whose weights are mxfp4. */
#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS(bf16_mxfp4, BF16, MXFP4)
FUNCTIONS(f16_mxfp4, F16, MXFP4)
FUNCTIONS(mxfp4_mxfp4, MXFP4, MXFP4)
FUNCTIONS(mxfp8_mxfp4, MXFP8, MXFP4)
FUNCTIONS(e4m3_mxfp4, E4M3, MXFP4)
