/* The bf16 product, tile after tile: so many parts of A's and B's values; scaled: fp32 scales are
 * applied to the sums of each step. `shared`: 8 planes, or two for each part if that is more;
 * `factors` of scaled ones only. By all BSMM_BF16_THREADS threads of a block. */
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
        /* Registers do not suffice for both with three parts on both sides. */
        const int shares = a_parts + b_parts > 4 ? 1 : 2;
        float all[2 * BF16_ROW_TILES * BF16_COL_TILES][4], (*const sums)[4] = all;
        float(*const rest)[4] = all + (shares - 1) * BF16_ROW_TILES * BF16_COL_TILES;
#pragma unroll
        for (int i = 0; i < shares * BF16_ROW_TILES * BF16_COL_TILES; i++)
            all[i][0] = all[i][1] = all[i][2] = all[i][3] = 0;
        __syncthreads(); /* the tile before has been stored */
        if (threadIdx.x < 2 * BSMM_BF16_TILE) nonzero[threadIdx.x] = 0;
        __syncthreads();

        /* Two buffers take turns, so that some warps multiply while others decode. A barrier a step
         * suffices: a buffer is written again after the next one, which all warps pass behind its
         * use.
         */
        for (uint32_t k = 0, turn = 0; k < p->k; k += BSMM_BF16_K, turn ^= 1) {
            uint8_t *a = shared + turn * (a_parts + b_parts) * BF16_PLANE;
            uint8_t *b = a + a_parts * BF16_PLANE;
            if (a_parts + b_parts > 4) {
#pragma unroll 1 /* registers do not suffice for both at once */
                for (int i = 0; i < 2; i++)
                    bf16_stage(a_parts, &p->sides[i], i ? b_base : a_base, k, p->k, i ? b : a,
                               nonzero + i * BSMM_BF16_TILE);
            } else {
                bf16_stage(a_parts, &p->sides[0], a_base, k, p->k, a, nonzero);
                bf16_stage(b_parts, &p->sides[1], b_base, k, p->k, b, nonzero + BSMM_BF16_TILE);
            }
            if (scaled) {
                bf16_stage_factors(&p->sides[0], a_base, k, factors[turn]);
                bf16_stage_factors(&p->sides[1], b_base, k, factors[turn] + BSMM_BF16_TILE);
            }
            __syncthreads();
            if (scaled)
                bf16_step_scaled(a, b, row + g, col + g, factors[turn],
                                 factors[turn] + BSMM_BF16_TILE, sums);
            else
                bf16_step(a_parts, b_parts, a, b, row + g, col + g, sums, rest);
        }
        __syncthreads();

        /* All results are in shared memory before the call, which leaves few registers alone. */
        float *strip = (float *)shared + warp * (BF16_ROW_TILES * BF16_STRIP);
#pragma unroll
        for (int m = 0; m < BF16_ROW_TILES; m++)
#pragma unroll
            for (int n = 0; n < BF16_COL_TILES; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    strip[m * BF16_STRIP + (g + i / 2 * 8) * 32 + n * 8 + t * 2 + i % 2] =
                        sums[m * BF16_COL_TILES + n][i] +
                        (shares == 2 ? rest[m * BF16_COL_TILES + n][i] : 0);
        __syncwarp();
        bf16_finish(p, strip, nonzero, a_base, b_base, row, col);
    }
}

#endif
