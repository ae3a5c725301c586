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
    /* This entry of the table holds for devices whose names begin with the text `device`. NULL
     * means all devices of the kind that has the table. */
    const char *device;
    /* `unit` is the number of products that an instruction of the kernel adds. 0 means 32 if both
     * scales are e8m0, else 16. The instruction adds them exactly and rounds their sum once, or, if
     * `rounds_each` is true, rounds after each product. */
    int64_t unit;
    bool rounds_each;
    /* `segment` is the number of products in a segment, i.e. in a range of K that is summed
     * separately. A segment also ends where an fp32 scale changes, and, if `ends_at_scales` is
     * true, where any scale changes. The sum of a segment is multiplied by the product of the fp32
     * scales of A and B, if there are any, and added to the total. 0 means that a segment ends only
     * where an fp32 scale changes. */
    int64_t segment;
    bool ends_at_scales;
    /* A segment is a range of K that is summed separately. If `a_scale_first` is true, the kernel
     * multiplies the sum of a segment by the fp32 scale of A, rounds, and then multiplies by that
     * of B. Otherwise it rounds the product of both scales. */
    bool a_scale_first;
    /* A segment is a range of K that is summed separately. If `block` is not 0, each `block`
     * products of a segment are summed, and then these sums are added to the sum of the segment. */
    int64_t block;
    /* If `chunk` is not 0, `segment` is used only for operands with fp32 scales. For other
     * operands, K is split into segments whose lengths are nearly equal and multiples of 128. A
     * segment has at most `chunk` elements if elements of B have at most 8 bits, else at most
     * `wide_chunk`. */
    int64_t chunk, wide_chunk;
    /* If `k_parts` is true, the kernel divides K into parts (k_parts in bsmm_explanation), sums
     * each part separately and adds the sums of the parts at the end. The parts have nearly equal
     * lengths, which are multiples of 128. */
    bool k_parts;
    /* If `spread` is true, the products of an instruction come from four runs of adjacent elements
     * of K, a quarter from each run. A run has `run` elements. If `run` is 0, it has 32 elements if
     * B's elements have less than 8 bits, else 16. If `spread` is false, an instruction adds the
     * products of `unit` adjacent elements of K. */
    bool spread;
    int64_t run;
    /* `total_in_double` is true if the kernel adds the sums of the segments (ranges of K) in
     * double. */
    bool total_in_double;
    /* If `splits_f16` is true and elements of A are f16, the kernel splits each element of A into
     * two bf16 numbers, i.e. into its leading 8 bits and the rest. One instruction adds the
     * products of the leading bits, and the next one those of the rests. `rounds_each` must be
     * true. */
    bool splits_f16;
    /* A tensor core aligns the terms of a sum and drops their low bits. `fraction` is the number of
     * bits that it keeps below the leading bit of the largest term (docs/NUMERICS.md, "Tensor
     * cores"). 0 means that an instruction does not truncate its terms. */
    int fraction;
    /* If `scaled_bytes` is true, `level` holds only for products in which elements of A have at
     * most 8 bits and B has e8m0 scales. The next entry for the same kernel then holds for all
     * other formats. */
    bool scaled_bytes;
    /* If `exact_in_bf16` is true, `level` holds only for operands that have no fp32 scales and
     * whose elements bf16 represents exactly. */
    bool exact_in_bf16;
    /* `level` is the largest measured typical error of the family. It is counted in typical errors
     * of fp32 sums that add the products in the family's order. 0 means that the family was not
     * measured. */
    double level;
} bench_family_level;

#endif
