/* These are the kernels for few rows of A whose weights are e4m3 with fp32 scales. */
#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS(bf16_fp8, BF16, FP8_FLOATS)
FUNCTIONS(f16_fp8, F16, FP8_FLOATS)
FUNCTIONS(fp8_fp8, FP8_FLOATS, FP8_FLOATS)
