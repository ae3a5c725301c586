/* bsmm_backend's conversions. They only queue work; pointers may have the alignment of their
 * elements, and kernels that are fast want 16 bytes. */
#ifndef BSMM_CUDA_RECODE_CALLS_H
#define BSMM_CUDA_RECODE_CALLS_H

#include "core/kernel.h"
#include "cuda/recode.h"

bsmm_status bsmm_cuda_quantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_dequantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_relayout(const bsmm_recode *job);
bsmm_status bsmm_cuda_amax(const bsmm_recode *job);

/* ---- the kernels' parameters, for tests ---- */

/* amax: of the tensor when there are two levels, else NULL. What only some kernels need is 0. */
bsmm_quantize_job bsmm_quantize_job_of(const bsmm_recode *job, const float *amax);
bsmm_dequantize_job bsmm_dequantize_job_of(const bsmm_recode *job);

#endif
