/* A product compared with the reference, against the bound of docs/NUMERICS.md. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "command.h"

typedef struct cli_check {
    double max_error;
    double share;         /* largest error / bound; above 1 the kernel broke its promise */
    int64_t row, col;     /* where the share is largest */
    double got, expected; /* there */
} cli_check;

/* desc->d holds the product (f32, f16 or bf16). False with the library's message set. */
bool cli_check_run(const bsmm_matmul_desc *desc, cli_check *check);

#endif
