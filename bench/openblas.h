/* OpenBLAS as a peer, loaded at run time where it is installed. */
#ifndef BENCH_OPENBLAS_H
#define BENCH_OPENBLAS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench_openblas {
    void *library;
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    char version[64];
} bench_openblas;

/* False when it is not there; *why then says what was looked for. BSMM_BENCH_OPENBLAS in the
 * environment names another file; empty: none. */
bool bench_openblas_open(bench_openblas *blas, int threads, const char **why);
void bench_openblas_close(bench_openblas *blas);

/* C = A B^T, all row-major and packed, A (m, k), B (n, k). False if a size is beyond its int. */
bool bench_openblas_run(const bench_openblas *blas, const int64_t sizes[3], const float *a,
                        const float *b, float *c);

#endif
