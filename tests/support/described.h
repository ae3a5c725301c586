/* Declares a valid product. Tests change its descriptions to make them invalid. */
#ifndef BSMM_TEST_DESCRIBED_H
#define BSMM_TEST_DESCRIBED_H

#include "operand.h"

/* M, N and K are the sizes of the product. */
enum { M = 8, N = 16, K = 64 };

typedef struct described {
    _Alignas(64) uint8_t a[M * K], b[N * K];
    uint8_t a_scales[4096], b_scales[4096];
    float c[M * N], d[M * N + 1], bias[N + 1];
    float alpha, beta;
    bsmm_matrix am, bm, cm, dm;
    bsmm_matmul_desc desc;
} described;

/* Makes a product whose operands are all zeros, and fills D with a pattern. */
void described_make(described *f);

#endif
