/* Multiplies one step of the generic bf16 GEMM on the tensor cores. A step is 32 elements along K.
 * A thread block has 16 warps in a 4 x 4 grid, and each warp computes 32 x 32 results. A thread
 * loads 16 adjacent bytes (8 elements along K) of each row that it needs. These are not the
 * elements along K that mma.sync expects in this thread. This does not matter: A and B are permuted
 * along K in the same way, so the same pairs of elements are multiplied. */
#ifndef BSMM_CUDA_SM80_BF16_MULTIPLY_H
#define BSMM_CUDA_SM80_BF16_MULTIPLY_H

#include "cuda/ptx/mma.h"
#include "cuda/sm80/bf16_stage.h"

enum { BF16_ROW_TILES = 2, BF16_COL_TILES = 4 };

static __device__ __forceinline__ uint4 bf16_fragment(const uint8_t *plane, uint32_t row) {
    return *(const uint4 *)(plane + row * (BSMM_BF16_K * 2) + threadIdx.x % 4 * 16);
}

static __device__ __forceinline__ void bf16_mma(float sum[4], const uint4 *a, const uint4 *a8,
                                                const uint4 *b) {
    ptx_mma_bf16(sum, a->x, a8->x, a->y, a8->y, b->x, b->y);
    ptx_mma_bf16(sum, a->z, a8->z, a->w, a8->w, b->z, b->w);
}

/* Multiplies one bf16 part of B's values (`right`) by several bf16 parts of A's values, those
 * numbered [first, end), and adds the products to `sums`. */
static __device__ __forceinline__ void bf16_multiply(const uint8_t *a, const int first,
                                                     const int end,
                                                     const uint4 right[BF16_COL_TILES],
                                                     uint32_t row, float (*sums)[4]) {
#pragma unroll
    for (int part = first; part < end; part++)
#pragma unroll
        for (int m = 0; m < BF16_ROW_TILES; m++) {
            uint4 low = bf16_fragment(a + part * BF16_PLANE, row + m * 16);
            uint4 high = bf16_fragment(a + part * BF16_PLANE, row + m * 16 + 8);
#pragma unroll
            for (int n = 0; n < BF16_COL_TILES; n++)
                bf16_mma(sums[m * BF16_COL_TILES + n], &low, &high, &right[n]);
        }
}

static __device__ __forceinline__ void bf16_columns(const uint8_t *plane, uint32_t col,
                                                    uint4 right[BF16_COL_TILES]) {
#pragma unroll
    for (int n = 0; n < BF16_COL_TILES; n++)
        right[n] = bf16_fragment(plane, col + n * 8);
}

/* Multiplies one step (32 elements of K) of operands whose values are sums of up to three bf16
 * parts, the largest part first. The products of the first parts of A and B are added to `sums`,
 * and those of all other pairs of parts to `rest`. These are much smaller, and with accumulators of
 * their own they cause smaller rounding errors. Pairs of parts whose product is below 2^-23 of the
 * product of the first parts are skipped. */
static __device__ __forceinline__ void bf16_step(const int a_parts, const int b_parts,
                                                 const uint8_t *a, const uint8_t *b, uint32_t row,
                                                 uint32_t col, float (*sums)[4], float (*rest)[4]) {
    uint4 right[BF16_COL_TILES];
    bf16_columns(b, col, right);
    bf16_multiply(a, 0, 1, right, row, sums);
    bf16_multiply(a, 1, a_parts, right, row, rest);
#pragma unroll 1 /* Unrolled, this loop would need more registers than a thread has. */
    for (int part = 1; part < b_parts; part++) {
        bf16_columns(b + part * BF16_PLANE, col, right);
        bf16_multiply(a, 0, 1, right, row, rest);
        if (a_parts > 1 && part == 1) bf16_multiply(a, 1, 2, right, row, rest);
    }
}

/* Multiplies one step (32 elements of K) of operands whose values are single bf16 numbers. Then it
 * multiplies the sums of the step by the fp32 scales of A's rows (`a_factors`) and of B's rows
 * (`b_factors`), and adds the products to the accumulators `sums`. */
static __device__ __forceinline__ void bf16_step_scaled(const uint8_t *a, const uint8_t *b,
                                                        uint32_t row, uint32_t col,
                                                        const float *a_factors,
                                                        const float *b_factors, float (*sums)[4]) {
    uint4 right[BF16_COL_TILES];
#pragma unroll
    for (int n = 0; n < BF16_COL_TILES; n++)
        right[n] = bf16_fragment(b, col + n * 8);
    const float *columns = b_factors + col - threadIdx.x % 32 / 4 + threadIdx.x % 4 * 2;
#pragma unroll
    for (int m = 0; m < BF16_ROW_TILES; m++) {
        uint4 low = bf16_fragment(a, row + m * 16), high = bf16_fragment(a, row + m * 16 + 8);
        float factor = a_factors[row + m * 16], factor8 = a_factors[row + m * 16 + 8];
#pragma unroll
        for (int n = 0; n < BF16_COL_TILES; n++) {
            float part[4] = {0, 0, 0, 0}, *sum = sums[m * BF16_COL_TILES + n];
            bf16_mma(part, &low, &high, &right[n]);
            float2 column = *(const float2 *)(columns + n * 8);
            sum[0] = fmaf(part[0], factor * column.x, sum[0]);
            sum[1] = fmaf(part[1], factor * column.y, sum[1]);
            sum[2] = fmaf(part[2], factor8 * column.x, sum[2]);
            sum[3] = fmaf(part[3], factor8 * column.y, sum[3]);
        }
    }
}

#endif
