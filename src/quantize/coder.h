/* Fast element codecs for whole runs of fp32 values, bit-identical to bsmm_elem_encode. */
#ifndef BSMM_QUANTIZE_CODER_H
#define BSMM_QUANTIZE_CODER_H

#include "format/format.h"
#include "recipe/make.h"

/* Codes of values[0 .. n). */
void bsmm_coder_run(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes);

/* e2m1 codes of values / scale under BSMM_TIES_DOWN, but without the division's rounding: values
 * are compared with the bounds times scale, which are exact for scales of up to 20 bits. What has
 * no nearest value (NaN, Inf, any value when scale is 0) gives code 0. */
void bsmm_coder_run_bounds(const bsmm_coder *coder, const float *values, int64_t n, float scale,
                           uint16_t *codes);

/* Stores a run of codes at element (r, c) of a matrix, along its columns; the padding that
 * completes the last group of 4- or 6-bit elements is written 0. In ORDER_ROW c must start a group;
 * in ORDER_COL the rows of one group must be stored by one thread. */
void bsmm_codes_store(const bsmm_operand *dst, int64_t r, int64_t c, int64_t n,
                      const uint16_t *codes);

/* The codes of such a run, with the same condition on c; 16 bits and fewer. */
void bsmm_codes_load(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, uint16_t *codes);

/* Loads rows [r, r + rows) x columns [c, c + cols) of an unscaled f32, f16 or bf16 matrix, `pitch`
 * floats from row to row. */
void bsmm_values_load(const bsmm_operand *src, int64_t r, int64_t rows, int64_t c, int64_t cols,
                      float *values, int64_t pitch);

/* Values of any matrix: bsmm_operand_decode_row's, but for what NaNs carry. */
void bsmm_values_decode(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, double *to);

#endif
