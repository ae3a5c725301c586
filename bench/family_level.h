/* Declares the measured typical error of a family of kernels, i.e. of kernels that add products in
 * the same order. `bsmm matmul --check` compares a kernel's errors with it (cli/level.h). */
#ifndef BENCH_FAMILY_LEVEL_H
#define BENCH_FAMILY_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* Names the main loops by which kernels add products (cli/level_sum.h). */
typedef enum bench_way {
    /* BENCH_IN_SEGMENTS: the kernel divides K into segments. It sums the products of a segment by
     * itself, starting from 0, and then adds this sum to the total over K. */
    BENCH_IN_SEGMENTS,
    /* BENCH_IN_K_BLOCKS: the kernel multiplies k blocks of 64 elements of 16 bits and adds all
     * products to one accumulator. If elements of A or B are sums of several bf16 numbers (parts),
     * the kernel goes through K once for each pair of a part of A and a part of B. The GEMM kernels
     * of Hopper and Blackwell for 16-bit elements add in this order. */
    BENCH_IN_K_BLOCKS,
    /* BENCH_IN_STEPS: the kernel adds as the generic GEMM does (gpu/bf16_product.h). */
    BENCH_IN_STEPS,
    /* BENCH_IN_COLUMNS: the kernel sums ranges of K one after another, as with BENCH_IN_SEGMENTS,
     * but an f16 or f32 element of A is split into two or three bf16 numbers. Each of these numbers
     * has an accumulator of its own, and the accumulators are added at the end. */
    BENCH_IN_COLUMNS
} bench_way;

/* Describes the order in which a family of kernels adds products (docs/NUMERICS.md, "Order of
 * sums"). */
typedef struct bench_family_level {
    const char *kernel; /* The names of the kernels of the family begin with the text `kernel`. */
    /* The table entry holds only for devices whose names begin with the text `device`. If `device`
     * is NULL, it holds for all devices of the kind (in bench's table of kinds of devices) to which
     * the table belongs. */
    const char *device;
    bench_way way;
    /* `unit` is the number of products that one instruction of the kernel adds to a sum. If it is
     * 0, this number is 32 if A and B both have e8m0 scales, and 16 otherwise. If `rounds_each` is
     * false, the instruction adds the products exactly and rounds the sum once. If it is true, the
     * sum is rounded after each product. */
    int64_t unit;
    bool rounds_each;
    /* `segment` is the number of products in a segment, i.e. in a range of K that is summed
     * separately. A segment also ends where an fp32 scale changes, and, if `ends_at_scales` is
     * true, where any scale changes. The sum of a segment is multiplied by the product of the fp32
     * scales of A and B, if there are any, and added to the total. 0 means that a segment ends only
     * where an fp32 scale changes. */
    int64_t segment;
    bool ends_at_scales;
    /* `scaled_segment` is the largest number of elements of a segment (a range of K) if B has fp32
     * scales or an fp32 scale of A changes along K. 0 means that there is no such limit. */
    int64_t scaled_segment;
    /* If `divides` is true, the kernel keeps the sum divided by the fp32 scale of the current
     * segment (a range of K with one scale), so that it can add products without scaling them.
     * Where the scale changes, it multiplies the sum by the quotient of the old and the new
     * scale. */
    bool divides;
    /* The field `group` is used only by BENCH_IN_K_BLOCKS. If operands have fp32 scales, the sum of
     * `group` elements of K is multiplied by the scales and added to the total. If `group` is 0,
     * the sum of each k block is multiplied by the scales. There is one exception: if all fp32
     * scales are scales of whole rows, only the sum over all of K is multiplied. */
    int64_t group;
    /* If `takes_f16` is true, the kernel multiplies f16 elements without splitting them, provided
     * that f16 holds all values that the format of the other operand can represent. Otherwise the
     * kernel splits f16 elements into two bf16 numbers. If `shifts_e8m0` is true, the kernel also
     * multiplies f16 elements of A by a B with e8m0 scales, and uses `fallback` if f16 does not
     * hold the values of B (cli_level_fits_f16). */
    bool takes_f16, shifts_e8m0;
    /* The generic GEMM usually has a second accumulator for the smaller products of bf16 numbers.
     * If `joins` is true, it has only one accumulator for two operands whose elements are both sums
     * of three bf16 numbers. */
    bool joins;
    /* A segment is a range of K that is summed separately. If `a_scale_first` is true, the kernel
     * multiplies the sum of a segment by the fp32 scale of A, rounds, and then multiplies by the
     * fp32 scale of B. Otherwise it multiplies the sum by the rounded product of both scales. */
    bool a_scale_first;
    /* A segment is a range of K that is summed separately. If `block` is not 0, each `block`
     * products of a segment are summed, and then these sums are added to the sum of the segment. */
    int64_t block;
    /* K is divided into segments, which are summed separately. If `chunk` is 0, `segment` gives
     * their length for all operands. Otherwise `segment` is used only if an operand has fp32
     * scales. For other operands, the segments have nearly equal lengths, which are multiples of
     * 128. They have at most `chunk` elements if elements of B have at most 8 bits, else at most
     * `wide_chunk`. */
    int64_t chunk, wide_chunk;
    /* If `k_parts` is true, the kernel divides K into parts (k_parts in bsmm_explanation), sums
     * each part separately and adds the sums of the parts at the end. The parts have nearly equal
     * lengths, which are multiples of 128. */
    bool k_parts;
    /* If `row_scales_last` is true and all fp32 scales are scales of whole rows, only the complete
     * sum over all parts of K is multiplied by the product of both scales. */
    bool row_scales_last;
    /* A matrix instruction adds the products of several elements of K at once. If `spread` is
     * false, these are `unit` adjacent elements of K. If `spread` is true, they come from `runs`
     * runs (ranges of adjacent elements of K), equally many from each run. A run has `run`
     * elements. `runs` = 0 means 4 runs. `run` = 0 means 32 elements if B's elements have less than
     * 8 bits, else 16. */
    bool spread;
    int64_t run, runs;
    /* `total_in_double` is true if the kernel adds the sums of the segments (ranges of K) in
     * double. */
    bool total_in_double;
    /* If `splits_f16` is not 0 and elements of A are f16, the kernel splits each element of A into
     * two bf16 numbers, i.e. into its leading 8 bits and the rest. `splits_f16` instructions add
     * the products of the leading bits, and the same number of instructions after them those of the
     * rests. `rounds_each` must be true. */
    int64_t splits_f16;
    /* Before a tensor core adds the terms of a sum, it aligns them to the largest term and drops
     * their low bits. `fraction` is the number of bits that it keeps below the leading bit of the
     * largest term (docs/NUMERICS.md, "Tensor cores"). If `fraction` is 0, the kernel's
     * instructions drop no bits of the terms. */
    int fraction;
    /* If `scaled_bytes` is true, `level` holds only for products in which elements of A have at
     * most 8 bits and B has e8m0 scales. The next entry for the same kernel then holds for all
     * other formats. */
    bool scaled_bytes;
    /* If `fp8_pairs` is true, `level` holds only for products that FP8 instructions multiply as
     * they are stored. In these products, A and B have elements of 8 bits, and both have fp32
     * scales or both have none. A later entry for the same kernel then holds for all other
     * formats. */
    bool fp8_pairs;
    /* Some kernels multiply operands in a packed form. If the operands do not fit this form,
     * another kernel computes the product, which is decided on the device. `fallback` is the name
     * of this other kernel, and `scaled_fallback` is its name if an operand has fp32 scales. They
     * are NULL if there is no other kernel, or if its errors are like those of this kernel. */
    const char *fallback, *scaled_fallback;
    /* `generic` is the name of the kernel that computes the product if a value, a scale or a sum is
     * outside the range of this kernel, e.g. if it is NaN. It is NULL if there is no such
     * kernel. */
    const char *generic;
    /* `level` is the largest measured error of the family: the typical error of a kernel divided by
     * the typical error of fp32 sums that add the products in the same order. 0 means that the
     * family was not measured. */
    double level;
} bench_family_level;

#endif
