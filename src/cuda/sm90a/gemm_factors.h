/* Multiplies sums over all of K by one fp32 scale for each row of A and for each row of B, in the
 * sm_90a GEMM, and tests these scales. gemm_body.h includes this file. */

/* Loads the fp32 scales of two adjacent rows of B, which belong to columns `col` and `col` + 1 of
 * D. `col` is even, and the array of scales is padded to a multiple of 4, so one load of 8 bytes is
 * aligned and stays inside the array. */
static __device__ __forceinline__ float2 load_col_factors(const bsmm_wgmma_params *p, int32_t col) {
    return __ldg((const float2 *)(p->col_factors + min(col, (p->n - 1) & ~1)));
}

/* Returns true if all scales by which a thread multiplies its results are 0 or between 2^-52 and
 * 2^32 in magnitude (is_moderate). The products of two such scales are then normal fp32 numbers or
 * 0. */
static __device__ __forceinline__ bool are_factors_moderate(const bsmm_wgmma_params *p,
                                                            const float *rows, int32_t col) {
    bool moderate = is_moderate(rows[0]) && is_moderate(rows[1]);
#pragma unroll 4
    for (int32_t i = 0; i < TILE_N; i += 8) {
        const float2 cols = load_col_factors(p, col + i);
        moderate = moderate && is_moderate(cols.x) && is_moderate(cols.y);
    }
    return moderate;
}

/* Loads the fp32 scales of the thread's two rows of A, or 1 if A has no such scales. */
static __device__ __forceinline__ void load_row_factors(const bsmm_wgmma_params *p, int32_t row,
                                                        float rows[2]) {
#pragma unroll
    for (int i = 0; i < 2; i++)
        rows[i] = p->row_factors ? __ldg(p->row_factors + min(row + 8 * i, p->m - 1)) : 1;
}

/* Multiplies a thread's sums over all of K, `total`, by fp32 factors. A thread has results in two
 * rows of D. A result in the first of them is multiplied by rows[0], and one in the second by
 * rows[1]. Each result is also multiplied by the scale of its column of D, i.e. of a row of B.
 * `col` is the thread's first column. */
static __device__ __forceinline__ void
multiply_by_cols(const bsmm_wgmma_params *p, const float rows[2], float *total, int32_t col) {
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        const float2 cols = load_col_factors(p, col + 2 * i);
        /* A sum of +0 times a negative scale would be -0. The FMA adds +0, so the result is +0. */
        total[i] = fmaf(total[i], rows[0] * cols.x, 0.0f);
        total[i + 1] = fmaf(total[i + 1], rows[0] * cols.y, 0.0f);
        total[i + 2] = fmaf(total[i + 2], rows[1] * cols.x, 0.0f);
        total[i + 3] = fmaf(total[i + 3], rows[1] * cols.y, 0.0f);
        /* Without this barrier the compiler loads many scales in advance, which takes too many
         * registers. */
        if (i % 16 == 0) __syncwarp();
    }
}

/* Returns true if the warp's 16 rows of A, which begin with row `row`, and the tile's rows of B,
 * which begin with row `col`, have only scales that are 0 or between 2^-52 and 2^32 in magnitude
 * (is_moderate). Each lane tests one row and a few columns. */
static __device__ __forceinline__ bool are_all_moderate(const bsmm_wgmma_params *p, int32_t row,
                                                        int32_t col) {
    const int32_t lane = (int32_t)threadIdx.x % 32;
    bool moderate = is_moderate(__ldg(p->row_factors + min(row + lane % 16, p->m - 1)));
#pragma unroll
    for (int32_t i = 0; i < TILE_N; i += 32)
        moderate = moderate && is_moderate(__ldg(p->col_factors + min(col + i + lane, p->n - 1)));
    return __all_sync(0xffffffff, moderate);
}

/* This function is for products in which each row of A and of B has one scale. It returns a bit
 * mask of the warp's 16 rows of D, which begin at `row`: a bit is 1 if the row's fp32 sums may be
 * wrong. They may be wrong if the scale of A's row, or its product with the scale of a row of B, is
 * outside the range from 2^-104 to 2^64 (is_safe). The tile's rows of B, i.e. its columns of D,
 * begin at `col`. Each lane tests other columns, for all 16 rows. */
static __device__ __noinline__ uint32_t unsafe_by_cols(const bsmm_wgmma_params *p, int32_t row,
                                                       int32_t col) {
    if (are_all_moderate(p, row, col)) return 0;
    const int32_t rows = min(16, p->m - row), end = min(col + TILE_N, p->n);
    uint32_t unsafe = 0;
    for (int32_t i = col + (int32_t)threadIdx.x % 32; i < end; i += 32)
        for (int32_t j = 0; j < rows; j++) {
            const float of_a = __ldg(p->row_factors + row + j);
            if (!is_safe(of_a, 1) || !is_safe(of_a, __ldg(p->col_factors + i))) unsafe |= 1u << j;
        }
    return __reduce_or_sync(0xffffffff, unsafe);
}

/* Multiplies the totals of a work unit by the scales of B, if each row of B has one scale. The
 * totals have been multiplied by the scales of A already. If another cluster continues the sums of
 * this tile (split-K), the function does nothing, and the cluster that computes the last part of K
 * multiplies by the scales of B. */
static __device__ __forceinline__ void scale_by_cols(const consumer *c, float *total,
                                                     const work *unit) {
    const bsmm_wgmma_params *p = c->p;
    const float ones[2] = {1, 1};
    if (!BY_COLS || !p->col_factors || (unit->k_end < p->k_blocks && p->splits == 1)) return;
    multiply_by_cols(p, ones, total, unit->at.col + 2 * (c->lane % 4));
}
