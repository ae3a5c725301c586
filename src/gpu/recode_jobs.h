/* Fills the parameters of conversion kernels (recode.h) from a validated conversion, and reports
 * why a conversion is not supported. */
#ifndef BSMM_GPU_RECODE_JOBS_H
#define BSMM_GPU_RECODE_JOBS_H

#include "core/kernel.h"
#include "gpu/recode.h"

uint32_t bsmm_recode_bits(uint32_t elem);
bsmm_recode_lines bsmm_recode_lines_of(const bsmm_operand *o);

/* Returns true if the address of every line of o is a multiple of `bytes`. A line is a row of a
 * row-major matrix, else a column. */
bool bsmm_recode_aligned(const bsmm_operand *o, uint64_t bytes);

/* Fails with BSMM_E_UNSUPPORTED if the rows or columns of o do not fit the 32-bit indices of
 * kernels. */
bsmm_status bsmm_recode_check_size(const bsmm_operand *o);
/* Fails with BSMM_E_UNSUPPORTED if the device code does not support the element format of o. The
 * message calls o by the name `what`. */
bsmm_status bsmm_recode_check_elem(const bsmm_operand *o, const char *what);
bool bsmm_recode_is_empty(const bsmm_operand *o);

/* Returns true if the layout of dst's scales has padding, which must be set to 0. Bytes that a
 * caller's scale_ld skips are not padding. */
bool bsmm_recode_has_padding(const bsmm_recode *job);

/* Returns the parameters with which a kernel raises *result to the largest magnitude of the source.
 */
bsmm_amax_job bsmm_amax_job_of(const bsmm_recode *job, float *result);

/* Returns the parameters of the kernels that quantize. `amax` points to the tensor's largest
 * magnitude in device memory if the recipe has a second-level scale, else it is NULL. */
bsmm_quantize_job bsmm_quantize_job_of(const bsmm_recode *job, const float *amax);

/* The work of one thread in quantize_any.h is a unit: the smallest rectangle of elements that
 * consists of whole blocks and whole bytes of codes. `fast` units lie along a line of the source,
 * and `slow` is the number of such lines of units. */
typedef struct bsmm_quantize_units {
    uint32_t rows, cols; /* the extent of a unit in elements */
    int64_t fast, slow;
} bsmm_quantize_units;
bsmm_quantize_units bsmm_quantize_units_of(const bsmm_recode *job, const bsmm_quantize_job *q);

bsmm_level_job bsmm_level_job_of(const bsmm_recode *job, const bsmm_quantize_job *q);
bsmm_dequantize_job bsmm_dequantize_job_of(const bsmm_recode *job);
bsmm_relayout_job bsmm_relayout_job_of(const bsmm_recode *job);
bsmm_codes_job bsmm_codes_job_of(const bsmm_recode *job);

#endif
