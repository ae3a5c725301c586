/* Compares outputs of a GEMM with dot products in double, before bench times the GEMM. */
#ifndef BENCH_VALIDATE_H
#define BENCH_VALIDATE_H

#include "measure.h"

/* Compares outputs of d with dot products of a and b. `a` and `b` are dense fp32 matrices with K
 * values per row, which are the exact values of the operands. If M N K is at most 2^28, all outputs
 * are checked. Otherwise the function checks evenly spread outputs, as many as 2^28 multiply-adds
 * allow.
 *
 * `exact` below is the dot product, and u is 2^-8, the error of rounding, if D is bf16, else 0. An
 * output d passes if |d - exact| <= 1e-3 + (1e-3 + u) |exact|. With u = 0 this is the tolerance of
 * Triton's tutorial on block-scaled matrix multiplication, which also covers the rounding of D to
 * f16 (2^-11). An output also passes if its error is within the documented error bound of the
 * kernel: |d - exact| <= result->bound * sum |a||b| + u |exact|. Kernels on arithmetic units whose
 * accumulators keep fewer bits than fp32 need this second rule.
 *
 * If `unwritten` is not NULL, it points to the code with which the caller filled D before the GEMM.
 * Outputs that still have this code are not checked. If no output is left to check, the validation
 * fails. */
void bench_validate(const bsmm_matrix *d, const float *a, const float *b, int64_t k,
                    const uint32_t *unwritten, bench_result *result);

#endif
