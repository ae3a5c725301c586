/* Validates results before anything is timed: compares outputs with dot products in double. */
#ifndef BENCH_VALIDATE_H
#define BENCH_VALIDATE_H

#include "measure.h"

/* Compares outputs of d with dot products of a and b, which hold the operands' values in fp32 as
 * dense rows of K. If M N K is at most 2^28, it checks all outputs, otherwise evenly spread ones
 * that amount to 2^28 multiply-adds.
 *
 * An output passes if |d - exact| <= 1e-3 + (1e-3 + u) |exact|, the tolerance of Triton's tutorial.
 * Here u is D's rounding: 2^-8 for bf16, and 0 for f32 and f16. An output also passes if it is
 * within the kernel's own bound, result->bound sum |a||b| + u |exact|. Kernels need that on
 * arithmetic units whose accumulators keep fewer bits. */
void bench_validate(const bsmm_matrix *d, const float *a, const float *b, int64_t k,
                    bench_result *result);

#endif
