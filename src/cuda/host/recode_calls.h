/* The conversions of bsmm_backend for CUDA. They only queue work. Pointers need the alignment of
 * their elements, and fast kernels need 16 bytes. */
#ifndef BSMM_CUDA_HOST_RECODE_CALLS_H
#define BSMM_CUDA_HOST_RECODE_CALLS_H

#include "core/kernel.h"
#include "cuda/runtime/device.h"
#include "gpu/recode.h"

bsmm_status bsmm_cuda_quantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_dequantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_relayout(const bsmm_recode *job);
bsmm_status bsmm_cuda_amax(const bsmm_recode *job);

/* ---- shared by the conversions ---- */

enum {
    BSMM_RECODE_THREADS = 256,    /* the threads of a thread block of the conversion kernels */
    BSMM_RECODE_MOST_DOWN = 65535 /* the largest number of thread blocks along the grid's y axis */
};

uint32_t bsmm_recode_bits(uint32_t elem);
bsmm_recode_lines bsmm_recode_lines_of(const bsmm_operand *o);

/* Returns true if every line (row, or column in column order) of `o` begins at a multiple of
 * `bytes`. */
bool bsmm_recode_aligned(const bsmm_operand *o, uint64_t bytes);

/* Returns BSMM_E_UNSUPPORTED if the extents exceed 32-bit indices. */
bsmm_status bsmm_recode_check_size(const bsmm_operand *o);
/* Returns BSMM_E_UNSUPPORTED if the device code does not support the elements. `what` names the
 * matrix in the message. */
bsmm_status bsmm_recode_check_elem(const bsmm_operand *o, const char *what);
bool bsmm_recode_is_empty(const bsmm_operand *o);

/* Launches x times y blocks on the job's stream. */
bsmm_status bsmm_recode_launch(const bsmm_recode *job, const bsmm_cuda_function *function,
                               int64_t x, int64_t y, void **arguments);

/* ---- the kernels' parameters, for tests ---- */

/* Fill the parameters of kernels. `amax` is the tensor's largest magnitude if the recipe has two
 * levels, else NULL. Fields that only some kernels use are 0. */
bsmm_quantize_job bsmm_quantize_job_of(const bsmm_recode *job, const float *amax);
bsmm_dequantize_job bsmm_dequantize_job_of(const bsmm_recode *job);

#endif
