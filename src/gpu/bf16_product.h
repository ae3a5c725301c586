/* The bf16 product is a GEMM on bf16 matrix units that supports operands of any format. This file
 * declares its kernels and their parameters.
 *
 * A value is an element times its block scale. One bf16 number holds a value exactly if the element
 * is bf16 or has at most 8 bits, and its scale is a power of two. The scale may also be e4m3 if the
 * element has at most 4 bits. Three bf16 numbers hold any fp32 value. fp32 scales are applied in
 * one of two ways. If each row has one scale per step of K (32 elements) and one bf16 number holds
 * each element, the kernel multiplies the sum of each step by the scales of both operands.
 * Otherwise the kernel first multiplies the elements by their fp32 scales, and rounds each product
 * once to fp32. */
#ifndef BSMM_GPU_BF16_PRODUCT_H
#define BSMM_GPU_BF16_PRODUCT_H

#include "gpu/epilogue.h"

/* BSMM_BF16_K is the number of elements along K in one step of the main loop. */
enum { BSMM_BF16_K = 32 };

/* Names the kernels of the bf16 product. The sum of one or three bf16 numbers represents a value of
 * A or B. The first digit of a name is the number of bf16 numbers for a value of A, the last digit
 * is that for a value of B. SCALED has one bf16 number for each value, like 1X1, and multiplies the
 * sum of each step of K by fp32 scales. */
typedef enum bsmm_bf16_kind {
#define KERNEL(id, name, a, b, scaled) BSMM_BF16_##id,
#include "gpu/bf16_kernels.def"
#undef KERNEL
} bsmm_bf16_kind;

/* Describes an operand of the bf16 product and how the kernel reads it. */
typedef struct bsmm_bf16_side {
    bsmm_gpu_operand o;
    uint32_t rows;
    uint32_t by_rows;  /* `by_rows` is nonzero if K is contiguous in memory. */
    uint32_t together; /* `together` is nonzero if one load can read 8 elements along K. */
    /* `one` is nonzero if 8 elements along K always share one scale. The 8 elements begin at a
     * multiple of 8. */
    uint32_t one;
    /* `outside` is nonzero if the kernel multiplies the sum of each step of K by the fp32 scales.
     * If it is 0, the kernel multiplies each element by its scale. */
    uint32_t outside;
} bsmm_bf16_side;

/* Holds the parameters of one bf16 product. */
typedef struct bsmm_bf16_job {
    bsmm_bf16_side sides[2]; /* `sides` describes A (index 0) and B (index 1). */
    bsmm_gpu_epilogue epilogue;
    uint32_t k;
    /* `b_tiles` is the number of tiles of B's rows. Tile i * b_tiles + j of D is the product of
     * tile i of A's rows and tile j of B's rows. */
    uint32_t b_tiles;
    uint32_t tiles; /* `tiles` is the number of tiles of D. Thread blocks take them round-robin. */
} bsmm_bf16_job;

#endif
