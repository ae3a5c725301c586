/* Promote: the sum of a k block, times its scales, is added to the total in fp32. A part of
 * gemm_body.h. */

/* Two scales become one factor. Below 2^-104 fp32's last place, 2^-149, may be more of a term
 * (e5m2: down to 2^-32 of the factor) than the bound allows, from 2^64 on sums (of 2^31 products of
 * up to 2^32) may be Inf on their way: the row's results in these 128 columns are then made again
 * (store_again). Scales of 0 are harmless. */
static const uint32_t LOWEST_SAFE = (uint32_t)(127 - 104) << 23, HIGHEST_SAFE = (uint32_t)(127 + 64)
                                                                                << 23;

static __device__ __forceinline__ bool is_safe(float a, float b) {
    return (__float_as_uint(a * b) & 0x7fffffff) - LOWEST_SAFE < HIGHEST_SAFE - LOWEST_SAFE ||
           a == 0 || b == 0;
}

/* What watch_factors has seen. */
static __device__ __forceinline__ bool are_factors_safe(const consumer *c) {
    return c->least >= LOWEST_SAFE && c->most < HIGHEST_SAFE;
}

/* ---- B's scales by blocks ---- */

/* Two instructions, where asking is_safe takes a dozen: only tiles whose factors' bits leave the
 * range of safe ones, as 0 and negative ones do too, ask it afterwards, of each row. */
static __device__ __forceinline__ void watch_factors(consumer *c, const float *by) {
    const uint32_t up = __float_as_uint(by[0]), down = __float_as_uint(by[1]);
    c->least = min(min(up, down), c->least);
    c->most = max(max(up, down), c->most);
}

static __device__ __forceinline__ void promote_by_blocks(consumer *c, float *total,
                                                         const float *sum, const factors *f) {
    float by[COL_BLOCKS][2];
#pragma unroll
    for (int i = 0; i < COL_BLOCKS; i++) {
        by[i][0] = f->row[0] * f->col[i];
        by[i][1] = f->row[1] * f->col[i];
        watch_factors(c, by[i]);
    }
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++) {
        const float factor = by[0][i % 4 / 2], other = by[COL_BLOCKS - 1][i % 4 / 2];
        total[i] = fmaf(block_of(c, i) ? other : factor, sum[i], total[i]);
    }
}

/* ---- B's scales by rows ---- */

/* Four values (two rows, two columns) at a time. checked: a product of scales may leave is_safe. */
static __device__ __forceinline__ void promote_by_rows(consumer *c, uint32_t subtile, float *total,
                                                       const float *sum, const factors *f,
                                                       bool checked) {
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        float col[2];
        ptx_load_shared_f32x2(f->cols + 8 * i, col);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float row = f->row[j / 2];
            if (checked && !is_safe(row, col[j % 2])) c->unsafe |= 1 << (2 * subtile + j / 2);
            total[i + j] = fmaf(row * col[j % 2], sum[i + j], total[i + j]);
        }
    }
}

static __device__ __forceinline__ void promote(consumer *c, uint32_t subtile, float *total,
                                               float *sum, factors f) {
    hold(sum);
    if (GEMM_SCALES == GEMM_ROW_BLOCK)
        promote_by_blocks(c, total, sum, &f);
    else if (f.moderate)
        promote_by_rows(c, subtile, total, sum, &f, false);
    else
        promote_by_rows(c, subtile, total, sum, &f, true);
}

/* ---- rows with one scale for all of K ---- */

/* What a step does with the sum of a subtile and k block: scale and add, or, with `even`, add as it
 * is. Where a row's scale is the same everywhere that gives the same bits, and leaves the
 * multiprocessor half of the instructions; the scales of the last k block are those of all. */
static __device__ __forceinline__ void add_sum(consumer *c, uint32_t subtile, float *total,
                                               float *sum, factors f, bool even) {
    if (!even) {
        promote(c, subtile, total, sum, f);
        return;
    }
    hold(sum);
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] += sum[i];
}

/* The scales at last, where a tile ends. */
static __device__ __forceinline__ void scale_even(const consumer *c, uint32_t subtile,
                                                  uint32_t stage, float *total) {
    const factors f = factors_of(c, stage, subtile);
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        float col[2];
        ptx_load_shared_f32x2(f.cols + 8 * i, col);
#pragma unroll
        for (int j = 0; j < 4; j++)
            total[i + j] *= f.row[j / 2] * col[j % 2];
    }
}
