/* In each step (32 elements along K), the generic bf16 GEMM decodes both operands to bf16 in shared
 * memory. A decoded value is the sum of one to three bf16 numbers (parts), because one may not
 * suffice. Shared memory has a plane for each part: plane i holds part i of all values, in rows of
 * 32 elements. If a value is not exactly the sum of its parts, NaN is stored instead. The results
 * of its row then become NaN, and the kernel recomputes them in double. */
#ifndef BSMM_CUDA_SM80_BF16_STAGE_H
#define BSMM_CUDA_SM80_BF16_STAGE_H

#include "cuda/sm80/bf16_params.h"
#include "gpu/bf16_values.h"

/* BF16_PLANE is the size in bytes of a plane. A plane holds one bf16 part of each value of a
 * tile. */
enum { BF16_PLANE = BSMM_BF16_TILE * BSMM_BF16_K * 2 };

/* Decodes eight values along K and splits each into `parts` bf16 numbers. Plane i in shared memory
 * gets part i of the eight values, i.e. 16 bytes. Returns true if a value is nonzero. With several
 * planes, the function stores one 4-byte word at a time, because registers are scarce then. */
static __device__ __forceinline__ bool bf16_convert(const int parts, const bsmm_bf16_side *side,
                                                    uint32_t row, uint32_t k, uint32_t end,
                                                    uint8_t *to) {
    float values[8];
    uint32_t any = 0, one[4];
    bf16_values(side, row, k, end, values);
#pragma unroll
    for (uint32_t i = 0; i < 8; i += 2) {
        uint32_t words[3];
        bf16_split(parts, values[i], values[i + 1], words, &any);
        one[i / 2] = words[0];
        if (parts == 1) continue;
#pragma unroll
        for (int part = 0; part < parts; part++)
            *(uint32_t *)(to + part * BF16_PLANE + i * 2) = words[part];
    }
    if (parts == 1) *(uint4 *)to = make_uint4(one[0], one[1], one[2], one[3]);
    return any & 0x7fffffffu;
}

/* Decodes one step (32 elements of K) of an operand's tile to shared memory, as [bf16
 * part][row][32]. `end` is the end of K. Sets nonzero[row] to 1 if the row has a nonzero value. */
static __device__ __forceinline__ void bf16_stage(const int parts, const bsmm_bf16_side *side,
                                                  uint32_t first_row, uint32_t k, uint32_t end,
                                                  uint8_t *to, uint32_t *nonzero) {
    uint32_t row = side->by_rows ? threadIdx.x / 4 : threadIdx.x % BSMM_BF16_TILE;
    uint32_t eighth = side->by_rows ? threadIdx.x % 4 : threadIdx.x / BSMM_BF16_TILE;
    uint8_t *at = to + row * BSMM_BF16_K * 2 + eighth * 16;
    if (first_row + row < side->rows && k + eighth * 8 < end) {
        if (bf16_convert(parts, side, first_row + row, k + eighth * 8, end, at)) nonzero[row] = 1;
        return;
    }
#pragma unroll
    for (int part = 0; part < parts; part++)
        *(uint4 *)(at + part * BF16_PLANE) = make_uint4(0, 0, 0, 0);
}

/* Stores in shared memory, for each row of the tile, the factor by which the kernel multiplies the
 * sums of one step (32 elements of K). The factor is the row's fp32 scale. It is 1 if the operand
 * has no scales, or if its elements have already been multiplied by their scales. */
static __device__ __forceinline__ void
bf16_stage_factors(const bsmm_bf16_side *side, uint32_t first_row, uint32_t k, float *to) {
    for (uint32_t i = threadIdx.x; i < BSMM_BF16_TILE; i += BSMM_BF16_THREADS)
        to[i] = bf16_factor(side, first_row + i, k);
}

#endif
