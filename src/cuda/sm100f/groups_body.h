/* This is the kernel for products with fp32 scales on Blackwell (sm_100f). It computes
 * D = alpha * (A . scales) (B . scales)^T + beta * C + bias. Each scale covers a multiple of 128
 * columns, or a whole row (fp8_group128, fp8_block128, FP8 per channel). A file that includes this
 * body defines these macros:
 *
 *     GROUPS_NAME  the kernel's name
 *     GROUPS_KIND  the kind of tcgen05.mma, as a string
 *     GROUPS_WIDE  0: Elements are e4m3 or e5m2.
 *                  1: Elements are bf16 or f16. An operand without fp32 scales may have been packed
 *                     to them. An element may be the sum of several bf16 parts (gpu/pack.h).
 *
 * tcgen05.mma cannot apply fp32 scales. The tensor cores therefore compute separate sums for each k
 * block, i.e. for 128 elements of K. Eight warps multiply these sums by the scales and add them to
 * totals in registers. This step is called promotion.
 *
 * Thread blocks are persistent: each computes the tiles blockIdx.x, blockIdx.x + gridDim.x, and so
 * on. A tile of D has 128 x 128 results. Roles of a thread block's warps:
 *
 *     warps 0 to 7   promote: warp w has the rows of quarter w % 4 of the tile, and half w / 4 of
 *                    its columns. A thread has 64 totals of one row. At the end of a tile they
 *                    store D.
 *     warp 8         load: one thread issues TMA copies of elements
 *     warp 9         multiply: one thread issues the products
 *
 * The products alternate between two accumulators in tensor memory, D0 and D1. Barriers:
 *
 *     time ------------------------------------------------------------------>
 *     load      load 0, 1, 2, ... to a ring of stages
 *     multiply  wait F0 | mul 0 | wait F1 | mul 1 | wait F2, A0 | mul 2 | ...
 *     products          ~~~~~~~~ E0, D0 ~~~~~~~ E1, D1 ~~~~~~~~~~~~~~~~~~
 *     promote                    wait D0 | add 0, A0 | wait D1 | add 1, A1
 *
 *     F  "full" barrier of a stage: its elements have arrived
 *     E  "empty" barrier of a stage: the products have read it
 *     D  "done" barrier of an accumulator: the products of its k block have completed
 *     A  "available" barrier of an accumulator: the warps have read it */
#include "cuda/ptx/address.h"
#include "cuda/ptx/grid.h"
#include "cuda/ptx/mbarrier.h"
#include "cuda/ptx/tcgen05.h"
#include "cuda/ptx/tma.h"
#include "cuda/sm100f/groups_params.h"
#include "cuda/sm100f/zero_row.h"
#include "gpu/bands.h"

/* ---- constants ---- */

enum {
    TILE = BSMM_GROUP_SUMS_TILE,
    BLOCK_K = BSMM_GROUP_SUMS_K,
    STAGES = BSMM_GROUP_SUMS_STAGES,
    STAGE_BYTES = BSMM_GROUP_SUMS_STAGE_BYTES,
    /* A stage has STAGE_K elements of each row, which are BSMM_GROUP_SUMS_ROW_BYTES bytes. */
    STAGE_K = GROUPS_WIDE ? 64 : 128,
    /* STEPS is the number of tcgen05.mma instructions per stage. Each multiplies 32 bytes of each
     * row. */
    STEPS = 4,
    /* COLUMNS is the number of columns of tensor memory, for two accumulators. */
    COLUMNS = 2 * TILE,
    PROMOTE_WARPS = 8,
    LOAD_WARP = PROMOTE_WARPS,
    MULTIPLY_WARP,
    THREADS = BSMM_GROUP_SUMS_THREADS,
    PROMOTE_BARRIER = 1, /* PROMOTE_BARRIER is the named barrier that the promoting warps share. */
    WIDTH = TILE / 2,    /* WIDTH is the number of columns of D per promoting thread. */
    CHUNK = 32
};
static_assert(THREADS == 32 * (MULTIPLY_WARP + 1), "roles");
static_assert(BSMM_GROUP_SUMS_SHARED + 4096 <= 227 * 1024, "shared memory");

/* ---- shared memory and barriers ---- */

typedef struct shared {
    uint64_t full[STAGES], empty[STAGES], done[2], available[2];
    uint32_t columns; /* `columns` is the address of the allocated tensor memory. */
    /* These are the scales of D's columns, for the k block in each of the two accumulators. Four of
     * them are loaded at once. */
    alignas(16) float b_factors[2][TILE];
} shared;

static __device__ __forceinline__ void wait_for(const uint64_t *barrier, uint32_t parity) {
    while (!ptx_mbarrier_try_wait(ptx_shared_address(barrier), parity)) {
    }
}

static __device__ __forceinline__ void set_up(shared *s) {
    for (int i = 0; i < STAGES; i++) {
        ptx_mbarrier_init(ptx_shared_address(&s->full[i]), 1);
        ptx_mbarrier_init(ptx_shared_address(&s->empty[i]), 1);
    }
    for (int i = 0; i < 2; i++) {
        ptx_mbarrier_init(ptx_shared_address(&s->done[i]), 1);
        ptx_mbarrier_init(ptx_shared_address(&s->available[i]), PROMOTE_WARPS);
    }
    ptx_fence_mbarrier_init();
}

/* Holds the first row and the first column of a tile of D. */
typedef struct corner {
    uint32_t row, col;
} corner;

static __device__ __forceinline__ corner tile_at(const bsmm_group_sums_params *p, uint32_t tile) {
    const bsmm_gpu_tile at = bsmm_gpu_tile_at(tile, p->group_m, p->tiles_m, p->tiles_n);
    return (corner){at.m * TILE, at.n * TILE};
}

/* Returns the number of stages of a k block. Each part of A is multiplied by each part of B. */
static __device__ __forceinline__ uint32_t stages_of(const bsmm_group_sums_params *p) {
    return GROUPS_WIDE ? BLOCK_K / STAGE_K * p->a_parts * p->b_parts : 1;
}

/* ---- load: one thread of warp 8 ---- */

/* Loads stage number `piece` of a tile. The rows hold for each STAGE_K elements of K first their
 * first parts, then their second parts, and so on. */
static __device__ __forceinline__ void load_piece(const bsmm_group_sums_params *p, corner at,
                                                  uint32_t piece, uint32_t to, uint32_t full) {
    uint32_t a = piece, b = piece;
    if (GROUPS_WIDE && p->a_parts * p->b_parts > 1) {
        const uint32_t pairs = p->a_parts * p->b_parts, unit = piece / pairs, pair = piece % pairs;
        a = unit * p->a_parts + pair / p->b_parts, b = unit * p->b_parts + pair % p->b_parts;
    }
    ptx_tma_load(to, &p->elements[0], (int32_t)(a * STAGE_K), (int32_t)at.row, full);
    ptx_tma_load(to + STAGE_BYTES / 2, &p->elements[1], (int32_t)(b * STAGE_K), (int32_t)at.col,
                 full);
}

static __device__ __forceinline__ void load_tiles(const bsmm_group_sums_params *p, uint32_t base,
                                                  shared *s) {
    const uint32_t pieces = p->k_blocks * stages_of(p);
    uint32_t count = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x) {
        const corner at = tile_at(p, tile);
        for (uint32_t piece = 0; piece < pieces; piece++, count++) {
            const uint32_t stage = count % STAGES, full = ptx_shared_address(&s->full[stage]);
            wait_for(&s->empty[stage], ~(count / STAGES) & 1);
            ptx_mbarrier_arrive_expect(full, STAGE_BYTES);
            load_piece(p, at, piece, base + stage * STAGE_BYTES, full);
        }
    }
}

/* ---- multiply: one thread of warp 9 ---- */

/* Multiplies the stages of a k block. `count` is the number of stages before. */
static __device__ __forceinline__ void multiply_block(const bsmm_group_sums_params *p,
                                                      uint32_t base, shared *s, uint32_t to,
                                                      uint32_t *count) {
    const uint32_t pieces = stages_of(p);
    for (uint32_t piece = 0; piece < pieces; piece++, ++*count) {
        const uint32_t stage = *count % STAGES, from = base + stage * STAGE_BYTES;
        const uint64_t a = ptx_tcgen05_rows_128(from),
                       b = ptx_tcgen05_rows_128(from + STAGE_BYTES / 2);
        wait_for(&s->full[stage], *count / STAGES & 1);
        ptx_tcgen05_fence_after();
#pragma unroll
        for (uint32_t step = 0; step < STEPS; step++)
            PTX_TCGEN05_MMA(GROUPS_KIND, to, a + 2 * step, b + 2 * step, p->form, piece | step);
        ptx_tcgen05_commit(ptx_shared_address(&s->empty[stage]));
    }
}

static __device__ __forceinline__ void multiply_tiles(const bsmm_group_sums_params *p,
                                                      uint32_t base, shared *s) {
    uint32_t count = 0, blocks = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x)
        for (uint32_t block = 0; block < p->k_blocks; block++, blocks++) {
            const uint32_t which = blocks & 1;
            wait_for(&s->available[which], ~(blocks / 2) & 1);
            ptx_tcgen05_fence_after();
            multiply_block(p, base, s, s->columns + which * TILE, &count);
            ptx_tcgen05_commit(ptx_shared_address(&s->done[which]));
        }
}

/* ---- promote: warps 0 to 7 ---- */

/* Returns the offset of the scales of a row of A (side 0) or B (side 1). */
static __device__ __forceinline__ uint64_t row_scales_at(const bsmm_group_sums_params *p,
                                                         uint32_t side, uint32_t row) {
    return p->scaled[side] ? bsmm_axis_at(&p->sides[side].row_map, row) : 0;
}

/* Loads the scale of a k block. `row_scales` is the result of row_scales_at. */
static __device__ __forceinline__ float scale_of(const bsmm_group_sums_params *p, uint32_t side,
                                                 uint64_t row_scales, uint32_t block) {
    const bsmm_gpu_operand *o = &p->sides[side];
    if (!p->scaled[side] || block >= p->k_blocks) return 1;
    return ((const float *)(const void *)
                o->scales)[row_scales + bsmm_axis_at(&o->col_map, block * BLOCK_K)];
}

/* Returns a scale of A (side 0) or B (side 1) as a factor for sums. Returns NaN if the scale's
 * magnitude is not 0 and lies outside 2^-46 to 2^46, and results with a factor of NaN are
 * recomputed in double. Inside this range, the product of two scales and a nonzero sum of FP8
 * products is a normal fp32 number, so that no term is lost. Sums of bf16 products have a wider
 * range, so that small totals are recomputed too (is_doubtful). If A and B both have scales and are
 * bf16, the range is 2^-23 to 2^23, so that a product of two scales is at most 2^46. */
static __device__ __forceinline__ float factor_of(const bsmm_group_sums_params *p, uint32_t side,
                                                  float scale) {
    const float most = GROUPS_WIDE && p->scaled[1 - side] ? 0x1p23f : 0x1p46f,
                magnitude = fabsf(scale);
    const bool tame = scale == 0 || (magnitude >= 1 / most && magnitude <= most);
    return tame ? scale : __uint_as_float(0x7fc00000u);
}

/* Multiplies the sums of a k block by the scales of A and B, and adds them to the totals of one row
 * of D. */
static __device__ __forceinline__ void add_block(uint32_t from, float a_factor,
                                                 const float *b_factors, float totals[WIDTH]) {
#pragma unroll
    for (uint32_t col = 0; col < WIDTH; col += CHUNK) {
        uint32_t bits[CHUNK];
        ptx_tcgen05_load_x32(from + col, bits);
        ptx_tcgen05_wait_loads();
#pragma unroll
        for (uint32_t i = 0; i < CHUNK; i += 4) {
            const float4 b = *(const float4 *)(b_factors + col + i);
            const float four[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (uint32_t n = 0; n < 4; n++)
                totals[col + i + n] =
                    fmaf(__uint_as_float(bits[i + n]), a_factor * four[n], totals[col + i + n]);
        }
    }
}

static __device__ __forceinline__ void promote_tile(const bsmm_group_sums_params *p, corner at,
                                                    shared *s, uint32_t *count,
                                                    float totals[WIDTH]) {
    const uint32_t warp = threadIdx.x / 32, half = warp / 4, lane = threadIdx.x % 32,
                   row = min(at.row + warp % 4 * 32 + lane, p->m - 1),
                   col = min(at.col + threadIdx.x % TILE, p->n - 1);
#pragma unroll
    for (uint32_t i = 0; i < WIDTH; i++)
        totals[i] = 0;
    const uint64_t row_scales = row_scales_at(p, 0, row), col_scales = row_scales_at(p, 1, col);
    /* The scales of a k block are loaded one k block ahead, so that their latency is hidden. */
    float a_scale = scale_of(p, 0, row_scales, 0), b_scale = scale_of(p, 1, col_scales, 0);
    for (uint32_t block = 0; block < p->k_blocks; block++, ++*count) {
        const uint32_t which = *count & 1;
        const float a_factor = factor_of(p, 0, a_scale);
        if (threadIdx.x < TILE) s->b_factors[which][threadIdx.x] = factor_of(p, 1, b_scale);
        ptx_barrier_sync(PROMOTE_BARRIER, PROMOTE_WARPS * 32);
        a_scale = scale_of(p, 0, row_scales, block + 1);
        b_scale = scale_of(p, 1, col_scales, block + 1);
        wait_for(&s->done[which], *count / 2 & 1);
        ptx_tcgen05_fence_after();
        __syncwarp();
        add_block(s->columns + which * TILE + half * WIDTH + (warp % 4 * 32 << 16), a_factor,
                  s->b_factors[which] + half * WIDTH, totals);
        ptx_tcgen05_fence_before();
        __syncwarp();
        if (lane == 0) ptx_mbarrier_arrive(ptx_shared_address(&s->available[which]));
    }
}

/* ---- store ---- */

/* An fp32 sum of bf16 products may have lost terms of up to 2^-149, and factors are at most 2^46.
 * Such a loss does not matter in a total of 2^-72 and more. */
static __device__ __forceinline__ bool is_doubtful(float total) {
    return !isfinite(total) || (GROUPS_WIDE && fabsf(total) < 0x1p-72f);
}

/* Returns the mask of the lanes whose total of row `row` of D may be wrong. A total of 0 is right
 * if the row of A has only zeros. */
static __device__ __forceinline__ uint32_t doubts_of(const bsmm_group_sums_params *p, uint32_t row,
                                                     bool inside, float total) {
    const uint32_t doubts = __ballot_sync(0xffffffffu, inside && is_doubtful(total));
    if (!GROUPS_WIDE || !__any_sync(0xffffffffu, inside && total == 0)) return doubts;
    if (!is_zero_row(&p->sides[0], row, p->k)) return doubts;
    return doubts & ~__ballot_sync(0xffffffffu, total == 0);
}

/* Returns true if results are totals rounded to D's format of 16 or 32 bits. */
static __device__ __forceinline__ bool is_plain(const bsmm_gpu_epilogue *e,
                                                const bsmm_gpu_epilogue_factors *factors) {
    return !e->c && !e->bias && factors->factor == 1 && factors->global == 1 &&
           (e->d_elem == BSMM_ELEM_F32 || e->d_elem == BSMM_ELEM_F16 ||
            e->d_elem == BSMM_ELEM_BF16);
}

/* Returns the code of a finite total if is_plain returns true. */
static __device__ __forceinline__ uint32_t plain_code(const bsmm_gpu_epilogue *e, float total) {
    if (e->d_elem == BSMM_ELEM_F32) return __float_as_uint(total);
    return e->d_elem == BSMM_ELEM_BF16 ? bsmm_gpu_epilogue_bf16(total)
                                       : bsmm_gpu_epilogue_f16(total);
}

/* Stores 32 x 32 results of a warp from its staging buffer `strip`, one row at a time. Results
 * whose total may be wrong are first recomputed in double. */
static __device__ __noinline__ void store_strip(const bsmm_group_sums_params *p, uint32_t row,
                                                uint32_t col, const float *strip) {
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&p->epilogue);
    const bool plain = is_plain(&p->epilogue, &factors);
    const uint32_t lane = threadIdx.x % 32, c = col + lane;
    for (uint32_t i = 0; i < CHUNK && row + i < p->m; i++) {
        const float total = strip[i * (CHUNK + 1) + lane];
        uint32_t left = doubts_of(p, row + i, c < p->n, total);
        if (plain && !left) {
            if (c < p->n)
                bsmm_gpu_epilogue_put(&p->epilogue, row + i, c, plain_code(&p->epilogue, total));
            continue;
        }
        double sum = (double)total;
        for (; left; left &= left - 1) {
            const uint32_t next = (uint32_t)__ffs((int)left) - 1;
            const double again =
                bsmm_gpu_epilogue_sum_again(&p->sides[0], &p->sides[1], row + i, col + next, p->k);
            if (lane == next) sum = again;
        }
        if (c < p->n) bsmm_gpu_epilogue_store(&p->epilogue, &factors, row + i, c, sum);
    }
}

static __device__ __forceinline__ void promote_tiles(const bsmm_group_sums_params *p, float *strips,
                                                     shared *s) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *const strip = strips + warp * (BSMM_GROUP_SUMS_STRIP_BYTES / 4);
    uint32_t count = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x) {
        const corner at = tile_at(p, tile);
        float totals[WIDTH];
        promote_tile(p, at, s, &count, totals);
#pragma unroll
        for (uint32_t col = 0; col < WIDTH; col += CHUNK) {
#pragma unroll
            for (uint32_t i = 0; i < CHUNK; i++)
                strip[lane * (CHUNK + 1) + i] = totals[col + i];
            __syncwarp();
            store_strip(p, at.row + warp % 4 * 32, at.col + warp / 4 * WIDTH + col, strip);
            __syncwarp();
        }
    }
}

/* ---- the kernel ---- */

/* Returns true if packing has kept the values of A and of B exactly. A header is NULL if its
 * operand is not packed, or if packing it is always exact. */
static __device__ __forceinline__ bool is_exact(const bsmm_group_sums_params *p) {
    bool exact = true;
    for (int i = 0; i < 2; i++) {
        /* fp32 scales multiply the sums, so packing has left them out of the elements. */
        const uint32_t bad = BSMM_PACK_WIDE | (p->scaled[i] ? 0 : BSMM_PACK_SCALED);
        if (p->headers[i]) exact = exact && !(p->headers[i]->flags & bad);
    }
    return exact;
}

/* Tells the next kernel in the stream that this kernel computes nothing. */
static __device__ __forceinline__ void refuse(const bsmm_group_sums_params *p) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *p->refused = 1;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    GROUPS_NAME(const __grid_constant__ bsmm_group_sums_params params) {
    extern __shared__ uint8_t memory[];
    __shared__ shared s;
    const bsmm_group_sums_params *p = &params;
    const uint32_t warp = threadIdx.x / 32, base = (ptx_shared_address(memory) + 1023) & ~1023u;
    if (threadIdx.x == 0) set_up(&s);
    if (warp == MULTIPLY_WARP) {
        ptx_tcgen05_alloc(ptx_shared_address(&s.columns), COLUMNS);
        ptx_tcgen05_relinquish();
    }
    ptx_tcgen05_fence_before();
    __syncthreads();
    ptx_tcgen05_fence_after();
    ptx_grid_wait();
    ptx_grid_release_next();
    if (GROUPS_WIDE && !is_exact(p))
        refuse(p);
    else if (warp < PROMOTE_WARPS)
        promote_tiles(
            p, (float *)(memory + (base - ptx_shared_address(memory)) + STAGES * STAGE_BYTES), &s);
    else if (warp == LOAD_WARP && ptx_elect())
        load_tiles(p, base, &s);
    else if (warp == MULTIPLY_WARP && ptx_elect())
        multiply_tiles(p, base, &s);
    __syncwarp();
    ptx_tcgen05_fence_before();
    __syncthreads();
    ptx_tcgen05_fence_after();
    if (warp == MULTIPLY_WARP) ptx_tcgen05_dealloc(s.columns, COLUMNS);
}
