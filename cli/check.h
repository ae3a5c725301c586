/* Compares a product with the reference kernel, against the error bound of docs/NUMERICS.md. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "command.h"

typedef struct cli_check {
    double max_error;
    double share;         /* largest error / bound; above 1 the kernel broke its bound */
    int64_t row, col;     /* element of D with the largest share of the bound */
    double got, expected; /* computed and expected value of that element */
} cli_check;

/* Checks the product in desc->d (f32, f16 or bf16). Returns false if it cannot be checked; the
 * library's message is then set. */
bool cli_check_run(const bsmm_matmul_desc *desc, cli_check *check);

#endif
