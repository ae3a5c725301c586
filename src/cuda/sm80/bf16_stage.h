/* Decodes one step of an operand to bf16 in shared memory. A step is 32 elements along K. A plane
 * holds one bf16 part of each value, as rows of 32 elements, and there are as many planes as parts.
 * A value that its parts do not represent exactly is stored as NaN; the results that it affects are
 * recomputed in double. */
#ifndef BSMM_CUDA_SM80_BF16_STAGE_H
#define BSMM_CUDA_SM80_BF16_STAGE_H

#include "cuda/sm80/bf16_params.h"
#include "gpu/bf16_values.h"

/* The bytes of one plane of an operand's tile in shared memory: one bf16 per element. */
enum { BF16_PLANE = BSMM_BF16_TILE * BSMM_BF16_K * 2 };

/* Eight values along K into all planes, 16 bytes of each; whether any is not 0. Where there are
 * more planes than one, words are stored one by one: registers are scarce then. */
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

/* Decodes one step of a tile to shared memory, as [part][row][32]. Sets nonzero[row] if the row has
 * a nonzero value. */
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

/* The scales that stay outside, of one step. */
static __device__ __forceinline__ void
bf16_stage_factors(const bsmm_bf16_side *side, uint32_t first_row, uint32_t k, float *to) {
    for (uint32_t i = threadIdx.x; i < BSMM_BF16_TILE; i += BSMM_BF16_THREADS)
        to[i] = bf16_factor(side, first_row + i, k);
}

#endif
