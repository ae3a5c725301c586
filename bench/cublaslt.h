/* NVIDIA's cuBLASLt on the same shape, loaded at run time: libcublasLt.so.13 or .12, or the file
 * that BSMM_BENCH_CUBLASLT names. */
#ifndef BENCH_CUBLASLT_H
#define BENCH_CUBLASLT_H

#include "cuda.h"

/* How it multiplies. */
typedef enum bench_lt_kind {
    BENCH_LT_FP8,    /* e4m3, one scale per tensor, fast accumulation: the practical ceiling */
    BENCH_LT_VEC128, /* e4m3, A's scales 1x128, B's 128x128 */
    BENCH_LT_BF16,   /* bf16 */
    BENCH_LT_KINDS
} bench_lt_kind;

typedef struct bench_lt_info {
    const char *name;  /* "cublaslt_fp8" */
    const char *title; /* a column's heading */
    const char *work;  /* what it does */
} bench_lt_info;
extern const bench_lt_info bench_lt_infos[BENCH_LT_KINDS];

typedef struct bench_lt bench_lt;

/* NULL if it is not there; bench_cuda_error() tells why. The device is the thread's current one. */
bench_lt *bench_lt_open(void);
void bench_lt_close(bench_lt *lt);          /* NULL is allowed */
const char *bench_lt_version(bench_lt *lt); /* "cuBLASLt 13.1.0" */

/* D = A B^T of M x N x K with results of `out`, over `sets` copies of random operands. */
typedef struct bench_lt_shape {
    int64_t m, n, k;
    uint32_t out; /* bsmm_elem: f32, f16 or bf16 */
    size_t sets;
} bench_lt_shape;

typedef struct bench_lt_product bench_lt_product;

/* With the fastest of the algorithms that its heuristic offers. NULL where it has none, or without
 * memory. The operands live until bench_cuda_reset, the rest until destroy. */
bench_lt_product *bench_lt_create(bench_lt *lt, bench_cuda *cuda, bench_lt_kind kind,
                                  const bench_lt_shape *shape);
void bench_lt_destroy(bench_lt_product *product); /* NULL is allowed */

/* A bench_cuda_work; context is the product. */
bool bench_lt_run(void *product, size_t turn);

#endif
