/* Chooses how the kernel cuda_sm90a_mixed divides a GEMM among thread blocks, and predicts whether
 * it is faster than other kernels. A column is one row of A. */
#ifndef BSMM_CUDA_HOST_MIXED_CHOOSE_H
#define BSMM_CUDA_HOST_MIXED_CHOOSE_H

#include "cuda/host/kernel.h"

/* Describes a format of B. `kernels` is the number of the format in the table of kernels
 * (SMALL_M_MXFP4 and so on). */
typedef struct bsmm_mixed_weights {
    bsmm_format format;
    uint32_t kernels;
} bsmm_mixed_weights;

/* Describes how a launch divides its part of a GEMM among thread blocks. */
typedef struct bsmm_mixed_division {
    uint32_t choice;     /* `choice` is the index of the tile's width in the list of widths. */
    int64_t first, rows; /* The launch multiplies rows [first, first + rows) of B. */
    /* K is split twice. The `splits` thread blocks of a cluster each take one part of K. In each
     * thread block, the warpgroups form `groups` groups, which split the thread block's part of K
     * further. */
    uint32_t groups, splits;
    uint32_t tiles; /* The columns of A (its rows as bf16) are divided into `tiles` tiles. */
} bsmm_mixed_division;

enum { BSMM_MIXED_MOST_LAUNCHES = 2 };

/* Describes how a GEMM is divided among launches. All launches have the same tile width (`choice`),
 * so that they read the same image of A. */
typedef struct bsmm_mixed_launches {
    bsmm_mixed_division c[BSMM_MIXED_MOST_LAUNCHES];
    uint32_t count;
    double time; /* `time` is the predicted time in us of all launches. */
} bsmm_mixed_launches;

/* Returns the description of B's format, or NULL if no kernel has it. */
const bsmm_mixed_weights *bsmm_mixed_find_weights(const bsmm_operand *b);

uint32_t bsmm_mixed_bits(const bsmm_mixed_weights *w);

/* These functions tell whether weights have one fp32 scale for each row of B, or one for each 128
 * elements along K. */
bool bsmm_mixed_has_rows(const bsmm_mixed_weights *w);
bool bsmm_mixed_has_groups(const bsmm_mixed_weights *w);

/* Returns true if the kernel decodes weights to f16, because A is f16. */
bool bsmm_mixed_is_half(const bsmm_product *p);

/* Returns true if A is e4m3 with one fp32 scale per row, and a kernel for these weights takes such
 * an A. */
bool bsmm_mixed_has_row_scales(const bsmm_operand *a, const bsmm_mixed_weights *w);

/* Returns the kernel for a division. */
const bsmm_cuda_function *bsmm_mixed_function(const bsmm_product *p, const bsmm_mixed_weights *w,
                                              const bsmm_mixed_division *c);

/* These functions return the columns of a tile, the threads of a thread block, and the rows of B
 * that a thread block multiplies. */
uint32_t bsmm_mixed_columns(const bsmm_mixed_division *c);
uint32_t bsmm_mixed_threads(const bsmm_mixed_division *c);
uint32_t bsmm_mixed_rows(const bsmm_mixed_division *c);

/* Finds the division of the GEMM with the least predicted time. */
bsmm_mixed_launches bsmm_mixed_divide(const bsmm_product *p, const bsmm_mixed_weights *w);

/* Returns true if no other kernel is predicted to be faster than this one, which takes `time` us.
 */
bool bsmm_mixed_is_fastest(const bsmm_product *p, const bsmm_mixed_weights *w, double time);

#endif
