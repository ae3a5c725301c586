/* This file does the promotion of the sm_90a GEMM. The tensor cores' accumulators hold the sums of
 * one k block. Promotion multiplies these sums by their scales and adds them to the totals in fp32
 * registers. gemm_body.h includes this file. */

/* The product of a scale of A and a scale of B is safe if it is at least LOWEST_SAFE, 2^-104, and
 * less than HIGHEST_SAFE, 2^64. Both constants are fp32 bits. The product of two e5m2 elements may
 * be as small as 2^-32. If the product of the scales is below 2^-104, a term may therefore be so
 * close to fp32's smallest number, 2^-149, that its rounding exceeds the error bound. If the
 * product of the scales is 2^64 or more, a sum of up to 2^31 products of up to 2^32 may overflow to
 * Inf. Results that an unsafe product affects are recomputed in double (store_again). Scales of 0
 * do no harm. */
static const uint32_t LOWEST_SAFE = (uint32_t)(127 - 104) << 23, HIGHEST_SAFE = (uint32_t)(127 + 64)
                                                                                << 23;

static __device__ __forceinline__ bool is_safe(float a, float b) {
    return (__float_as_uint(a * b) & 0x7fffffff) - LOWEST_SAFE < HIGHEST_SAFE - LOWEST_SAFE ||
           a == 0 || b == 0;
}

/* Returns true if all products of scales that watch_factors has recorded lie in the range
 * [LOWEST_SAFE, HIGHEST_SAFE), i.e. from 2^-104 to 2^64. `row` is the first of the warp's rows of
 * A. TMA fills the scales of rows past the end of A with 0, so the products for these rows do not
 * count. If they counted, (M, N, K) = (65, 7168, 2304) would take 14.4 instead of 11.1 us on an
 * H200, because the warp would test all scales one by one. */
static __device__ __forceinline__ bool are_factors_safe(const consumer *c, int32_t row) {
    const int32_t mine = row + c->lane / 4;
    return (c->least[0] >= LOWEST_SAFE || mine >= c->p->m) &&
           (c->least[1] >= LOWEST_SAFE || mine + 8 >= c->p->m) && c->most < HIGHEST_SAFE;
}

/* Records the smallest and the largest product of a scale of A and a scale of B, as fp32 bits.
 * Recording takes two instructions, whereas a test of each product (is_safe) would take a dozen. A
 * product is safe if it lies between 2^-104 and 2^64. A zero or negative product also makes the
 * recorded range look unsafe, although it may be harmless. If the range looks unsafe at the end of
 * a tile, the function unsafe_rows therefore tests all products one by one and finds the rows with
 * unsafe products. */
static __device__ __forceinline__ void watch_factors(consumer *c, const float *by) {
    const uint32_t up = __float_as_uint(by[0]), down = __float_as_uint(by[1]);
    c->least[0] = min(up, c->least[0]);
    c->least[1] = min(down, c->least[1]);
    c->most = max(max(up, down), c->most);
}

/* Multiplies the sums of one k block by the scales of A and B, and adds them to the totals of
 * columns [turn * SUM_COLS, (turn + 1) * SUM_COLS) of the tile. If TURNS is 2, each of the two
 * ranges of columns lies in one 128 x 128 block of B. */
static __device__ __forceinline__ void
promote_by_blocks(consumer *c, float *total, const float *sum, const factors *f, int turn) {
    float by[COL_BLOCKS][2];
#pragma unroll
    for (int i = 0; i < COL_BLOCKS; i++) {
        if (TURNS > 1 && i != turn) continue;
        by[i][0] = f->row[0] * f->col[i];
        by[i][1] = f->row[1] * f->col[i];
        watch_factors(c, by[i]);
    }
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        const int block = TURNS > 1 ? turn : block_of(c, i);
        const float factor = by[0][i % 4 / 2], other = by[COL_BLOCKS - 1][i % 4 / 2];
        total[turn * SUMS + i] = fmaf(block ? other : factor, sum[i], total[turn * SUMS + i]);
    }
}

/* The kernel multiplies sums by the product of a scale of A and a scale of B. Such a product is
 * unsafe if it lies outside 2^-104 to 2^64 (is_safe). Sets a bit of c->unsafe for each of the
 * thread's two rows of D in which one of the thread's results needs an unsafe product. */
static __device__ __forceinline__ void find_unsafe(consumer *c, const factors *f) {
#pragma unroll 1
    for (uint32_t i = 0; i < TILE_N / 8; i++) {
        float col[2];
        ptx_load_shared_f32x2(f->cols + 32 * i, col);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (!is_safe(f->row[j / 2], col[j % 2])) c->unsafe |= 1 << j / 2;
    }
}

/* Multiplies the sums of one k block by the scales of A and B, and adds them to the fp32 sums over
 * all of K. Each iteration does this for four sums, in two rows and two columns. */
static __device__ __forceinline__ void promote_by_rows(float *total, const float *sum,
                                                       const factors *f) {
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        float col[2];
        ptx_load_shared_f32x2(f->cols + 8 * i, col);
#pragma unroll
        for (int j = 0; j < 4; j++)
            total[i + j] = fmaf(f->row[j / 2] * col[j % 2], sum[i + j], total[i + j]);
    }
}

static __device__ __forceinline__ void promote(consumer *c, float *total, float *sum, factors f,
                                               int turn) {
    hold(sum);
    if (GEMM_SCALES == GEMM_ROW_BLOCK) {
        promote_by_blocks(c, total, sum, &f, turn);
        return;
    }
    if (CAREFUL && !f.moderate) find_unsafe(c, &f);
    promote_by_rows(total, sum, &f);
}

/* Adds the sums of one k block to the totals over K. If `even` is false, the sums are multiplied by
 * the scales of the k block first. `even` is true if each row of A and of B has one scale for all
 * of K. The sums are then added without scales, which takes half of the instructions, and
 * scale_even multiplies the totals by the scales at the end of the tile. If the scales are powers
 * of two, both ways give bitwise identical results. */
static __device__ __forceinline__ void add_sum(consumer *c, float *total, float *sum, factors f,
                                               int turn, bool even) {
    if (!even) {
        promote(c, total, sum, f, turn);
        return;
    }
    hold(sum);
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] += sum[i];
}

/* Multiplies the sums of a tile by the scales of A and B, which lie in stage number `stage` of the
 * ring. The function is called at the end of a tile whose rows of A and of B each have only one
 * scale for all of K. The sums of the k blocks of such a tile were added without scales. */
static __device__ __forceinline__ void scale_even(consumer *c, uint32_t stage, float *total) {
    const factors f = factors_of(c, stage);
    if (CAREFUL && !f.moderate) find_unsafe(c, &f);
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        float col[2];
        ptx_load_shared_f32x2(f.cols + 8 * i, col);
#pragma unroll
        for (int j = 0; j < 4; j++)
            /* Adding 0 turns a -0 of a negative scale into +0. */
            total[i + j] = fmaf(total[i + j], f.row[j / 2] * col[j % 2], 0.0f);
    }
}
