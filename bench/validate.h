/* The check before the clock: outputs against sums in double. */
#ifndef BENCH_VALIDATE_H
#define BENCH_VALIDATE_H

#include "measure.h"

/* Compares outputs of d with the sums over a and b (fp32 values of the operands, dense rows of K).
 * All outputs are checked where M N K is up to 2^28, else as many, evenly spread, as make 2^28.
 * An output passes if |d - exact| <= 1e-3 + (1e-3 + u) |exact|, the tutorial's tolerance; u is
 * 2^-8, its rounding, for bf16, and 0 for f32 and f16; or if it is within the kernel's own bound,
 * result->bound sum |a||b| + u |exact|, of units that keep fewer bits of sums. */
void bench_validate(const bsmm_matrix *d, const float *a, const float *b, int64_t k,
                    bench_result *result);

#endif
