/* Computes tiles of the generic bf16 GEMM, one after another. Each value of A is the sum of a_parts
 * bf16 numbers (parts), and each value of B is the sum of b_parts. If `scaled` is true, the sum of
 * each step (32 elements of K) is multiplied by fp32 scales, for which `factors` is buffers in
 * shared memory.
 *
 * `shared` is the buffer in shared memory for the operands. A plane is one bf16 part of all values
 * of A's tile or of B's tile in one step (bf16_stage.h). `shared` has room for two steps, i.e. for
 * 2 * (a_parts + b_parts) planes, and for at least 8 planes. All BSMM_BF16_THREADS threads of a
 * thread block call this function together. */
#ifndef BSMM_CUDA_SM80_BF16_TILES_H
#define BSMM_CUDA_SM80_BF16_TILES_H

#include "cuda/sm80/bf16_finish.h"
#include "cuda/sm80/bf16_multiply.h"
#include "cuda/sm80/bf16_stage.h"

static __device__ __forceinline__ void bf16_tiles(const int a_parts, const int b_parts,
                                                  const bool scaled, const bsmm_bf16_job *p,
                                                  uint8_t *shared, uint32_t *nonzero,
                                                  float (*factors)[2 * BSMM_BF16_TILE]) {
    const uint32_t warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint32_t row = warp / 4 * 32, col = warp % 4 * 32;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x) {
        const uint32_t a_base = tile / p->b_tiles * BSMM_BF16_TILE;
        const uint32_t b_base = tile % p->b_tiles * BSMM_BF16_TILE;
        /* An element of A or B is split into one or several bf16 parts. `sum_sets` is the number of
         * sets of accumulators. With two sets, one is for the product of the largest part of an
         * element of A and the largest part of an element of B, and the other is for all other
         * products of parts. If A and B together have more than four parts per element, the
         * registers suffice for only one set, which is for all products. */
        const int sum_sets = a_parts + b_parts > 4 ? 1 : 2;
        float all[2 * BF16_ROW_TILES * BF16_COL_TILES][4], (*const sums)[4] = all;
        float(*const rest)[4] = all + (sum_sets - 1) * BF16_ROW_TILES * BF16_COL_TILES;
#pragma unroll
        for (int i = 0; i < sum_sets * BF16_ROW_TILES * BF16_COL_TILES; i++)
            all[i][0] = all[i][1] = all[i][2] = all[i][3] = 0;
        __syncthreads(); /* Wait until all threads have stored the previous tile. */
        if (threadIdx.x < 2 * BSMM_BF16_TILE) nonzero[threadIdx.x] = 0;
        __syncthreads();

        /* Double buffering lets some warps multiply one buffer while others decode to the other
         * buffer. One barrier per step is enough: a buffer is written again only after the barrier
         * of the next step, which each warp reaches only after it has read the buffer. */
        for (uint32_t k = 0, buffer = 0; k < p->k; k += BSMM_BF16_K, buffer ^= 1) {
            uint8_t *a = shared + buffer * (a_parts + b_parts) * BF16_PLANE;
            uint8_t *b = a + a_parts * BF16_PLANE;
            if (a_parts + b_parts > 4) {
                /* The loop is not unrolled, because the registers do not suffice to decode A and B
                 * at once. */
#pragma unroll 1
                for (int i = 0; i < 2; i++)
                    bf16_stage(a_parts, &p->sides[i], i ? b_base : a_base, k, p->k, i ? b : a,
                               nonzero + i * BSMM_BF16_TILE);
            } else {
                bf16_stage(a_parts, &p->sides[0], a_base, k, p->k, a, nonzero);
                bf16_stage(b_parts, &p->sides[1], b_base, k, p->k, b, nonzero + BSMM_BF16_TILE);
            }
            if (scaled) {
                bf16_stage_factors(&p->sides[0], a_base, k, factors[buffer]);
                bf16_stage_factors(&p->sides[1], b_base, k, factors[buffer] + BSMM_BF16_TILE);
            }
            __syncthreads();
            if (scaled)
                bf16_step_scaled(a, b, row + g, col + g, factors[buffer],
                                 factors[buffer] + BSMM_BF16_TILE, sums);
            else
                bf16_step(a_parts, b_parts, a, b, row + g, col + g, sums, rest);
        }
        __syncthreads();

        /* The accumulators are written to shared memory before the call of bf16_epilogue_store,
         * because a called function preserves only few registers. */
        float *strip = (float *)shared + warp * (BF16_ROW_TILES * BF16_STRIP);
#pragma unroll
        for (int m = 0; m < BF16_ROW_TILES; m++)
#pragma unroll
            for (int n = 0; n < BF16_COL_TILES; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    strip[m * BF16_STRIP + (g + i / 2 * 8) * 32 + n * 8 + t * 2 + i % 2] =
                        sums[m * BF16_COL_TILES + n][i] +
                        (sum_sets == 2 ? rest[m * BF16_COL_TILES + n][i] : 0);
        __syncwarp();
        bf16_epilogue_store(p, strip, nonzero, a_base, b_base, row, col);
    }
}

#endif
