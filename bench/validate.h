/* Compares outputs of a GEMM with dot products in double, before bench times the GEMM. */
#ifndef BENCH_VALIDATE_H
#define BENCH_VALIDATE_H

#include "measure.h"

/* Compares outputs of d with dot products of a and b. `a` and `b` are dense fp32 matrices with K
 * values per row, which are the exact values of the operands. If M N K is at most 2^28, all outputs
 * are checked. Otherwise the function checks evenly spread outputs, as many as 2^28 multiply-adds
 * allow.
 *
 * An output passes if |d - exact| <= 1e-3 + (1e-3 + u) |exact|. This is the tolerance of Triton's
 * tutorial, plus u, the error of rounding to D: 2^-8 for bf16, and 0 for f32 and f16. An output
 * also passes if |d - exact| is at most result->bound * sum |a||b| + u |exact|, i.e. within the
 * documented error bound of the kernel. Kernels on arithmetic units whose accumulators keep fewer
 * bits than fp32 need this second rule. *
 * If `unwritten` is not NULL, it is the code of outputs that the GEMM has not written. They are not
 * checked. If no output is left to check, the validation fails. */
void bench_validate(const bsmm_matrix *d, const float *a, const float *b, int64_t k,
                    const uint32_t *unwritten, bench_result *result);

#endif
