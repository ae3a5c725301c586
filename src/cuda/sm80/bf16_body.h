/* A bf16 kernel: BF16_NAME, with so many parts of A's and B's values, and BF16_SCALED: fp32 scales
 * are applied to the sums of each step. */
extern "C" __global__ void __launch_bounds__(BSMM_BF16_THREADS, 1)
    BF16_NAME(const __grid_constant__ bsmm_bf16_params p) {
    if (!bsmm_cuda_gate_is_open(&p.gate)) return;
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ uint32_t nonzero[2 * BSMM_BF16_TILE];
    __shared__ __align__(16) float factors[2][2 * BSMM_BF16_TILE];
    const uint32_t warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint32_t row = warp / 4 * 32, col = warp % 4 * 32;
    for (uint32_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
        const uint32_t a_base = tile / p.b_tiles * BSMM_BF16_TILE;
        const uint32_t b_base = tile % p.b_tiles * BSMM_BF16_TILE;
        /* Registers do not suffice for both with three parts on both sides. */
        const int shares = BF16_A_PARTS + BF16_B_PARTS > 4 ? 1 : 2;
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
        for (uint32_t k = 0, turn = 0; k < p.k; k += BSMM_BF16_K, turn ^= 1) {
            uint8_t *a = shared + turn * (BF16_A_PARTS + BF16_B_PARTS) * BF16_PLANE;
            uint8_t *b = a + BF16_A_PARTS * BF16_PLANE;
#if BF16_A_PARTS + BF16_B_PARTS > 4
#    pragma unroll 1 /* registers do not suffice for both at once */
            for (int i = 0; i < 2; i++)
                bf16_stage(BF16_A_PARTS, &p.sides[i], i ? b_base : a_base, k, p.k, i ? b : a,
                           nonzero + i * BSMM_BF16_TILE);
#else
            bf16_stage(BF16_A_PARTS, &p.sides[0], a_base, k, p.k, a, nonzero);
            bf16_stage(BF16_B_PARTS, &p.sides[1], b_base, k, p.k, b, nonzero + BSMM_BF16_TILE);
#endif
            if (BF16_SCALED) {
                bf16_stage_factors(&p.sides[0], a_base, k, factors[turn]);
                bf16_stage_factors(&p.sides[1], b_base, k, factors[turn] + BSMM_BF16_TILE);
            }
            __syncthreads();
            if (BF16_SCALED)
                bf16_step_scaled(a, b, row + g, col + g, factors[turn],
                                 factors[turn] + BSMM_BF16_TILE, sums);
            else
                bf16_step(BF16_A_PARTS, BF16_B_PARTS, a, b, row + g, col + g, sums, rest);
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
        bf16_finish(&p, strip, nonzero, a_base, b_base, row, col);
    }
}

#undef BF16_NAME
#undef BF16_A_PARTS
#undef BF16_B_PARTS
#undef BF16_SCALED
