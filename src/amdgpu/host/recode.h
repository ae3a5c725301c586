/* bsmm_backend's conversions. They only queue work; pointers may have the alignment of their
 * elements. */
#ifndef BSMM_AMDGPU_HOST_RECODE_H
#define BSMM_AMDGPU_HOST_RECODE_H

#include "core/backend.h"

bsmm_status bsmm_hip_quantize(const bsmm_recode *job);
bsmm_status bsmm_hip_dequantize(const bsmm_recode *job);
bsmm_status bsmm_hip_relayout(const bsmm_recode *job);
bsmm_status bsmm_hip_amax(const bsmm_recode *job);

#endif
