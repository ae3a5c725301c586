/* This is the epilogue of the sm_120f kernels. A warp writes its 64 x 32 accumulators to its part
 * of shared memory (`strip`), so that it can store rows of 32 elements. scaled_body.h includes this
 * file.
 *
 * An fp32 accumulator may be wrong if it is not finite, or so small that products may have been
 * lost to underflow. Such results are recomputed in double. An accumulator of 0 is right if all
 * elements of its row of A or of its row of B are 0. Otherwise it is recomputed too. */

/* Returns true if an accumulator may be wrong, so that the result must be computed again in double.
 * Finite accumulators with a magnitude of at least 2^-118 are right. An accumulator of 0 is right
 * only if `zero` is true, i.e. if all elements of its row of A or of its row of B are 0. */
static __device__ __forceinline__ bool is_doubtful(float sum, bool zero) {
    const uint32_t magnitude = __float_as_uint(sum) & 0x7fffffffu;
    if (magnitude == 0) return !zero;
    return magnitude - 0x04800000u >= 0x7f800000u - 0x04800000u;
}

static __device__ __forceinline__ void keep_sums(float (*sums)[COL_TILES][4], float *strip) {
    const uint32_t lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (uint32_t m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (uint32_t n = 0; n < COL_TILES; n++)
#pragma unroll
            for (uint32_t i = 0; i < 2; i++)
                *(float2 *)(strip + (16 * m + 8 * i + g) * WARP_COLS + 8 * n + 2 * t) =
                    make_float2(sums[m][n][2 * i], sums[m][n][2 * i + 1]);
    __syncwarp();
}

/* Stores the results of a warp. The warp's first row and column, counted from the corner `at` of
 * the tile, are `row` and `col`. Each lane stores one column. */
static __device__ __noinline__ void finish(const bsmm_sm120_params *p, corner at, uint32_t row,
                                           uint32_t col, const float *strip,
                                           const findings *found) {
    const bsmm_sm120_side *const a = &p->sides[0], *const b = &p->sides[1];
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&p->epilogue);
    const uint32_t lane = threadIdx.x % 32, c = at.col + col + lane;
    const bool zero_column = !found->nonzero[TILE + col + lane], untrusted = found->negative;
    for (uint32_t i = 0; i < WARP_ROWS && at.row + row + i < a->rows; i++) {
        const uint32_t r = at.row + row + i;
        const bool wanted = c < b->rows, zero = zero_column || !found->nonzero[row + i];
        const float accumulator = strip[i * WARP_COLS + lane];
        double sum = (double)accumulator;
        uint32_t left =
            __ballot_sync(0xffffffffu, wanted && (untrusted || is_doubtful(accumulator, zero)));
        for (; left; left &= left - 1) {
            const uint32_t next = (uint32_t)__ffs((int)left) - 1;
            const double again =
                bsmm_gpu_epilogue_sum_again(&a->o, &b->o, r, c - lane + next, p->k);
            if (lane == next) sum = again;
        }
        if (wanted) bsmm_gpu_epilogue_store(&p->epilogue, &factors, r, c, sum);
    }
}
