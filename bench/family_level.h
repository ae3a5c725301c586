/* Declares the measured typical error of a family of kernels. `bsmm matmul --check` compares a
 * kernel's errors with it (cli/level.h). */
#ifndef BENCH_FAMILY_LEVEL_H
#define BENCH_FAMILY_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* Describes the order in which a family of kernels adds products (docs/NUMERICS.md, "Order of
 * sums"). */
typedef struct bench_family_level {
    const char *kernel; /* The names of the kernels of the family begin with the text `kernel`. */
    /* The names of the devices on which the family of kernels was measured begin with the text
     * `device`. NULL means all devices of the kind that has the table. */
    const char *device;
    /* `unit` is the number of products that the kernel adds exactly before a rounding. 0 means 32
     * if both scales are e8m0, else 16. */
    int64_t unit;
    /* `segment` is the number of products in a segment, i.e. in a part of K that is summed
     * separately. A segment ends at the latest with a scale block of A or B. 0 means that there are
     * no segments. */
    int64_t segment;
    /* If `chunk` is not 0, `segment` applies only to operands with fp32 scales. For other operands,
     * K is divided into segments of nearly equal length, a multiple of 128, of at most `chunk`
     * elements if B has elements of at most 8 bits, else of at most `wide_chunk`. */
    int64_t chunk, wide_chunk;
    /* `total_in_double` is true if the kernel adds the sums of the segments in double. */
    bool total_in_double;
    /* `divides_k` is true if the kernel divides K among thread blocks when D has few tiles. The
     * sums of the parts of K are then rounded differently, and mostly less often, than `level`
     * assumes. */
    bool divides_k;
    /* `fraction` is the number of bits below the largest term that a tensor core keeps of each term
     * (docs/NUMERICS.md, "Tensor cores"). Segments of such a family do not end with scale blocks. 0
     * means that `unit` products are added exactly and rounded to fp32. */
    int fraction;
    /* `exact_in_bf16` is true if the family was measured only for operands without fp32 scales
     * whose elements bf16 holds exactly. */
    bool exact_in_bf16;
    /* `level` is the largest measured typical error of the family, as a multiple of the typical
     * error of fp32 sums that add the products in the family's order. 0 means that the family was
     * not measured. */
    double level;
} bench_family_level;

#endif
