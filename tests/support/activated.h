/* Declares a product of mxfp8 and mxfp4 with an epilogue, which several tests use. */
#ifndef BSMM_TEST_ACTIVATED_H
#define BSMM_TEST_ACTIVATED_H

#include "operand.h"

/* M, N and K are the sizes of the product. With a gated activation, D has HALF columns, i.e. half
 * of N. */
enum { M = 9, HALF = 70, N = 2 * HALF, K = 160 };

typedef struct activated {
    test_matrix a, b, c, d, residual;
    double *a_values, *b_values;
    float alpha, beta, bias[N], row_scale[M], col_scale[N];
    bsmm_epilogue epilogue;
    bsmm_matmul_desc desc;
} activated;

/* Makes the product with this epilogue and a D of the format `d`. With `everything`, the product
 * also has C, a bias, a residual, and scales of rows and columns. */
void activated_make(activated *p, const bsmm_epilogue *e, const char *d, bool everything, rng *r);
void activated_free(activated *p);

/* `gpt_oss` is the epilogue of the language model gpt-oss: swiglu over interleaved gates and ups,
 * with a limit, a slope and an offset of the ups. */
extern const bsmm_epilogue gpt_oss;

#endif
