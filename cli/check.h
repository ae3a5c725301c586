/* Compares a product with the result of the reference kernel, against the error bound of
 * docs/NUMERICS.md. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "command.h"

typedef struct cli_check {
    double max_error;
    double share;     /* largest error divided by its bound; above 1 the kernel breaks its bound */
    int64_t row, col; /* element of D with the largest `share` */
    double got, expected; /* computed and expected value of that element */
} cli_check;

/* Checks the product in desc->d (f32, f16 or bf16). Returns false if the check cannot be made; the
 * library's error message is then set. */
bool cli_check_run(const bsmm_matmul_desc *desc, cli_check *check);

#endif
