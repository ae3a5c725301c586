/* These are the kernels for few rows of A whose weights are nvfp4. */
#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS_TO_48x64(bf16_nvfp4, BF16, NVFP4) FUNCTIONS(f16_nvfp4, F16, NVFP4)
    FUNCTIONS(e4m3_nvfp4, E4M3, NVFP4)
