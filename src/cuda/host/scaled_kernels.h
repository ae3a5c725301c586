/* Lists the kernels of sm100f/scaled_body.h, which multiply operands on Blackwell's tensor cores.
 * The table is made of the entries of sm100f/tiles.def. */
#ifndef BSMM_CUDA_HOST_SCALED_KERNELS_H
#define BSMM_CUDA_HOST_SCALED_KERNELS_H

#include "cuda/host/scaled_formats.h"

/* The first index of the table bsmm_scaled_kernels names the formats of A and B. It is a
 * bsmm_scaled_kind, or one of these: */
enum {
    /* BSMM_SCALED_WIDE: elements of 16 bits, without scales. */
    BSMM_SCALED_WIDE = BSMM_SCALED_KINDS,
    /* BSMM_SCALED_WIDE_GROUPS: elements of 16 bits, and fp32 scales of A, of B or of both. */
    BSMM_SCALED_WIDE_GROUPS,
    /* BSMM_SCALED_FP8_GROUPS: elements of 8 bits with fp32 scales. */
    BSMM_SCALED_FP8_GROUPS,
    BSMM_SCALED_OPERANDS
};

/* The second index of the table bsmm_scaled_kernels tells which kernel it is: in the general
 * kernels, a single thread block or a pair of thread blocks computes a tile of D. The third kernel
 * is for few rows of A. */
enum { BSMM_SCALED_SINGLE, BSMM_SCALED_PAIR, BSMM_SCALED_FEW_ROWS, BSMM_SCALED_SHARINGS };

typedef struct bsmm_scaled_kernel {
    bsmm_cuda_function function; /* The function's name is NULL if there is no such kernel. */
    uint32_t threads;            /* `threads` is the number of threads of a thread block. */
} bsmm_scaled_kernel;

extern const bsmm_scaled_kernel bsmm_scaled_kernels[BSMM_SCALED_OPERANDS][BSMM_SCALED_SHARINGS];

#endif
