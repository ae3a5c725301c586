/* Declares the conversion functions of the backend for AMD GPUs (bsmm_backend in core/backend.h).
 * The functions queue work on a stream and do not wait for it. A pointer needs only the alignment
 * of its elements. */
#ifndef BSMM_AMDGPU_HOST_RECODE_H
#define BSMM_AMDGPU_HOST_RECODE_H

#include "core/backend.h"

bsmm_status bsmm_hip_quantize(const bsmm_recode *job);
bsmm_status bsmm_hip_make_quantizer(const bsmm_recode *job, void *to);
bsmm_status bsmm_hip_run_quantizer(const bsmm_recode *job, const void *from);
bsmm_status bsmm_hip_dequantize(const bsmm_recode *job);
bsmm_status bsmm_hip_relayout(const bsmm_recode *job);
bsmm_status bsmm_hip_amax(const bsmm_recode *job);
bsmm_status bsmm_hip_move_codes(const bsmm_recode *job);

#endif
