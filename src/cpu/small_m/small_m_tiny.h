/* Declares the tiny products of the AVX-512 small-M kernels. A tiny product is so small that
 * packing A, gathering the scales of B and dividing the work takes longer than multiplying. It is
 * computed in one function, which decodes both operands into registers and local arrays and needs
 * no workspace.
 *
 * The results have the same bits as those of the kernels' loops for larger products, because the
 * products of a result are added in the same order, and scales that are powers of two do not round.
 * The function leaves a product to those loops if a scale is negative, or if a scale or an element
 * is NaN, Inf, or so large or small that fp32 sums might be wrong. */
#ifndef BSMM_CPU_SMALL_M_TINY_H
#define BSMM_CPU_SMALL_M_TINY_H

#include "cpu/small_m/small_m.h"

enum {
    BSMM_TINY_ROWS = 16,  /* BSMM_TINY_ROWS is the largest number of rows of A in a tiny product. */
    BSMM_TINY_COLS = 128, /* BSMM_TINY_COLS is the largest number of rows of B in a tiny product. */
    /* BSMM_TINY_STEPS is the largest number of steps of 32 elements of K in a tiny product. K must
     * consist of whole steps. */
    BSMM_TINY_STEPS = 4,
};

/* Returns true if the product is tiny and its elements and scales lie in memory as the functions
 * for tiny products read them. Plans call this function. */
bool bsmm_small_m_is_tiny(const bsmm_product *p);

/* This struct holds the accumulators of a panel (16 columns of D). */
typedef struct bsmm_tiny_panel {
    _Alignas(64) float acc[BSMM_TINY_ROWS][BSMM_SMALL_M_LANES];
    int64_t col, cols; /* `col` is the first column, and `cols` is the number of columns. */
} bsmm_tiny_panel;

/* Returns true if the accumulators are the values of D, i.e. if there is no epilogue and no
 * second-level scale. D is then f32 or bf16 in row order. */
bool bsmm_small_m_tiny_is_plain(const bsmm_product *p);

/* Applies the epilogue to a panel and stores it in D. */
void bsmm_small_m_tiny_store(const bsmm_product *p, const bsmm_tiny_panel *panel);

/* bsmm_small_m_tiny_int8dot, bsmm_small_m_tiny_bf16dot and bsmm_small_m_tiny_f32fma compute a tiny
 * product (bsmm_small_m_is_tiny) with the instructions of the engine int8dot, bf16dot or f32fma.
 * They need AVX-512 with VBMI. `context` points to the tables of the engine
 * (bsmm_small_m_engine.make_context); those of f32fma are not read. The functions return false,
 * without changing D, if a scale is negative, or if a scale or an element is NaN, Inf, or so large
 * or small that fp32 sums might be wrong. The functions that end in `_takes` only return whether
 * the formats of a tiny product are supported. */
bool bsmm_small_m_tiny_int8dot(const bsmm_product *p, const void *context);
bool bsmm_small_m_tiny_int8dot_takes(const bsmm_product *p);
bool bsmm_small_m_tiny_bf16dot(const bsmm_product *p, const void *context);
bool bsmm_small_m_tiny_bf16dot_takes(const bsmm_product *p);
bool bsmm_small_m_tiny_f32fma(const bsmm_product *p, const void *context);
bool bsmm_small_m_tiny_f32fma_takes(const bsmm_product *p);

/* This struct is the state of a kernel that multiplies packed operands. For tiny products
 * (bsmm_small_m_is_tiny) there are faster functions, which read B's codes in compact order (pieces
 * of 16 rows are interleaved). Packed weights of form wide contain these codes, too. If a plan gets
 * such weights and its product is tiny, `multiply` is the function that computes it from the codes.
 * In all other cases `multiply` is NULL. */
typedef struct bsmm_tiny_gemm {
    bsmm_gemm gemm;
    _Alignas(64) uint8_t context[BSMM_SMALL_M_CONTEXT_BYTES];
    bool (*multiply)(const bsmm_product *p, const void *context);
} bsmm_tiny_gemm;

/* Sets the members of *to that follow `gemm`. `is_int8` tells which of the two engines (int8dot or
 * bf16dot) the kernel has. */
void bsmm_small_m_tiny_make(const bsmm_product *p, bool is_int8, bsmm_tiny_gemm *to);
/* A tiny product has few rows of A, few rows of B and a short K. If the product is tiny and its
 * values permit it, computes it by a function for tiny products. Otherwise computes it by the loops
 * for larger products (bsmm_gemm_run). */
bsmm_status bsmm_small_m_tiny_run(const bsmm_product *p, const void *state, void *workspace);

#endif
