/* Compares a product with the result of the reference kernel. The difference must be within the
 * error bound of docs/NUMERICS.md. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "command.h"

typedef struct cli_check {
    double max_error;
    /* `share` is the largest error divided by its bound. A value above 1 means that the kernel
     * exceeds its bound. */
    double share;
    /* `row` and `col` are the position of the element of D with the largest `share`. */
    int64_t row, col;
    /* `got` is the computed value of the element (row, col) of D, and `expected` is the value that
     * it should have. */
    double got, expected;
} cli_check;

/* Checks the product in desc->d (f32, f16 or bf16). Returns false if the check is impossible. In
 * that case the library's error message gives the reason. */
bool cli_check_run(const bsmm_matmul_desc *desc, cli_check *check);

#endif
