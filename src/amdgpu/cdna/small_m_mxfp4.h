/* Defines the kernels for few rows of A whose weights are mxfp4. One file for each processor
 * includes this file. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_MXFP4_H
#define BSMM_AMDGPU_CDNA_SMALL_M_MXFP4_H

#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS_TO_48x64(bf16_mxfp4, BF16, MXFP4) FUNCTIONS(f16_mxfp4, F16, MXFP4)
    FUNCTIONS_TO_48x64(mxfp4_mxfp4, MXFP4, MXFP4) FUNCTIONS_TO_48x32(mxfp8_mxfp4, MXFP8, MXFP4)
        FUNCTIONS(e4m3_mxfp4, E4M3, MXFP4)

#endif
