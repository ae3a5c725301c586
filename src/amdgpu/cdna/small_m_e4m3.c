/* These are the kernels for few rows of A whose weights are e4m3, without scales or with fp32
 * scales that cover whole rows. */
#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS(bf16_e4m3, BF16, E4M3)
FUNCTIONS(f16_e4m3, F16, E4M3)
FUNCTIONS(e4m3_e4m3, E4M3, E4M3)
