/* The product that takes any operands, on a GPU's bf16 matrix units: which of its kernels a product
 * takes, and their parameters.
 *
 * A value is element times block scale. One bf16 holds it for elements of 8 bits and fewer and for
 * bf16, with scales that are powers of two or e4m3 beside at most 4 bits; three hold any fp32
 * value. fp32 scales stay outside where the other operand fits one bf16 too and a step of K has one
 * scale: they are applied to the step's sums; else they are multiplied in with one fp32 rounding.
 */
#ifndef BSMM_GPU_BF16_PRODUCT_H
#define BSMM_GPU_BF16_PRODUCT_H

#include "gpu/epilogue.h"

enum { BSMM_BF16_K = 32 }; /* of a step */

/* How many bf16 hold a value of A and of B; SCALED: one each, and scales that stay outside. */
typedef enum bsmm_bf16_kind {
    BSMM_BF16_1X1,
    BSMM_BF16_SCALED,
    BSMM_BF16_1X3,
    BSMM_BF16_3X1,
    BSMM_BF16_3X3
} bsmm_bf16_kind;

/* How an operand is read. */
typedef struct bsmm_bf16_side {
    bsmm_gpu_operand o;
    uint32_t rows;
    uint32_t by_rows;  /* K is contiguous */
    uint32_t together; /* 8 elements along K may be loaded at once */
    uint32_t one;      /* 8 elements along K, from a multiple of 8 on, have one scale */
    uint32_t outside;  /* fp32 scales, one for each row and step, are applied to sums */
} bsmm_bf16_side;

/* A product. */
typedef struct bsmm_bf16_job {
    bsmm_bf16_side sides[2]; /* A, B */
    bsmm_gpu_epilogue epilogue;
    uint32_t k;
    uint32_t b_tiles; /* tiles of B; a tile's number is A's tile * b_tiles + B's tile */
    uint32_t tiles;   /* in all; blocks take them in turn */
} bsmm_bf16_job;

#endif
