/* Compares the typical error of a kernel with the typical error that its family had when it was
 * measured. The error bound of docs/NUMERICS.md holds for all operands and lies far above the
 * errors of usual operands. A kernel that lost two bits of accuracy would stay below that bound;
 * this comparison finds it. */
#ifndef CLI_LEVEL_H
#define CLI_LEVEL_H

#include "command.h"
#include "family_level.h"

/* The largest error level (cli_level_run) that passes. The measured kernels have levels of 0.5 to
 * 1, so that a kernel with errors 4 times as large fails. */
#define CLI_LEVEL_MOST 2.0

/* Returns the measured error of a kernel's family for operands of these formats, or NULL if the
 * family was not measured for them. */
const bench_family_level *cli_level_of(const char *kernel, const bsmm_format formats[2]);

/* One sum of products a_k * b_k: exact (in double), and rounded in fp32 in the order of the kernel
 * family. */
typedef struct cli_sums {
    double exact, rounded, magnitude; /* magnitude: sum of |a_k b_k| */
} cli_sums;
cli_sums cli_level_sum(const bench_family_level *family, const bsmm_format formats[2],
                       const float *a, const float *b, int64_t k);

/* Multiplies on the device of a description, whose pointers are to host memory. Returns false after
 * it has reported the error. */
typedef bool cli_multiply(const bsmm_matmul_desc *desc, void *context);

/* Measures the error level of a kernel. The function multiplies desc->a by desc->b again with the
 * kernel, into fp32, without alpha, C, bias, epilogue and global scales. The error of each output
 * is taken relative to its sum |a||b|. The root mean square of these errors is divided by that of
 * fp32 sums in the order of the kernel's family (cli_level_sum). *level is this quotient, divided
 * by the largest one that was measured for the family. It is NAN if the family was not measured, or
 * if fewer than 128 outputs have an error. Returns false if the product fails, or if memory is
 * short; the error is then reported. */
bool cli_level_run(const bsmm_matmul_desc *desc, const char *kernel, cli_multiply *multiply,
                   void *context, double *level);

/* Computes the error level of cli_level_run from fp32 results d that exist already. a_values and
 * b_values are the decoded values of a and b. */
double cli_level_compare(const bench_family_level *family, const bsmm_matrix *a,
                         const bsmm_matrix *b, const float *a_values, const float *b_values,
                         const float *d);

#endif
