/* Declares a product by which tests compare kernels. Its operands end before unreadable pages, so
 * an access past their end crashes the test. */
#ifndef BSMM_TEST_PRODUCT_H
#define BSMM_TEST_PRODUCT_H

#include "operand.h"

typedef struct product {
    test_matrix a, b;
    bsmm_matrix d; /* D holds the result and is a matrix of fp32. */
    bsmm_matmul_desc desc;
} product;

void product_make_of(product *p, bsmm_format a, bsmm_format b, int64_t m, int64_t n, int64_t k,
                     fill how, rng *r);
void product_make(product *p, const char *a, const char *b, int64_t m, int64_t n, int64_t k,
                  fill how, rng *r);
void product_free(product *p);

/* Returns the elements of D after the kernel named `kernel` has computed them. NULL lets the
 * library choose the kernel. The caller frees the elements. */
float *result_of(product *p, const char *kernel);

/* Runs a plan of the product. If its description has packed weights, the function packs B before.
 */
void product_run(product *p, const bsmm_plan *plan);

/* Compares the result that p->d holds with that of the kernel `kernel`, which gets B as it is
 * stored. */
void product_check(product *p, const char *kernel);

#endif
