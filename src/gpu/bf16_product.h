/* The bf16 product is a GEMM on bf16 matrix units that supports operands of any format. This file
 * declares its kernels and their parameters.
 *
 * A value is an element times its block scale. One bf16 number holds a value exactly if the element
 * is bf16 or has at most 8 bits, and its scale is a power of two. The scale may also be e4m3 if the
 * element has at most 4 bits. Three bf16 numbers hold any fp32 value. The kernel multiplies the sum
 * of each step of K (32 elements) by the fp32 scales of both operands, under two conditions. Each
 * row must have one scale per step, and one bf16 number must hold each element. In all other cases
 * the kernel multiplies the elements by their fp32 scales first, and each product is rounded once
 * to fp32. */
#ifndef BSMM_GPU_BF16_PRODUCT_H
#define BSMM_GPU_BF16_PRODUCT_H

#include "gpu/epilogue.h"

enum { BSMM_BF16_K = 32 }; /* the elements along K in one step of the main loop */

/* The kernels of the bf16 product, named after the number of bf16 numbers that hold a value of A
 * and a value of B. SCALED has one bf16 number for each value, like 1X1, and multiplies the sum of
 * each step of K by fp32 scales. */
typedef enum bsmm_bf16_kind {
    BSMM_BF16_1X1,
    BSMM_BF16_SCALED,
    BSMM_BF16_1X3,
    BSMM_BF16_3X1,
    BSMM_BF16_3X3
} bsmm_bf16_kind;

/* An operand of the bf16 product, and how the kernel reads it. */
typedef struct bsmm_bf16_side {
    bsmm_gpu_operand o;
    uint32_t rows;
    uint32_t by_rows;  /* nonzero if K is contiguous in memory */
    uint32_t together; /* nonzero if one load can read 8 elements along K */
    /* nonzero if 8 elements along K, beginning at a multiple of 8, always share one scale */
    uint32_t one;
    /* nonzero if the kernel multiplies the sum of each step of K by the fp32 scales, instead of
     * elements */
    uint32_t outside;
} bsmm_bf16_side;

/* The parameters of one bf16 product. */
typedef struct bsmm_bf16_job {
    bsmm_bf16_side sides[2]; /* A and B */
    bsmm_gpu_epilogue epilogue;
    uint32_t k;
    /* The number of tiles of B's rows. Tile i * b_tiles + j of D is the product of tile i of A's
     * rows and tile j of B's rows. */
    uint32_t b_tiles;
    uint32_t tiles; /* the number of tiles of D. Thread blocks take them round-robin. */
} bsmm_bf16_job;

#endif
