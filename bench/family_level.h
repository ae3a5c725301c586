/* The typical error of a family of kernels, as it was measured. `bsmm matmul --check` compares with
 * it (cli/level.h). */
#ifndef BENCH_FAMILY_LEVEL_H
#define BENCH_FAMILY_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* The order in which a family of kernels adds products (docs/NUMERICS.md, "Order of sums"). */
typedef struct bench_family_level {
    const char *kernel; /* beginning of the names of the family's kernels */
    /* number of products that are added exactly before a rounding; 0: 32 if both scales are e8m0,
     * else 16 */
    int64_t unit;
    /* Number of products in a segment, i.e. a part of K that is summed separately. A segment ends
     * with a block of either operand, so that it may be shorter. 0: no segments */
    int64_t segment;
    bool segments_by_f32; /* the family has segments only if a scale is fp32 */
    bool total_in_double; /* the sums of the segments are added in double */
    /* Bits below the largest term that a tensor core keeps of each term of a unit
     * (docs/NUMERICS.md, "Tensor cores"). The segments of a family with `fraction` do not end with
     * blocks. 0: the sum of a unit is exact and is rounded to fp32 */
    int fraction;
    /* the family is measured only for operands without fp32 scales whose elements bf16 holds
     * exactly */
    bool exact_in_bf16;
    /* the largest measured typical error of the family, as a multiple of the typical error of fp32
     * sums in this order */
    double level;
} bench_family_level;

#endif
