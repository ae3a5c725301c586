/* Defines the kernels for few rows of A whose weights are mxfp8. One file for each processor
 * includes this file. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_MXFP8_H
#define BSMM_AMDGPU_CDNA_SMALL_M_MXFP8_H

#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS_TO_48x32(bf16_mxfp8, BF16, MXFP8) FUNCTIONS(f16_mxfp8, F16, MXFP8)
    FUNCTIONS_TO_48x32(mxfp8_mxfp8, MXFP8, MXFP8) FUNCTIONS(e4m3_mxfp8, E4M3, MXFP8)

#endif
