/* Declares random descriptions of products, for tests that store what the library does for each of
 * them (golden_lines.h). Product number n has the same description on every machine. */
#ifndef BSMM_TEST_ANY_PRODUCT_H
#define BSMM_TEST_ANY_PRODUCT_H

#include "operand.h"

/* Numbers the operands of a product in the order of the array any_product.matrices. */
enum { ANY_A, ANY_B, ANY_C, ANY_D, ANY_RESIDUAL, ANY_MATRICES };

typedef struct any_product {
    bsmm_matrix matrices[ANY_MATRICES];
    bsmm_epilogue epilogue;
    bsmm_group group;
    float alpha, beta;
    /* The pointers of `desc` point into this struct. The matrices that `desc` describes have no
     * memory. */
    bsmm_matmul_desc desc;
    int64_t rows; /* `rows` is the number of rows of a run, if each run chooses it. */
    /* `counts_on_device` is true if a run on a GPU reads the number of rows from device memory. */
    bool counts_on_device;
    bool has_globals; /* `has_globals` is true if nvfp4 operands have second-level scales. */
} any_product;

/* Makes product number `number`. If `is_small` is set, M, N and K are small enough to multiply the
 * matrices in a test. */
void any_product_make(any_product *p, uint64_t number, bool is_small);

/* Writes the product's formats and sizes to `text`, for messages of a test. */
void any_product_name(const any_product *p, char *text, size_t size);

#endif
