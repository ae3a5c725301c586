/* This part of the sm_100f kernels applies fp32 scales. Each scale covers a multiple of 128
 * elements of K, or a whole row (fp8_group128, fp8_block128, FP8 per channel). scaled_body.h
 * includes this file.
 *
 * tcgen05.mma cannot apply fp32 scales. The tensor cores therefore compute separate sums for each
 * 128 elements of K, which alternate between the two accumulators. Eight warps multiply these sums
 * by the scales and add them to totals (the sums over K) in registers. This step is called
 * promotion. Warp w has the rows of quarter w % 4 of the tile, and half w / 4 of its columns, so
 * that a thread has up to 128 totals of one row. After the last sum of a tile, the warps store D.
 * The tensor cores meanwhile compute the first two sums of the next tile.
 *
 *     time ------------------------------------------------------------>
 *     products  ~~~~ sum 0, D0 ~~~~ sum 1, D1 ~~~~ sum 2, D0 ~~~~~~~~~~~
 *     promote                  wait D0 | add 0, A0 | wait D1 | add 1, A1
 *
 * D and A are the "done" and "available" barriers of the accumulators. */
#include "cuda/sm100f/scaled_finish.h"

enum {
    MOST_TOTALS = TILE_N / 2, /* MOST_TOTALS is the largest number of columns per thread. */
    PROMOTE_BARRIER = 1, /* PROMOTE_BARRIER is the named barrier of the warps that scale sums. */
};

/* Provides the fp32 scales of one row of A or of B. Each scale is for one sum, i.e. for 128
 * elements of K, and the scales are provided in ascending order of K. To hide the latency of the
 * loads, a scale is loaded two sums before it is used. */
typedef struct factor_row {
    const bsmm_gpu_operand *operand;
    uint32_t sums; /* `sums` is the number of sums of a tile, or 0 if the operand has no scales. */
    float most;    /* `most` is the largest magnitude of a factor. */
    uint64_t row;  /* `row` is the offset of the row's scales. */
    uint64_t offset; /* `offset` is, in lane i, the offset inside the row of the scale for sum 32 n
                      * + i, where n is the same in all lanes. */
    float next[2];   /* `next` has the scales of the next two sums. */
} factor_row;

/* Each sum covers 128 elements of K. Returns the scale of the row for sum number `sum`, or 1 if
 * there is none. A call whose `sum` is a multiple of 32 also computes the offsets of the next 32
 * scales, one in each lane. The caller must therefore load the scales of all sums in ascending
 * order, and all lanes of a warp must call the function together. */
static __device__ __forceinline__ float load_factor(factor_row *f, uint32_t sum) {
    const uint32_t lane = threadIdx.x % 32;
    if (sum >= f->sums) return 1;
    if (sum % 32 == 0)
        f->offset = bsmm_axis_at(&f->operand->col_map, (sum + lane) * BSMM_SCALED_GROUP_K);
    const uint64_t offset = __shfl_sync(0xffffffffu, f->offset, (int)(sum % 32));
    return ((const float *)(const void *)f->operand->scales)[f->row + offset];
}

static __device__ __forceinline__ factor_row factor_row_of(const bsmm_scaled_params *p,
                                                           uint32_t side, uint32_t row) {
    factor_row f = {&p->sides[side]};
    f.most = WIDE && p->has_factors[1 - side] ? 0x1p23f : 0x1p46f;
    if (p->has_factors[side]) {
        f.sums = (p->k - 1) / BSMM_SCALED_GROUP_K + 1;
        f.row = bsmm_axis_at(&f.operand->row_map, row);
    }
    f.next[0] = load_factor(&f, 0), f.next[1] = load_factor(&f, 1);
    return f;
}

/* Returns the scale for sum number `sum`, and starts to load the scale for sum number `sum` + 2. A
 * sum covers 128 elements of K. If the magnitude of the scale is not 0 and lies outside the range
 * from 2^-46 to 2^46, the function returns NaN instead. The results then become NaN, too, and are
 * recomputed in double. With this range, no term is lost: with FP8 elements, the product of a
 * nonzero sum and two scales in the range is a normal fp32 number. With bf16 elements, sums may be
 * smaller, so small results are also recomputed (is_doubtful). If a kernel for bf16 has scales of
 * both A and B, the range is only 2^-23 to 2^23, so that the product of two scales is at most
 * 2^46. */
static __device__ __forceinline__ float next_factor(factor_row *f, uint32_t sum) {
    const float scale = f->next[0], magnitude = fabsf(scale);
    const bool tame = scale == 0 || (magnitude >= 1 / f->most && magnitude <= f->most);
    f->next[0] = f->next[1];
    f->next[1] = load_factor(f, sum + 2);
    return tame ? scale : __uint_as_float(0x7fc00000u);
}

/* Multiplies CHUNK sums, each over 128 elements of K, by scales of A and B, and adds them to
 * `totals`, the sums over all of K. `factor` is the scale of A's row, and `factors` holds the
 * scales of B's rows. If all of B's rows have the same scale, `factors` is NULL, and `factor` is
 * the product of both scales. All scales are loaded before the first multiplication, so that the
 * latencies of the loads overlap. */
static __device__ __forceinline__ void add_sums(const uint32_t *bits, float factor,
                                                const float *factors, float *totals) {
    if (!factors) {
#pragma unroll
        for (uint32_t i = 0; i < CHUNK; i++)
            totals[i] = fmaf(__uint_as_float(bits[i]), factor, totals[i]);
        return;
    }
    float4 fours[CHUNK / 4];
    float products[CHUNK];
#pragma unroll
    for (uint32_t i = 0; i < CHUNK / 4; i++)
        fours[i] = ((const float4 *)factors)[i];
#pragma unroll
    for (uint32_t i = 0; i < CHUNK / 4; i++) {
        products[4 * i] = factor * fours[i].x, products[4 * i + 1] = factor * fours[i].y;
        products[4 * i + 2] = factor * fours[i].z, products[4 * i + 3] = factor * fours[i].w;
    }
#pragma unroll
    for (uint32_t i = 0; i < CHUNK; i++)
        totals[i] = fmaf(__uint_as_float(bits[i]), products[i], totals[i]);
}

/* Says for which part of a tile of D a thread multiplies sums by scales: columns `col` to `col` +
 * `width` - 1 of the tile. */
typedef struct strip {
    uint32_t col, width;
} strip;

/* Promotes the sums in tensor memory at address `from`, i.e. multiplies them by scales and adds
 * them to `totals`. As soon as all sums are in registers, the function lets the thread that issues
 * tcgen05.mma overwrite the accumulator. */
static __device__ __forceinline__ void promote_sum(uint32_t from, const uint64_t *available,
                                                   uint32_t width, float factor,
                                                   const float *factors, float *totals) {
#pragma unroll
    for (uint32_t col = 0; col < MOST_TOTALS; col += CHUNK) {
        uint32_t bits[CHUNK];
        if (col >= width) break;
        ptx_tcgen05_load_x32(from + col, bits);
        ptx_tcgen05_wait_loads();
        if (col + CHUNK == width) {
            ptx_tcgen05_fence_before();
            __syncwarp();
            if (threadIdx.x % 32 == 0) group_arrive(available);
        }
        add_sums(bits, factor, factors ? factors + col : NULL, totals + col);
    }
}

/* Computes a thread's results of a tile. The tensor cores make a separate sum for each 128 elements
 * of K, alternately in two accumulators. This function waits for each sum, multiplies it by its
 * scales of A and B, and adds it to the result's element of `totals`. *count is the number of sums
 * of earlier tiles and of this one so far, and tells which accumulator is next. */
static __device__ __forceinline__ void promote_tile(const bsmm_scaled_params *p, corner at,
                                                    strip part, shared *told, uint32_t *count,
                                                    float *totals) {
    const uint32_t sums = (p->k_blocks - 1) / p->sum_blocks + 1, lane = threadIdx.x % 32,
                   quarter = threadIdx.x / 32 % 4, col = p->shares_factors ? part.col : threadIdx.x;
    factor_row a = factor_row_of(p, 0, min(at.row + quarter * 32 + lane, p->m - 1)),
               b = factor_row_of(p, 1, min(at.col + col, p->n - 1));
#pragma unroll
    for (uint32_t i = 0; i < MOST_TOTALS; i++)
        totals[i] = 0;
    for (uint32_t sum = 0; sum < sums; sum++, ++*count) {
        const uint32_t which = *count & 1,
                       from = told->columns + which * TILE_N + part.col + (quarter * 32 << 16);
        const float a_factor = next_factor(&a, sum), b_factor = next_factor(&b, sum);
        float *const factors = told->column_factors[which];
        if (!p->shares_factors) {
            if (threadIdx.x < p->tile_n) factors[threadIdx.x] = b_factor;
            ptx_barrier_sync(PROMOTE_BARRIER, EPILOGUE_WARPS * 32);
        }
        wait_for(&told->done[which], *count / 2 & 1);
        ptx_tcgen05_fence_after();
        __syncwarp();
        if (p->shares_factors)
            promote_sum(from, &told->available[which], part.width, a_factor * b_factor, NULL,
                        totals);
        else
            promote_sum(from, &told->available[which], part.width, a_factor, factors + part.col,
                        totals);
    }
}

static __device__ __forceinline__ void epilogue_store_tiles(const bsmm_scaled_params *p,
                                                            uint8_t *memory, shared *told) {
    const uint32_t width = p->tile_n / 2;
    const strip part = {threadIdx.x / TILE_M * width, width};
    PTX_REGISTERS_MORE(EPILOGUE_REGISTERS);
    begin_factors(p, told);
    epilogue f = epilogue_make(p, memory, told);
    uint32_t count = 0;
    FOR_TILES(p, tile) {
        const corner at = tile_at(p, tile);
        float totals[MOST_TOTALS];
        promote_tile(p, at, part, told, &count, totals);
        epilogue_begin(&f, at, false);
        /* Registers cannot be indexed by a variable. Each iteration therefore stores the first
         * CHUNK totals (sums over K) and then moves the rest of the array to its front. */
#pragma unroll 1
        for (uint32_t col = at.col + part.col; col < at.col + part.col + width; col += CHUNK) {
            uint32_t bits[CHUNK];
#pragma unroll
            for (uint32_t i = 0; i < CHUNK; i++)
                bits[i] = __float_as_uint(totals[i]);
#pragma unroll
            for (uint32_t i = CHUNK; i < MOST_TOTALS; i++)
                totals[i - CHUNK] = totals[i];
            if (col < p->n) epilogue_store_chunk(&f, bits, col);
        }
    }
    if (f.lane == 0) PTX_TMA_WAIT(0);
}
