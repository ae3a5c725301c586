/* Promotion in the sm_90a GEMM: the accumulators of one k block are multiplied by their scales and
 * added to the total in fp32. gemm_body.h includes this file. */

/* The safe range of the product of two scales, as fp32 bits. Below 2^-104 a term (for e5m2 as small
 * as 2^-32 times the product of scales) may be so near fp32's smallest number, 2^-149, that
 * rounding exceeds the error bound. From 2^64 on, a sum of up to 2^31 products of up to 2^32 may
 * overflow to Inf on the way. If a product of scales is unsafe, the row's results in these 128
 * columns are recomputed (store_again). Scales of 0 do no harm. */
static const uint32_t LOWEST_SAFE = (uint32_t)(127 - 104) << 23, HIGHEST_SAFE = (uint32_t)(127 + 64)
                                                                                << 23;

static __device__ __forceinline__ bool is_safe(float a, float b) {
    return (__float_as_uint(a * b) & 0x7fffffff) - LOWEST_SAFE < HIGHEST_SAFE - LOWEST_SAFE ||
           a == 0 || b == 0;
}

/* Returns true if all products of scales that watch_factors has recorded were safe. */
static __device__ __forceinline__ bool are_factors_safe(const consumer *c) {
    return c->least >= LOWEST_SAFE && c->most < HIGHEST_SAFE;
}

/* ---- B has 128 x 128 blocks of scales ---- */

/* Records the range of the products of scales, as bits. This takes two instructions, where is_safe
 * takes a dozen. Only if the recorded range of a tile is unsafe, which zero and negative products
 * also cause, is each row tested with is_safe afterwards. */
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

/* ---- B has one scale per row and k block ---- */

/* Promotes four values (two rows, two columns) at a time. `checked` is set if a product of scales
 * may fail is_safe. */
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

/* Adds the accumulators of a subtile and k block to the total, scaled, or unscaled if `even` is
 * set. `even` means that each row has one scale for all of K: the total is then scaled once at the
 * end, by the scales of the last k block. The result is bitwise identical and takes half of the
 * instructions. */
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

/* Multiplies the total by the scales at the end of a tile, for rows that have one scale for all of
 * K. */
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
