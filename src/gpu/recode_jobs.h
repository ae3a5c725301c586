/* From a checked conversion to the parameters of its kernels, and the reasons why there is none. */
#ifndef BSMM_GPU_RECODE_JOBS_H
#define BSMM_GPU_RECODE_JOBS_H

#include "core/kernel.h"
#include "gpu/recode.h"

uint32_t bsmm_recode_bits(uint32_t elem);
bsmm_recode_lines bsmm_recode_lines_of(const bsmm_operand *o);

/* Returns true if every line of o begins at a multiple of `bytes`. */
bool bsmm_recode_aligned(const bsmm_operand *o, uint64_t bytes);

/* Fails with BSMM_E_UNSUPPORTED if indices of o do not fit 32 bits. */
bsmm_status bsmm_recode_check_size(const bsmm_operand *o);
/* Fails with BSMM_E_UNSUPPORTED if the device code does not support the elements of o. The message
 * calls o `what`. */
bsmm_status bsmm_recode_check_elem(const bsmm_operand *o, const char *what);
bool bsmm_recode_is_empty(const bsmm_operand *o);

/* Returns true if the layout of dst's scales has padding, which must be set to 0. Bytes that a
 * caller's scale_ld skips are not padding. */
bool bsmm_recode_has_padding(const bsmm_recode *job);

/* ---- parameters; what only some backends' kernels need is 0 ---- */

/* Returns the job that raises *result to the largest magnitude of src. */
bsmm_amax_job bsmm_amax_job_of(const bsmm_recode *job, float *result);

/* amax: of the tensor when there are two levels, else NULL. */
bsmm_quantize_job bsmm_quantize_job_of(const bsmm_recode *job, const float *amax);

/* Units of whole blocks and whole groups of codes, for kernels that quantize anything
 * (quantize_any.h); how many lie along a line of src, and how many across. */
typedef struct bsmm_quantize_units {
    uint32_t rows, cols; /* of a unit */
    int64_t fast, slow;
} bsmm_quantize_units;
bsmm_quantize_units bsmm_quantize_units_of(const bsmm_recode *job, const bsmm_quantize_job *q);

bsmm_level_job bsmm_level_job_of(const bsmm_recode *job, const bsmm_quantize_job *q);
bsmm_dequantize_job bsmm_dequantize_job_of(const bsmm_recode *job);
bsmm_relayout_job bsmm_relayout_job_of(const bsmm_recode *job);

#endif
