/* Declares the measured typical error of a family of kernels, i.e. of kernels that add products in
 * the same order. `bsmm matmul --check` compares a kernel's errors with it (cli/level.h). */
#ifndef BENCH_FAMILY_LEVEL_H
#define BENCH_FAMILY_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* Describes the order in which a family of kernels adds products (docs/NUMERICS.md, "Order of
 * sums"). */
typedef struct bench_family_level {
    const char *kernel; /* The names of the kernels of the family begin with the text `kernel`. */
    /* The measurement holds for devices whose names begin with the text `device`. NULL means all
     * devices of the kind that has the table. */
    const char *device;
    /* `unit` is the number of products that the kernel adds exactly before a rounding. 0 means 32
     * if both scales are e8m0, else 16. */
    int64_t unit;
    /* `segment` is the number of products in a segment, i.e. in a part of K that is summed
     * separately. A segment never continues past the end of a scale block. 0 means that there are
     * no segments. */
    int64_t segment;
    /* If `chunk` is 0, these two fields have no meaning. Otherwise they replace `segment` for
     * operands without fp32 scales: K is then split into the fewest segments of nearly equal
     * length. Each length is a multiple of 128 and is at most `chunk` elements if elements of B
     * have at most 8 bits, else at most `wide_chunk` elements. */
    int64_t chunk, wide_chunk;
    /* If `k_parts` is true, a segment is one of the parts into which the kernel divides K of this
     * product (k_parts in bsmm_explanation). The parts have nearly equal lengths, which are
     * multiples of 128. */
    bool k_parts;
    /* If `spread` is true, the products of an instruction come from four runs of adjacent elements
     * of K, a quarter from each run. A run has 32 elements if B's elements have less than 8 bits,
     * else 16. If `spread` is false, an instruction adds the products of `unit` adjacent elements
     * of K. */
    bool spread;
    /* A kernel may sum segments (ranges of K) separately. `total_in_double` is true if it adds
     * these sums in double. */
    bool total_in_double;
    /* `divides_k` is true if the kernel splits K among thread blocks when D has few tiles
     * (split-K). Its rounding errors are then different from those that `level` assumes, and
     * usually smaller. */
    bool divides_k;
    /* A tensor core aligns the terms of a sum and drops their low bits. `fraction` is the number of
     * bits that it keeps below the leading bit of the largest term (docs/NUMERICS.md, "Tensor
     * cores"). 0 means that the unit adds `unit` products exactly and rounds the sum to fp32. If
     * `fraction` is not 0, a segment (`segment`) may continue past the end of a scale block. */
    int fraction;
    /* If `exact_in_bf16` is true, the measurement holds only for operands that have no fp32 scales
     * and whose elements bf16 represents exactly. */
    bool exact_in_bf16;
    /* `level` is the largest measured typical error of the family. It is counted in typical errors
     * of fp32 sums that add the products in the family's order. 0 means that the family was not
     * measured. */
    double level;
} bench_family_level;

#endif
