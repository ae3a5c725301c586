/* Defines the kernels for few rows of A whose weights are mxfp6. One file for each processor
 * includes this file. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_MXFP6_H
#define BSMM_AMDGPU_CDNA_SMALL_M_MXFP6_H

#include "amdgpu/cdna/small_m_body.h"

FUNCTIONS(bf16_mxfp6_e2m3, BF16, MXFP6_E2M3)
FUNCTIONS(bf16_mxfp6_e3m2, BF16, MXFP6_E3M2)
FUNCTIONS(f16_mxfp6_e2m3, F16, MXFP6_E2M3)
FUNCTIONS(f16_mxfp6_e3m2, F16, MXFP6_E3M2)
FUNCTIONS(mxfp6_e2m3_mxfp6_e2m3, MXFP6_E2M3, MXFP6_E2M3)
FUNCTIONS(mxfp6_e3m2_mxfp6_e3m2, MXFP6_E3M2, MXFP6_E3M2)
FUNCTIONS(mxfp8_mxfp6_e2m3, MXFP8, MXFP6_E2M3)
FUNCTIONS(mxfp8_mxfp6_e3m2, MXFP8, MXFP6_E3M2)
FUNCTIONS(e4m3_mxfp6_e2m3, E4M3, MXFP6_E2M3)
FUNCTIONS(e4m3_mxfp6_e3m2, E4M3, MXFP6_E3M2)

#endif
