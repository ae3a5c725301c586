/* A product with its operands in guarded memory, for tests that compare kernels. */
#ifndef BSMM_TEST_PRODUCT_H
#define BSMM_TEST_PRODUCT_H

#include "operand.h"

typedef struct product {
    test_matrix a, b;
    bsmm_matrix d; /* The result D, a matrix of fp32. */
    bsmm_matmul_desc desc;
} product;

void product_make_of(product *p, bsmm_format a, bsmm_format b, int64_t m, int64_t n, int64_t k,
                     fill how, rng *r);
void product_make(product *p, const char *a, const char *b, int64_t m, int64_t n, int64_t k,
                  fill how, rng *r);
void product_free(product *p);

/* Returns D, computed by a kernel, or by the kernel that the library chooses if `kernel` is NULL.
 * The caller frees it. */
float *result_of(product *p, const char *kernel);

#endif
