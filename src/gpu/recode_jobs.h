/* Fills the parameters of conversion kernels (recode.h) from a validated conversion, and reports
 * why a conversion is not supported. */
#ifndef BSMM_GPU_RECODE_JOBS_H
#define BSMM_GPU_RECODE_JOBS_H

#include "core/kernel.h"
#include "gpu/recode.h"

uint32_t bsmm_recode_bits(uint32_t elem);
bsmm_recode_lines bsmm_recode_lines_of(const bsmm_operand *o);

/* Returns true if the address of every row of a row-major matrix, or of every column of a
 * column-major matrix, is a multiple of `bytes`. */
bool bsmm_recode_aligned(const bsmm_operand *o, uint64_t bytes);

/* Fails with BSMM_E_UNSUPPORTED if the rows or columns of o do not fit in the 32-bit indices of
 * kernels. */
bsmm_status bsmm_recode_check_size(const bsmm_operand *o);
/* Fails with BSMM_E_UNSUPPORTED if the device code does not support the element format of o. The
 * error message calls the matrix o by the name `what`. */
bsmm_status bsmm_recode_check_elem(const bsmm_operand *o, const char *what);
bool bsmm_recode_is_empty(const bsmm_operand *o);

/* Returns true if the layout of dst's scales has padding, which the conversion must set to 0. Bytes
 * that the caller skips by a large scale_ld are not padding. */
bool bsmm_recode_has_padding(const bsmm_recode *job);

/* Returns the parameters of the kernel that finds the largest magnitude of the source. The kernel
 * raises *result to it by atomic maxima. */
bsmm_amax_job bsmm_amax_job_of(const bsmm_recode *job, float *result);

/* Returns the parameters of the kernels that quantize a matrix. If the recipe has a second-level
 * scale, `amax` points to the tensor's largest magnitude in device memory. Otherwise it is NULL. */
bsmm_quantize_job bsmm_quantize_job_of(const bsmm_recode *job, const float *amax);

/* A plan has prepared *q for a quantization with a given second-level scale, but without pointers.
 * Sets the pointers in *q to those of this run. Returns false if a pointer has a smaller alignment
 * than the plan has assumed. */
bool bsmm_quantize_job_bind(const bsmm_recode *job, bsmm_quantize_job *q);

/* The kernels in quantize_any.h divide a matrix into units, and each thread quantizes several
 * units. A unit is the smallest rectangle of elements that consists of whole scale blocks and whole
 * bytes of the result. Units form lines, which run along the rows of a row-major source, else along
 * its columns. `fast` is the number of units in a line, and `slow` is the number of lines. */
typedef struct bsmm_quantize_units {
    uint32_t rows, cols; /* `rows` and `cols` are the extents of a unit in elements. */
    int64_t fast, slow;
} bsmm_quantize_units;
bsmm_quantize_units bsmm_quantize_units_of(const bsmm_recode *job, const bsmm_quantize_job *q);

bsmm_level_job bsmm_level_job_of(const bsmm_recode *job, const bsmm_quantize_job *q);
bsmm_dequantize_job bsmm_dequantize_job_of(const bsmm_recode *job);
bsmm_relayout_job bsmm_relayout_job_of(const bsmm_recode *job);
bsmm_codes_job bsmm_codes_job_of(const bsmm_recode *job);

#endif
