/* Models the sums of GEMM kernels on the CPU. A sum has the rounding errors of a kernel that adds
 * in the order that a family describes (family_level.h). */
#ifndef CLI_LEVEL_SUM_H
#define CLI_LEVEL_SUM_H

#include "bsmm.h"
#include "family_level.h"

/* CLI_LEVEL_K_BLOCK is the number of elements along K in a k block of kernels for 16-bit elements.
 * CLI_LEVEL_STEP is the number of elements along K in a step of the generic GEMM. */
enum { CLI_LEVEL_K_BLOCK = 64, CLI_LEVEL_STEP = 32 };

/* An instruction may take its elements from several runs, i.e. ranges of adjacent elements of K.
 * CLI_LEVEL_MOST_PLACES is the largest number of elements that all runs of an instruction together
 * have. */
enum { CLI_LEVEL_MOST_PLACES = 128 };

/* Returns the number of bits of an element, or 0 for an unknown format. */
uint32_t cli_level_bits_of(bsmm_format format);

bool cli_level_has_floats(bsmm_format format); /* Tells whether a format has fp32 scales. */

/* Holds decoded rows of an operand. If the operand has fp32 scales, `scales` holds the scale of
 * each element, and `elements` holds the elements without scales. Otherwise `scales` is NULL, and
 * `elements` are multiplied by their scales. */
typedef struct cli_level_row {
    const float *elements, *scales;
} cli_level_row;

/* Describes how a kernel adds the products of one row of A and one row of B. The numbers are counts
 * of elements along K unless a comment says otherwise. */
typedef struct cli_level_order {
    const bench_family_level *family;
    int64_t k;
    int64_t parts; /* `parts` is the number of parts into which the kernel divides K. */
    /* `part`, `segment` and `block` are lengths along K. A part of K is divided into segments, and
     * a segment into blocks. The kernel sums the products of each block, adds the sums of a
     * segment's blocks, and then adds the sums of a part's segments. */
    int64_t part, segment, block;
    /* An instruction adds `unit` products. If `run` is 0, they are those of adjacent elements along
     * K. Otherwise K is divided into runs of `run` adjacent elements, and the instructions for
     * `runs` neighboring runs take equally many products of each run. places[i] is the index along
     * K, counted from the first of these runs, of the product that is added as number i. With
     * `splits_f16`, `unit` is the number of elements of A whose leading bits the kernel multiplies
     * before it multiplies the rests of these elements. */
    int64_t unit, run, runs;
    uint8_t places[CLI_LEVEL_MOST_PLACES];
    /* An element of A is the sum of bf16_parts[0] bf16 numbers, and an element of B is the sum of
     * bf16_parts[1]. If the number is 1, the element is multiplied as it is. */
    int bf16_parts[2];
    bool splits_f16; /* `splits_f16` is true if A is f16 and family->splits_f16 is not 0. */
    /* `by_elements` is true if the kernel multiplies elements by fp32 scales before it adds
     * products. Each scaled element is rounded to fp32. */
    bool by_elements;
    /* `scales_last` is true if the kernel adds all products without fp32 scales, and multiplies
     * only the complete sum by them. BENCH_IN_K_BLOCKS uses `promoted` instead. */
    bool scales_last;
    /* `promoted` is used only by BENCH_IN_K_BLOCKS. It is the number of k blocks whose sum is
     * multiplied by the fp32 scales, or 0 if only the sum over all of K is multiplied. */
    int64_t promoted;
} cli_level_order;

/* Returns the order in which the model of a kernel adds the products of a result. `family`
 * describes the kernel, and `parts` is the number of parts into which it divides K. The result
 * holds only if the operands fit the packed form that the kernel multiplies. Otherwise another
 * kernel, the fallback, computes the product. */
cli_level_order cli_level_order_of(const bench_family_level *family, const bsmm_format formats[2],
                                   int64_t parts, int64_t k);

/* Holds the sum of the products a_k * b_k of a row of A and a row of B. `exact` is the sum in
 * double. `rounded` is the sum in fp32, in the order in which the kernel adds. */
typedef struct cli_sums {
    double exact, rounded, magnitude; /* `magnitude` is the sum of |a_k b_k|. */
} cli_sums;

/* Sums the K products of a row of A and a row of B. */
cli_sums cli_level_sum(const cli_level_order *order, const cli_level_row rows[2]);

#endif
