/* Declares fast encoders of many consecutive fp32 values, which give the same codes as
 * bsmm_elem_encode, and functions that store and load codes. */
#ifndef BSMM_QUANTIZE_CODER_H
#define BSMM_QUANTIZE_CODER_H

#include "format/format.h"
#include "recipe/make.h"

/* Encodes values[0 .. n) as codes of the coder's element format. */
void bsmm_coder_run(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes);

/* Encodes values / scale as e2m1 with ties towards zero (BSMM_TIES_DOWN), as if the quotient were
 * not rounded before it is encoded. The function does not divide. It compares each value with
 * `scale` times the rounding bounds, which are the midpoints between neighboring e2m1 values. These
 * products are exact if the scale has at most 20 significant bits. A value without a nearest code
 * (NaN, Inf, or any value if the scale is 0) becomes code 0. */
void bsmm_coder_run_bounds(const bsmm_coder *coder, const float *values, int64_t n, float scale,
                           uint16_t *codes);

/* Returns the fp32 bits of the largest value of the element format, which is a normal number. A
 * shift by k->shift moves a code's exponent and mantissa to their positions in fp32, but the two
 * formats have different exponent biases. The smallest normal number shows the difference: its
 * shifted code is 0x00800000, and its fp32 bits are min_normal. The difference of these two numbers
 * is added to the shifted code of the largest value. */
static inline int bsmm_coder_max_bits(const bsmm_coder *k) {
    return (int)((k->max_code << k->shift) + k->min_normal - 0x00800000u);
}

/* Stores n codes in row r of a matrix, beginning with column c. Elements of 4 or 6 bits share
 * bytes: a group is the 2 or 4 elements that fill whole bytes. In ORDER_ROW, c must be the start of
 * a group. In ORDER_COL, a group is 2 or 4 rows of a column, and one thread must store all rows of
 * a group. If the last group is not full, its remaining elements become 0. There is one exception:
 * if dst is a part of a larger matrix, elements of the rows after dst's last row keep their
 * values. */
void bsmm_codes_store(const bsmm_operand *dst, int64_t r, int64_t c, int64_t n,
                      const uint16_t *codes);

/* Loads n codes of at most 16 bits from row r of a matrix, beginning with column c. In ORDER_ROW, c
 * must be the start of a group of elements that share bytes. */
void bsmm_codes_load(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, uint16_t *codes);

/* Loads rows [r, r + rows) x columns [c, c + cols) of an unscaled f32, f16 or bf16 matrix as fp32.
 * `pitch` is the stride between two rows in `values`, counted in floats. */
void bsmm_values_load(const bsmm_operand *src, int64_t r, int64_t rows, int64_t c, int64_t cols,
                      float *values, int64_t pitch);

/* Decodes n values of any matrix, from element (r, c) on along the row, like
 * bsmm_operand_decode_row. In addition, NaN values of unscaled formats keep their payloads. */
void bsmm_values_decode(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, double *to);

#endif
