/* Compares the typical error of a kernel with the measured typical error of its family. The error
 * bound of docs/NUMERICS.md holds for all operands and is far above usual errors. A kernel that
 * loses two bits of accuracy stays below the bound, but this comparison finds it. */
#ifndef CLI_LEVEL_H
#define CLI_LEVEL_H

#include "command.h"
#include "level_sum.h"

/* CLI_LEVEL_MOST is the largest error level (cli_level_run) with which a kernel passes. Today's
 * kernels have levels of 0.5 to 1, so a kernel with errors 4 times as large fails. */
#define CLI_LEVEL_MOST 2.0

/* If the operands do not fit a kernel's packed form, a fallback computes the product
 * (cli_level_model). The error level of the results (cli_level_run) shows which of the two ran. The
 * level of the kernel itself is 0.5 to 1, and the errors of a fallback are more than 100 times
 * smaller. A level below CLI_LEVEL_PASSED_ON therefore means that the fallback computed the
 * product. */
#define CLI_LEVEL_PASSED_ON 0.25

/* Describes the order in which a kernel adds. `family` describes the kernels that add in this
 * order, and holds their measured errors. It is NULL if there are no measured errors. `parts` is
 * the number of parts into which the kernel divides K. */
typedef struct cli_level_adder {
    const bench_family_level *family;
    int64_t parts;
} cli_level_adder;

/* Describes by which kernel a product is computed, for the comparison of errors. `own` is the
 * kernel that bsmm chose. Some kernels can multiply only operands that fit a packed form; this is
 * found out on the device, and another kernel computes the product if they do not fit. `fallback`
 * is this other kernel. fallback.family is NULL if there is none, or if its errors are like those
 * of the first kernel. `generic` is a kernel that takes any values. It computes the product if a
 * value or a sum is outside the range of the kernel that should compute it (`own` or `fallback`).
 * generic.family is NULL if that kernel has no such substitute. */
typedef struct cli_level_model {
    cli_level_adder own, fallback, generic;
} cli_level_model;

/* Describes the sums of the kernel `kernel` for a product: the order of additions of the kernel
 * itself and of its fallback. */
cli_level_model cli_level_model_of(const bsmm_matmul_desc *desc, const char *kernel);

/* Decodes a matrix in host memory. The values are those without the second-level scale. On failure,
 * the function prints the error and returns false. */
bool cli_level_decode(const bsmm_matrix *m, cli_level_row *to);
void cli_level_free(cli_level_row *row);

/* Returns true if f16 holds all values of a matrix after packing, or if the matrix has no e8m0
 * scales. Packing multiplies all values by one power of two: the largest one with which 2^3 times
 * the format's largest element still lies in f16's range. Like packing, the function looks only at
 * the scales: it assumes that each block with a nonzero element contains the largest and the
 * smallest element of the format. */
bool cli_level_fits_f16(const bsmm_matrix *m, const cli_level_row *values);

/* Returns true if all elements and all scales of the operand are 0, or finite and neither very
 * small nor very large. Such values are in the range of every kernel, so no kernel takes its
 * fallback because of them. */
bool cli_level_is_moderate(const bsmm_matrix *m, const cli_level_row *values);

/* Multiplies on the device that the description names. The operands are in host memory. On
 * failure, the function prints the error and returns false. */
typedef bool cli_multiply(const bsmm_matmul_desc *desc, void *context);

/* Measures the error level of a kernel, i.e. how large its errors are in comparison with those that
 * were measured for its family before. Multiplies desc->a by desc->b with the kernel, into fp32 and
 * without an epilogue. The relative error of an output is its error divided by sum |a||b|. The
 * typical error of a product is the root mean square of the relative errors. The ratio is the
 * kernel's typical error divided by that of fp32 sums in the same order. Sets *level to this ratio
 * divided by the largest ratio that was measured for the kernel's family. Sets *level to NAN if the
 * family was not measured or too few outputs have an error. Returns false after printing an error
 * message. */
bool cli_level_run(const bsmm_matmul_desc *desc, const char *kernel, cli_multiply *multiply,
                   void *context, double *level);

/* Tells whether a kernel with the error level `level` passes. If the kernel does not pass, the
 * function prints a message. */
bool cli_level_passes(const char *kernel, double level);

/* Returns the same error level as cli_level_run, but computes it from fp32 results d that exist
 * already. `values` holds all rows of a and b, decoded by cli_level_decode. */
double cli_level_compare(const cli_level_model *model, const bsmm_matrix *a, const bsmm_matrix *b,
                         const cli_level_row values[2], const float *d);

#endif
