/* bsmm_backend's conversions. They only queue work; pointers may have the alignment of their
 * elements, and kernels that are fast want 16 bytes. */
#ifndef BSMM_CUDA_HOST_RECODE_CALLS_H
#define BSMM_CUDA_HOST_RECODE_CALLS_H

#include "core/kernel.h"
#include "cuda/runtime/device.h"
#include "gpu/recode.h"

bsmm_status bsmm_cuda_quantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_dequantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_relayout(const bsmm_recode *job);
bsmm_status bsmm_cuda_amax(const bsmm_recode *job);

/* ---- what they share ---- */

enum {
    BSMM_RECODE_THREADS = 256,    /* of a block */
    BSMM_RECODE_MOST_DOWN = 65535 /* blocks along a grid's y */
};

uint32_t bsmm_recode_bits(uint32_t elem);
bsmm_recode_lines bsmm_recode_lines_of(const bsmm_operand *o);

/* Whether every line of o begins at a multiple of `bytes`. */
bool bsmm_recode_aligned(const bsmm_operand *o, uint64_t bytes);

/* BSMM_E_UNSUPPORTED beyond 32-bit indices. */
bsmm_status bsmm_recode_check_size(const bsmm_operand *o);
/* BSMM_E_UNSUPPORTED, naming `what`, for elements that the device code was not written for. */
bsmm_status bsmm_recode_check_elem(const bsmm_operand *o, const char *what);
bool bsmm_recode_is_empty(const bsmm_operand *o);

/* x times y blocks on the job's stream. */
bsmm_status bsmm_recode_launch(const bsmm_recode *job, const bsmm_cuda_function *function,
                               int64_t x, int64_t y, void **arguments);

/* ---- the kernels' parameters, for tests ---- */

/* amax: of the tensor when there are two levels, else NULL. What only some kernels need is 0. */
bsmm_quantize_job bsmm_quantize_job_of(const bsmm_recode *job, const float *amax);
bsmm_dequantize_job bsmm_dequantize_job_of(const bsmm_recode *job);

#endif
