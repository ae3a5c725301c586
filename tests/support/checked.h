/* Declares a product whose results are compared with a product that the test computes in double. */
#ifndef BSMM_TEST_CHECKED_H
#define BSMM_TEST_CHECKED_H

#include "operand.h"

typedef struct checked_product {
    test_matrix a, b, c, d;
    float alpha, beta;
    float *bias; /* `bias` points to N floats, which end before an unreadable page. */
    bsmm_matmul_desc desc;
} checked_product;

/* Makes a product of matrices with these descriptions. Its alpha is 1, and it has no C and no
 * bias. */
void checked_make(checked_product *p, bsmm_matrix a, bsmm_matrix b, bsmm_matrix d, fill how,
                  rng *r);
/* Adds to the product a C of this format, an fp32 bias, and an alpha and a beta that are not 1. */
void checked_add_c_and_bias(checked_product *p, const char *format, rng *r);
void checked_free(checked_product *p);

/* Runs the product by every kernel that accepts it, on every device. Checks every result against
 * the kernel's error bound. D is filled with a pattern before each run. */
void checked_run(checked_product *p);

#endif
