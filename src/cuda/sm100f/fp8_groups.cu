/* This is the kernel for FP8 products with fp32 scales on Blackwell (sm_100f). It computes
 * D = alpha * (A . scales) (B . scales)^T + beta * C + bias. Elements are e4m3 or e5m2. Each scale
 * covers a multiple of 128 columns, or a whole row (fp8_group128, fp8_block128, FP8 per channel).
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
#include "cuda/sm100f/fp8_params.h"
#include "gpu/bands.h"

/* ---- constants ---- */

enum {
    TILE = BSMM_FP8_GROUPS_TILE,
    BLOCK_K = BSMM_FP8_GROUPS_K,
    STAGES = BSMM_FP8_GROUPS_STAGES,
    STAGE_BYTES = BSMM_FP8_GROUPS_STAGE_BYTES,
    STEPS = BLOCK_K / 32, /* tcgen05.mma instructions per k block */
    COLUMNS = 2 * TILE,   /* columns of tensor memory, for two accumulators */
    PROMOTE_WARPS = 8,
    LOAD_WARP = PROMOTE_WARPS,
    MULTIPLY_WARP,
    THREADS = BSMM_FP8_GROUPS_THREADS,
    PROMOTE_BARRIER = 1, /* the named barrier that the promoting warps share */
    WIDTH = TILE / 2,    /* columns of D per promoting thread */
    CHUNK = 32
};
static_assert(THREADS == 32 * (MULTIPLY_WARP + 1), "roles");
static_assert(BSMM_FP8_GROUPS_SHARED + 4096 <= 227 * 1024, "shared memory");

/* ---- shared memory and barriers ---- */

typedef struct shared {
    uint64_t full[STAGES], empty[STAGES], done[2], available[2];
    uint32_t columns; /* the address of the allocated tensor memory */
    /* scales of D's columns, for the k block in each of the two accumulators */
    float b_factors[2][TILE];
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

static __device__ __forceinline__ corner tile_at(const bsmm_fp8_groups_params *p, uint32_t tile) {
    const bsmm_gpu_tile at = bsmm_gpu_tile_at(tile, p->group_m, p->tiles_m, p->tiles_n);
    return (corner){at.m * TILE, at.n * TILE};
}

/* ---- load: one thread of warp 8 ---- */

static __device__ __forceinline__ void load_tiles(const bsmm_fp8_groups_params *p, uint32_t base,
                                                  shared *s) {
    uint32_t count = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x) {
        const corner at = tile_at(p, tile);
        for (uint32_t block = 0; block < p->k_blocks; block++, count++) {
            const uint32_t stage = count % STAGES, full = ptx_shared_address(&s->full[stage]),
                           to = base + stage * STAGE_BYTES;
            wait_for(&s->empty[stage], ~(count / STAGES) & 1);
            ptx_mbarrier_arrive_expect(full, STAGE_BYTES);
            ptx_tma_load(to, &p->elements[0], (int32_t)(block * BLOCK_K), (int32_t)at.row, full);
            ptx_tma_load(to + TILE * BLOCK_K, &p->elements[1], (int32_t)(block * BLOCK_K),
                         (int32_t)at.col, full);
        }
    }
}

/* ---- multiply: one thread of warp 9 ---- */

static __device__ __forceinline__ void multiply_tiles(const bsmm_fp8_groups_params *p,
                                                      uint32_t base, shared *s) {
    uint32_t count = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x)
        for (uint32_t block = 0; block < p->k_blocks; block++, count++) {
            const uint32_t stage = count % STAGES, which = count & 1,
                           from = base + stage * STAGE_BYTES;
            const uint64_t a = ptx_tcgen05_rows_128(from),
                           b = ptx_tcgen05_rows_128(from + TILE * BLOCK_K);
            wait_for(&s->full[stage], count / STAGES & 1);
            wait_for(&s->available[which], ~(count / 2) & 1);
            ptx_tcgen05_fence_after();
#pragma unroll
            for (uint32_t step = 0; step < STEPS; step++)
                PTX_TCGEN05_MMA("f8f6f4", s->columns + which * TILE, a + 2 * step, b + 2 * step,
                                p->form, step);
            ptx_tcgen05_commit(ptx_shared_address(&s->empty[stage]));
            ptx_tcgen05_commit(ptx_shared_address(&s->done[which]));
        }
}

/* ---- promote: warps 0 to 7 ---- */

/* Returns a scale as a factor for sums. Returns NaN if the scale's magnitude is not 0 and lies
 * outside 2^-46 to 2^46, and results with a factor of NaN are recomputed in double. Inside this
 * range, the product of two scales and a nonzero sum of a k block is a normal fp32 number, so that
 * no term is lost. */
static __device__ __forceinline__ float factor_of(const bsmm_gpu_operand *o, uint32_t row,
                                                  uint32_t col) {
    const float scale = bsmm_gpu_scale(o, row, col), magnitude = fabsf(scale);
    const bool tame = scale == 0 || (magnitude >= 0x1p-46f && magnitude <= 0x1p46f);
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
        for (uint32_t i = 0; i < CHUNK; i++)
            totals[col + i] =
                fmaf(__uint_as_float(bits[i]), a_factor * b_factors[col + i], totals[col + i]);
    }
}

static __device__ __forceinline__ void promote_tile(const bsmm_fp8_groups_params *p, corner at,
                                                    shared *s, uint32_t *count,
                                                    float totals[WIDTH]) {
    const uint32_t warp = threadIdx.x / 32, half = warp / 4, lane = threadIdx.x % 32,
                   row = min(at.row + warp % 4 * 32 + lane, p->m - 1),
                   col = min(at.col + threadIdx.x % TILE, p->n - 1);
#pragma unroll
    for (uint32_t i = 0; i < WIDTH; i++)
        totals[i] = 0;
    for (uint32_t block = 0; block < p->k_blocks; block++, ++*count) {
        const uint32_t which = *count & 1, k = block * BLOCK_K;
        const float a_factor = factor_of(&p->sides[0], row, k);
        if (threadIdx.x < TILE) s->b_factors[which][threadIdx.x] = factor_of(&p->sides[1], col, k);
        ptx_barrier_sync(PROMOTE_BARRIER, PROMOTE_WARPS * 32);
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

/* Stores 32 x 32 results of a warp from its staging buffer `strip`, one row at a time. Results
 * whose total is not finite are first recomputed in double. */
static __device__ __noinline__ void store_strip(const bsmm_fp8_groups_params *p, uint32_t row,
                                                uint32_t col, const float *strip) {
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&p->epilogue);
    const uint32_t lane = threadIdx.x % 32, c = col + lane;
    for (uint32_t i = 0; i < CHUNK && row + i < p->m; i++) {
        const float total = strip[i * (CHUNK + 1) + lane];
        double sum = (double)total;
        uint32_t left = __ballot_sync(0xffffffffu, c < p->n && !isfinite(total));
        for (; left; left &= left - 1) {
            const uint32_t next = (uint32_t)__ffs((int)left) - 1;
            const double again =
                bsmm_gpu_epilogue_sum_again(&p->sides[0], &p->sides[1], row + i, col + next, p->k);
            if (lane == next) sum = again;
        }
        if (c < p->n) bsmm_gpu_epilogue_store(&p->epilogue, &factors, row + i, c, sum);
    }
}

static __device__ __forceinline__ void promote_tiles(const bsmm_fp8_groups_params *p, float *strips,
                                                     shared *s) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *const strip = strips + warp * (BSMM_FP8_GROUPS_STRIP_BYTES / 4);
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

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    fp8_groups(const __grid_constant__ bsmm_fp8_groups_params params) {
    extern __shared__ uint8_t memory[];
    __shared__ shared s;
    const bsmm_fp8_groups_params *p = &params;
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
    if (warp < PROMOTE_WARPS)
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
