/* Compares the typical error of a kernel with the measured typical error of its family. The error
 * bound of docs/NUMERICS.md holds for all operands and is far above usual errors. A kernel that
 * loses two bits of accuracy stays below the bound, but this comparison finds it. */
#ifndef CLI_LEVEL_H
#define CLI_LEVEL_H

#include "command.h"
#include "family_level.h"

/* CLI_LEVEL_MOST is the largest error level (cli_level_run) with which a kernel passes. Today's
 * kernels have levels of 0.5 to 1, so a kernel with errors 4 times as large fails. */
#define CLI_LEVEL_MOST 2.0

/* Returns the measured error of a kernel's family (the kernels that add in the same order) for
 * operands of these formats on this device, or NULL if it was not measured. The device is NULL for
 * the CPU. */
const bench_family_level *cli_level_of(const char *device, const char *kernel,
                                       const bsmm_format formats[2]);

/* Holds a sum of products a_k * b_k. `exact` is the sum in double. `rounded` is the sum in fp32, in
 * the order in which the kernel and its family add. */
typedef struct cli_sums {
    double exact, rounded, magnitude; /* `magnitude` is the sum of |a_k b_k|. */
} cli_sums;
/* Holds decoded rows of an operand. If the operand has fp32 scales, `scales` holds the scale of
 * each element, and `elements` holds the elements without scales. Otherwise `scales` is NULL, and
 * `elements` are multiplied by their scales. */
typedef struct cli_level_row {
    const float *elements, *scales;
} cli_level_row;

/* Decodes a matrix in host memory without its second-level scale. On failure, the function prints
 * the error and returns false. */
bool cli_level_decode(const bsmm_matrix *m, cli_level_row *to);
void cli_level_free(cli_level_row *row);

/* Sums the K products of a row of A and a row of B. `parts` is the number of parts into which the
 * kernel divides K (cli_level_parts). */
cli_sums cli_level_sum(const bench_family_level *family, const bsmm_format formats[2],
                       int64_t parts, const cli_level_row rows[2], int64_t k);

/* Returns the number of parts into which the kernel desc->kernel divides K of this product. */
int64_t cli_level_parts(const bsmm_matmul_desc *desc);

/* Multiplies on the device that the description names. The operands are in host memory. On
 * failure, the function prints the error and returns false. */
typedef bool cli_multiply(const bsmm_matmul_desc *desc, void *context);

/* Measures the error level of a kernel. The function multiplies desc->a by desc->b with the kernel,
 * into fp32 and without an epilogue. The relative error of an output is its error divided by sum
 * |a||b|, and the typical error is the root mean square of the relative errors. The function
 * divides the kernel's typical error by that of fp32 sums in the same order. *level becomes this
 * ratio divided by the largest ratio that was measured for the kernel's family. *level is NAN if
 * the family was not measured or too few outputs have an error. Returns false after printing an
 * error message. */
bool cli_level_run(const bsmm_matmul_desc *desc, const char *kernel, cli_multiply *multiply,
                   void *context, double *level);

/* Tells whether a kernel with the error level `level` passes. If the kernel does not pass, the
 * function prints a message. */
bool cli_level_passes(const char *kernel, double level);

/* Returns the level that cli_level_run computes, but from fp32 results d that exist already.
 * `values` holds all rows of a and b, decoded by cli_level_decode. */
double cli_level_compare(const bench_family_level *family, int64_t parts, const bsmm_matrix *a,
                         const bsmm_matrix *b, const cli_level_row values[2], const float *d);

#endif
