/* Fast element codecs for whole runs of fp32 values. Their results are bitwise identical to those
 * of bsmm_elem_encode. */
#ifndef BSMM_QUANTIZE_CODER_H
#define BSMM_QUANTIZE_CODER_H

#include "format/format.h"
#include "recipe/make.h"

/* Encodes values[0 .. n) as codes of the coder's element format. */
void bsmm_coder_run(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes);

/* Encodes values / scale as e2m1 with ties towards zero (BSMM_TIES_DOWN), but without the rounding
 * of a division. The values are compared with the rounding bounds times the scale; these products
 * are exact for scales of at most 20 bits. A value without a nearest code (NaN, Inf, or any value
 * if scale is 0) becomes code 0. */
void bsmm_coder_run_bounds(const bsmm_coder *coder, const float *values, int64_t n, float scale,
                           uint16_t *codes);

/* Returns the fp32 bits of the largest value of the element format. The value is normal; the
 * exponent field 1 of a code corresponds to min_normal. */
static inline int bsmm_coder_max_bits(const bsmm_coder *k) {
    return (int)((k->max_code << k->shift) + k->min_normal - 0x00800000u);
}

/* Stores a run of codes from element (r, c) of a matrix on, along its columns. If the last group of
 * 4- or 6-bit elements is not full, the rest of the group is written 0. In ORDER_ROW, c must be the
 * start of a group. In ORDER_COL, one thread must store all rows of a group. */
void bsmm_codes_store(const bsmm_operand *dst, int64_t r, int64_t c, int64_t n,
                      const uint16_t *codes);

/* Loads a run of codes of at most 16 bits. In ORDER_ROW, c must be the start of a group. */
void bsmm_codes_load(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, uint16_t *codes);

/* Loads rows [r, r + rows) x columns [c, c + cols) of an unscaled f32, f16 or bf16 matrix as fp32.
 * `pitch` is the distance of rows in `values`, in floats. */
void bsmm_values_load(const bsmm_operand *src, int64_t r, int64_t rows, int64_t c, int64_t cols,
                      float *values, int64_t pitch);

/* Decodes values of any matrix, like bsmm_operand_decode_row, but also keeps the payloads of NaN of
 * unscaled formats. */
void bsmm_values_decode(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, double *to);

#endif
