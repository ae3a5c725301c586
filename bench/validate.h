/* Validates the results of a GEMM before anything is timed, by comparing outputs with dot products
 * in double. */
#ifndef BENCH_VALIDATE_H
#define BENCH_VALIDATE_H

#include "measure.h"

/* Compares outputs of d with dot products of a and b. These are dense fp32 matrices with rows of K
 * values that hold the exact values of the operands. If M N K is at most 2^28, all outputs are
 * checked. Otherwise the function checks evenly spread outputs that amount to 2^28 multiply-adds.
 *
 * An output passes if |d - exact| <= 1e-3 + (1e-3 + u) |exact|. This is the tolerance of Triton's
 * tutorial, plus u, the error of rounding to D: 2^-8 for bf16, and 0 for f32 and f16. An output
 * also passes if |d - exact| is at most result->bound * sum |a||b| + u |exact|, i.e. within the
 * bound of the kernel. Kernels on arithmetic units whose accumulators keep fewer bits need the
 * second rule. */
void bench_validate(const bsmm_matrix *d, const float *a, const float *b, int64_t k,
                    bench_result *result);

#endif
