/* A kernel's typical error beside today's. The bound of docs/NUMERICS.md holds for any operands,
 * and so lies far above the errors of most: a kernel that lost two bits would stay below it. */
#ifndef CLI_LEVEL_H
#define CLI_LEVEL_H

#include "command.h"

/* The largest level that passes. Today's kernels have 0.5 to 1, so that one whose errors are 4
 * times as large is noticed. */
#define CLI_LEVEL_MOST 2.0

/* The order in which a family of kernels adds (docs/NUMERICS.md, "Order of sums"). */
typedef struct cli_family_level {
    const char *kernel; /* what the names of its kernels begin with */
    int64_t unit;       /* products that are added exactly before they are rounded; 0: 32, or 16
                           unless both scales are e8m0 */
    int64_t segment; /* products that are added apart from the rest, or fewer if they are not in one
                        block of both operands; 0: no segments */
    bool segments_by_f32; /* segments only if a scale is fp32 */
    bool total_in_double; /* of segments */
    double level;         /* its error as a multiple of such a sum's, measured */
} cli_family_level;

/* The row of a kernel; NULL: none was measured. */
const cli_family_level *cli_level_of(const char *kernel);

/* Sums a_k * b_k in double, and as the family does, in fp32. */
typedef struct cli_sums {
    double exact, rounded, magnitude; /* magnitude: sum |a||b| */
} cli_sums;
cli_sums cli_level_sum(const cli_family_level *family, const bsmm_format formats[2], const float *a,
                       const float *b, int64_t k);

/* Multiplies desc->a by desc->b again with the kernel, without alpha, C, bias, epilogue and global
 * scales, into fp32. *level is the root mean square of the errors, each relative to its sum |a||b|,
 * as a multiple of what the kernel's family had when it was measured; NaN where that cannot be
 * said: no such family, or fewer than 128 outputs with an error. False with the library's
 * message set. */
bool cli_level_run(const bsmm_matmul_desc *desc, const char *kernel, double *level);

/* The same of fp32 results that are already there, for operands whose values are given too. */
double cli_level_compare(const cli_family_level *family, const bsmm_matrix *a, const bsmm_matrix *b,
                         const float *a_values, const float *b_values, const float *d);

#endif
