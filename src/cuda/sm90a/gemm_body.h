/* The sm_90a engine: D = alpha * (A . scales) (B . scales)^T + beta * C + bias on wgmma, one body
 * for every operand type, kind of scales and tile. A .cu file sets the macros and includes it:
 *
 *   GEMM_NAME      the kernel's name
 *   GEMM_TYPES     wgmma's types, "f32.e4m3.e4m3"; GEMM_WIDE: operands of 16 bits (else of 8)
 *   GEMM_SCALES    GEMM_UNSCALED, GEMM_ROW_BLOCK (A: 1 x 128, B: 128 x 128), GEMM_ROW_ROW
 *   TILE_N         columns of a block's tile: 64, 96, 128, 192 or 256
 *   GEMM_CAREFUL   GEMM_ROW_ROW: products of scales may be no normal fp32 numbers
 *   SUBTILES       64-row subtiles of each consumer warpgroup, 1 or 2
 *   PARTIALS       1 or 2 sets of wgmma accumulators; with 2 the tensor cores work on one while the
 * other is scaled and added CLUSTER_M, CLUSTER_N   blocks of a cluster; those in a row share A,
 * those in a column B STAGES         of the ring of operand tiles CHUNKS         of 32 columns,
 * that each warp's staging for D has CONSUMERS      warpgroups that multiply, 2 or 3
 *
 * Both operands are K-major; a k block is 128 bytes of K. Operand tiles lie in shared memory as the
 * copy engine writes them with a 128-byte swizzle: rows of 128 bytes, the 16-byte unit u of row r
 * at u ^ (r % 8).
 *
 * Shared memory, from a 1024-byte boundary: STAGES x { A tile, B tile }, staging for D (CHUNKS
 * chunks of 16 x 32 16-bit values a warp), each stage's scales, then two barriers a stage.
 *
 * Roles: one thread of warpgroup 0 issues the copies. The others multiply, scale, add and store.
 *
 * Barriers of a stage: `full` completes when this block's tiles and scales have arrived, whichever
 * block of the cluster sent them; `empty` when every consumer warp of every block that this one's
 * copies go to has read them.
 *
 * Numbers: FP8 tensor cores keep about 14 bits of a running sum, so each k block (128 products) is
 * summed from zero there and then scaled and added in fp32. */
#include "cuda/ptx/address.h"
#include "cuda/ptx/cluster.h"
#include "cuda/ptx/mbarrier.h"
#include "cuda/ptx/memory.h"
#include "cuda/ptx/tma.h"
#include "cuda/ptx/wgmma.h"
#include "cuda/sm90a/gemm_schedule.h"
#include "cuda/wgmma_params.h"

#include <assert.h>

#ifndef GEMM_CAREFUL
#    define GEMM_CAREFUL 0
#endif

#define GEMM_UNSCALED  0
#define GEMM_ROW_BLOCK 1
#define GEMM_ROW_ROW   2

#define CONSUMER_WARPS (4 * CONSUMERS)
#define BLOCK_THREADS  (128 * (1 + CONSUMERS))
#define TILE_M         (64 * SUBTILES * CONSUMERS)
#define CLUSTER        (CLUSTER_M * CLUSTER_N)
#define K_BYTES        128
#define A_BYTES        (TILE_M * K_BYTES)
#define B_BYTES        (TILE_N * K_BYTES)
#define STAGE_BYTES    (A_BYTES + B_BYTES)
#define CHUNK_COLS     32
#define CHUNK_BYTES    (16 * 2 * CHUNK_COLS)
/* A stage's scales: of each row of A and, with GEMM_ROW_ROW, of B. */
#define SCALE_BYTES                                                                                \
    (GEMM_SCALES == GEMM_UNSCALED ? 0 : 4 * TILE_M + (GEMM_SCALES == GEMM_ROW_ROW ? 4 * TILE_N : 0))
#define STAGING_AT   (STAGES * STAGE_BYTES)
#define SCALES_AT    (STAGING_AT + CONSUMER_WARPS * CHUNKS * CHUNK_BYTES)
#define BARRIERS_AT  (SCALES_AT + STAGES * SCALE_BYTES)
#define SHARED_BYTES (BARRIERS_AT + STAGES * 16)
#define ACCUMULATORS (TILE_N / 2) /* per thread and subtile */
/* Of 65536: 128 * 40 + 256 * 232, or 128 * 32 + 384 * 160 */
#define FEED_REGISTERS (CONSUMERS == 2 ? 40 : 32)
#define MATH_REGISTERS (CONSUMERS == 2 ? 232 : 160)
static_assert(CONSUMERS == 2 || CONSUMERS == 3, "register shares are known for these");
static_assert(TILE_N / CHUNK_COLS % CHUNKS == 0, "each subtile begins with the oldest chunk");

static_assert(SHARED_BYTES + 1024 <= 232448, "a multiprocessor lends 227 KiB to a block");
static_assert(TILE_M % CLUSTER_N == 0 && TILE_N % CLUSTER_M == 0, "a shared tile is cut evenly");
static_assert((TILE_M / CLUSTER_N) % 8 == 0 && (TILE_N / CLUSTER_M) % 8 == 0,
              "cuts keep whole swizzle atoms");

#define TEXT_OF(x)  #x
#define TEXT(x)     TEXT_OF(x)
#define WGMMA_NAME  wgmma_step
#define WGMMA_HOLD  hold
#define WGMMA_N     TILE_N
#define WGMMA_TYPES GEMM_TYPES
#if GEMM_WIDE
#    define WGMMA_SHAPE "m64n" TEXT(TILE_N) "k16"
#    define WGMMA_TAIL  ", 1, 1, 0, 0"
#else
#    define WGMMA_SHAPE "m64n" TEXT(TILE_N) "k32"
#    define WGMMA_TAIL  ", 1, 1"
#endif
#include "cuda/ptx/wgmma_one.h"

/* ---- the ring of stages ---- */

/* Every piece of work begins with stage 0, so that the main loop, unrolled over the stages, knows
 * all addresses. Bit s of `phases` is the parity of the phase that stage s is in. */
typedef struct ring {
    uint32_t tiles, scales, barriers; /* shared-window addresses */
    uint32_t phases;
} ring;

static __device__ __forceinline__ uint32_t full_of(const ring *r, uint32_t stage) {
    return r->barriers + 16 * stage;
}
static __device__ __forceinline__ uint32_t empty_of(const ring *r, uint32_t stage) {
    return r->barriers + 16 * stage + 8;
}
static __device__ __forceinline__ void wait_for(uint32_t barrier, uint32_t parity) {
    while (!ptx_mbarrier_try_wait(barrier, parity)) {
    }
}
static __device__ __forceinline__ void wait_empty(const ring *r, uint32_t stage) {
    wait_for(empty_of(r, stage), ~(r->phases >> stage) & 1);
}
/* Whether a stage is full; a test that is made early hides its latency. */
static __device__ __forceinline__ uint32_t is_full(const ring *r, uint32_t stage) {
    return ptx_mbarrier_try_wait(full_of(r, stage), r->phases >> stage & 1);
}
static __device__ __forceinline__ void wait_full(ring *r, uint32_t stage, uint32_t tested) {
    if (!tested) wait_for(full_of(r, stage), r->phases >> stage & 1);
    r->phases ^= 1u << stage;
}

/* ---- where things are ---- */

typedef struct place {
    int32_t rank_m, rank_n; /* of this block in its cluster */
} place;

static __device__ __forceinline__ place place_make(void) {
    uint32_t rank = CLUSTER > 1 ? ptx_cluster_rank() : 0;
    place here = {(int32_t)(rank % CLUSTER_M), (int32_t)(rank / CLUSTER_M)};
    return here;
}

typedef struct corner {
    int32_t row, col; /* of D: where a block's tile begins */
} corner;

/* Tiles are walked in bands of group_m cluster tiles of M, down each column of the band, so that
 * the blocks that run at one time read few different rows of A and B. */
static __device__ __forceinline__ corner corner_of(const bsmm_wgmma_params *p, int32_t tile,
                                                   place here) {
    int32_t band_tiles = p->group_m * p->tiles_n;
    int32_t first = tile / band_tiles * p->group_m;
    int32_t height = min(p->group_m, p->tiles_m - first);
    int32_t inside = tile % band_tiles;
    corner at;
    at.row = ((first + inside % height) * CLUSTER_M + here.rank_m) * TILE_M;
    at.col = (inside / height * CLUSTER_N + here.rank_n) * TILE_N;
    return at;
}

/* ---- feed ---- */

/* One stage: this block's parts of the shared tiles, to every block that uses them. */
static __device__ __forceinline__ void load_stage(const bsmm_wgmma_params *p, const ring *r,
                                                  uint32_t stage, place here, corner at,
                                                  int32_t k) {
    const int32_t a_rows = TILE_M / CLUSTER_N, b_rows = TILE_N / CLUSTER_M;
    uint32_t full = full_of(r, stage);
    uint32_t a = r->tiles + stage * STAGE_BYTES + here.rank_n * a_rows * K_BYTES;
    uint32_t b = r->tiles + stage * STAGE_BYTES + A_BYTES + here.rank_m * b_rows * K_BYTES;
    int32_t a_row = at.row + here.rank_n * a_rows, b_row = at.col + here.rank_m * b_rows;
    int32_t x = k * (K_BYTES / (GEMM_WIDE ? 2 : 1));
    ptx_mbarrier_arrive_expect(full, STAGE_BYTES + SCALE_BYTES);
#if GEMM_SCALES != GEMM_UNSCALED
    uint32_t scales = r->scales + stage * SCALE_BYTES;
    ptx_tma_load(scales, &p->a_rows, at.row, k, full);
#endif
#if GEMM_SCALES == GEMM_ROW_ROW
    ptx_tma_load(scales + 4 * TILE_M, &p->b_rows, at.col, k, full);
#endif
#if CLUSTER_N > 1
    uint16_t row_mask = 0;
    for (int j = 0; j < CLUSTER_N; j++)
        row_mask |= (uint16_t)(1 << (here.rank_m + CLUSTER_M * j));
    ptx_tma_load_multicast(a, &p->a, x, a_row, full, row_mask);
#else
    ptx_tma_load(a, &p->a, x, a_row, full);
#endif
#if CLUSTER_M > 1
    uint16_t col_mask = (uint16_t)(((1 << CLUSTER_M) - 1) << (CLUSTER_M * here.rank_n));
    ptx_tma_load_multicast(b, &p->b, x, b_row, full, col_mask);
#else
    ptx_tma_load(b, &p->b, x, b_row, full);
#endif
}

static __device__ __forceinline__ void feed_tiles(const bsmm_wgmma_params *p, ring r, place here,
                                                  gemm_schedule s) {
    gemm_piece piece;
    while (gemm_schedule_next(&s, &piece)) {
        corner at = corner_of(p, piece.tile, here);
        uint32_t stage = 0;
        for (int32_t k = piece.k_begin; k < piece.k_end; k++) {
            wait_empty(&r, stage);
            load_stage(p, &r, stage, here, at, k);
            r.phases ^= 1u << stage;
            if (++stage == STAGES) stage = 0;
        }
    }
}

/* ---- multiply ---- */

/* The scales of one subtile and k block: of this thread's two rows, and of the tile's columns: one
 * (GEMM_ROW_BLOCK), or where they lie (GEMM_ROW_ROW). */
typedef struct factors {
    float row[2], col;
    uint32_t cols;
} factors;

typedef struct consumer {
    const bsmm_wgmma_params *p;
    ring r;
    int32_t warpgroup, warp, lane;
    uint64_t a, b;             /* descriptors: this warpgroup's first subtile and B, of stage 0 */
    uint32_t row_scales;       /* where in a stage's scales this thread's first row is */
    uint32_t block, block_end; /* offset of B's scale to be loaded next, and the last */
    float held, next;          /* B's scales of 32 k blocks, one a lane, and of the next 32 */
} consumer;

static __device__ __forceinline__ float get(uint32_t from) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
    return value;
}

/* Tells every block whose copies write here that this warp has read the stage. */
static __device__ __forceinline__ void release(uint32_t stage, const consumer *c) {
    uint32_t empty = empty_of(&c->r, stage);
#if CLUSTER == 1
    if (c->lane == 0) ptx_mbarrier_arrive(empty);
#else
    if (c->lane < CLUSTER) {
        place here = place_make();
        int32_t m = c->lane % CLUSTER_M, n = c->lane / CLUSTER_M;
        if (m == here.rank_m || n == here.rank_n)
            ptx_mbarrier_arrive_cluster(ptx_mapa(empty, (uint32_t)c->lane));
    }
#endif
}

/* Starts the products of one stage and subtile, and loads their factors meanwhile. */
static __device__ __forceinline__ factors start(const consumer *c, float *sum, uint32_t stage,
                                                uint32_t subtile, uint32_t k, uint32_t keep) {
    uint64_t a_at = c->a + ((stage * STAGE_BYTES + subtile * (64 * K_BYTES)) >> 4);
    uint64_t b_at = c->b + ((stage * STAGE_BYTES) >> 4);
    if (GEMM_SCALES != GEMM_UNSCALED) hold(sum);
    ptx_wgmma_fence();
#pragma unroll
    for (int i = 0; i < K_BYTES / 32; i++)
        wgmma_step(sum, a_at + 2 * i, b_at + 2 * i, i > 0 ? 1 : keep);
    ptx_wgmma_commit();
    if (GEMM_SCALES != GEMM_UNSCALED) hold(sum);
    factors f = {{1, 1}, 1, 0};
#if GEMM_SCALES != GEMM_UNSCALED
    uint32_t row = c->r.scales + stage * SCALE_BYTES + c->row_scales + 4 * 64 * subtile;
    f.row[0] = get(row);
    f.row[1] = get(row + 32);
#endif
#if GEMM_SCALES == GEMM_ROW_BLOCK
    f.col = __shfl_sync(0xffffffff, c->held, k);
#elif GEMM_SCALES == GEMM_ROW_ROW
    f.cols = c->r.scales + stage * SCALE_BYTES + 4 * TILE_M + 8 * (c->lane % 4);
#endif
    (void)k;
    return f;
}

#if GEMM_SCALES == GEMM_ROW_BLOCK
static_assert(128 % TILE_N == 0, "a tile's columns lie in one block of B");

/* B's scales, 32 k blocks at a time and 32 ahead. */
static __device__ __forceinline__ void load_block_scales(consumer *c) {
    c->held = c->next;
    c->next = __ldg(c->p->b_blocks.base + min(c->block, c->block_end));
    c->block += 32 * c->p->b_blocks.k_step;
}

/* k: the piece's first k block. */
static __device__ __forceinline__ void find_block_scales(consumer *c, corner at, int32_t k) {
    const bsmm_wgmma_block_scales *b = &c->p->b_blocks;
    uint32_t line = (uint32_t)min(at.col, c->p->n - 1) / 128 * b->n_step;
    c->block = line + (uint32_t)(k + c->lane) * b->k_step;
    c->block_end = line + (uint32_t)(c->p->k_blocks - 1) * b->k_step;
    load_block_scales(c);
}
#else
static __device__ __forceinline__ void load_block_scales(consumer *c) {
    (void)c;
}
static __device__ __forceinline__ void find_block_scales(consumer *c, corner at, int32_t k) {
    (void)c, (void)at, (void)k;
}
#endif

/* ---- promote: total += factors * sum ---- */

static __device__ __forceinline__ bool is_normal(float x) {
    return (__float_as_uint(x) & 0x7fffffff) - 0x00800000u < 0x7f000000u;
}

static __device__ __forceinline__ float larger(float a, float b) {
    return fabsf(a) > fabsf(b) ? a : b;
}
static __device__ __forceinline__ float smaller(float a, float b) {
    return fabsf(a) > fabsf(b) ? b : a;
}

#if GEMM_SCALES == GEMM_ROW_BLOCK
/* Two scales become one factor; where that is no normal number (2^-149 times 2^-149, say) the
 * larger goes into the sums first. */
static __device__ __forceinline__ void promote(const consumer *c, float *total, float *sum,
                                               factors f) {
    hold(sum);
    float up = f.row[0] * f.col, down = f.row[1] * f.col;
    if (!is_normal(up) || !is_normal(down)) {
#    pragma unroll
        for (int i = 0; i < ACCUMULATORS; i++)
            sum[i] *= larger(f.row[i % 4 / 2], f.col);
        up = smaller(f.row[0], f.col);
        down = smaller(f.row[1], f.col);
    }
#    pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] = fmaf(i % 4 < 2 ? up : down, sum[i], total[i]);
}
#elif GEMM_SCALES == GEMM_ROW_ROW
/* The scales of columns i / 2 and i / 2 + 1 of this thread, i a multiple of 4. */
static __device__ __forceinline__ void get_cols(const factors *f, int i, float *col) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(col[0]), "=f"(col[1])
                 : "r"(f->cols + 8 * i));
}

/* Four values: two rows, two columns. */
static __device__ __forceinline__ void promote_four(float *total, const float *sum,
                                                    const float *row, const float *col) {
    for (int j = 0; j < 4; j++)
        total[j] = fmaf(row[j / 2] * col[j % 2], sum[j], total[j]);
}

/* Where a factor may be no normal number: the larger scale goes into the sum first, see above. */
static __device__ __forceinline__ void promote_careful(float *total, const float *sum,
                                                       const float *row, const float *col) {
    bool normal = true;
    for (int j = 0; j < 4; j++)
        normal = normal && is_normal(row[j / 2] * col[j % 2]);
    if (__all_sync(0xffffffff, normal)) {
        promote_four(total, sum, row, col);
        return;
    }
    for (int j = 0; j < 4; j++) {
        float a = row[j / 2], b = col[j % 2], factor = a * b;
        float first = is_normal(factor) ? 1 : larger(a, b);
        total[j] = fmaf(is_normal(factor) ? factor : smaller(a, b), first * sum[j], total[j]);
    }
}

static __device__ __forceinline__ void promote(const consumer *c, float *total, float *sum,
                                               factors f) {
    hold(sum);
#    pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        float col[2];
        get_cols(&f, i, col);
        if (GEMM_CAREFUL)
            promote_careful(total + i, sum + i, f.row, col);
        else
            promote_four(total + i, sum + i, f.row, col);
    }
}
#endif

/* ---- the main loop: total += the piece ---- */

/* step(stage) for stage 0, 1, ... STAGES - 1, 0, ... until it returns 0. Written out, because the
 * compiler does not unroll loops around wgmma by itself, and `stage` must be a constant. */
#define FOR_STAGES(step)                                                                           \
    while ((step(0)) && (step(1)) && (STAGES < 3 || (step(2))) && (STAGES < 4 || (step(3))) &&     \
           (STAGES < 5 || (step(4))) && (STAGES < 6 || (step(5)))) {                               \
    }
static_assert(STAGES >= 2 && STAGES <= 6, "as many as FOR_STAGES has");

static __device__ __forceinline__ uint32_t stage_before(uint32_t stage) {
    return stage ? stage - 1 : STAGES - 1;
}
static __device__ __forceinline__ uint32_t stage_after(uint32_t stage) {
    return stage + 1 < STAGES ? stage + 1 : 0;
}

/* What the main loop carries from step to step. */
typedef struct progress {
    int32_t left; /* k blocks to come */
    uint32_t k;   /* k blocks begun */
    uint32_t last, tested;
} progress;

#if GEMM_SCALES == GEMM_UNSCALED
/* Sums stay in the tensor cores' accumulators from the first k block to the last; a stage is given
 * back one later, so that the next products are queued before the last are awaited. */
static __device__ __forceinline__ int multiply_stage(consumer *c, float (*total)[ACCUMULATORS],
                                                     progress *now, uint32_t stage) {
    if (now->left-- == 0) return 0;
    wait_full(&c->r, stage, 0);
#    pragma unroll
    for (uint32_t s = 0; s < SUBTILES; s++)
        start(c, total[s], stage, s, 0, 1);
    PTX_WGMMA_WAIT(SUBTILES);
    release(stage_before(stage), c);
    now->last = stage;
    return 1;
}

static __device__ __forceinline__ void multiply(consumer *c, float (*total)[ACCUMULATORS],
                                                gemm_piece piece) {
    progress now;
    now.left = piece.k_end - piece.k_begin - 1;
    now.last = 0;
#    pragma unroll
    for (int s = 0; s < SUBTILES; s++)
        hold(total[s]);
    wait_full(&c->r, 0, 0);
#    pragma unroll
    for (uint32_t s = 0; s < SUBTILES; s++)
        start(c, total[s], 0, s, 0, piece.k_begin > 0);
#    define STEP(i) multiply_stage(c, total, &now, (i + 1) % STAGES)
    FOR_STAGES(STEP)
#    undef STEP
    PTX_WGMMA_WAIT(0);
    release(now.last, c);
#    pragma unroll
    for (int s = 0; s < SUBTILES; s++)
        hold(total[s]);
}
#elif PARTIALS == 1
static __device__ __forceinline__ int multiply_stage(consumer *c, float (*total)[ACCUMULATORS],
                                                     float *sum, progress *now, uint32_t stage) {
    wait_full(&c->r, stage, now->tested);
    now->left--;
    if (now->k % 32 == 0) load_block_scales(c);
#    pragma unroll
    for (uint32_t s = 0; s < SUBTILES; s++) {
        factors f = start(c, sum, stage, s, now->k, 0);
        PTX_WGMMA_WAIT(0);
        if (s == SUBTILES - 1) {
            if (GEMM_SCALES != GEMM_ROW_ROW) release(stage, c);
            now->tested = now->left > 0 ? is_full(&c->r, stage_after(stage)) : 0;
        }
        promote(c, total[s], sum, f);
    }
    if (GEMM_SCALES == GEMM_ROW_ROW) release(stage, c);
    now->k++;
    return now->left > 0;
}

static __device__ __forceinline__ void multiply(consumer *c, float (*total)[ACCUMULATORS],
                                                gemm_piece piece) {
    float sum[ACCUMULATORS];
    progress now;
    now.left = piece.k_end - piece.k_begin;
    now.k = now.tested = 0;
#    define STEP(i) multiply_stage(c, total, sum, &now, i)
    FOR_STAGES(STEP)
#    undef STEP
}
#else
/* Two sums alternate: while one is promoted the tensor cores work on the other. */
static_assert(SUBTILES == 1 && STAGES % 2 == 0, "a stage always meets the same sum");

static __device__ __forceinline__ void promote_stage(consumer *c, float *total, float *sum,
                                                     uint32_t stage, factors f) {
    if (GEMM_SCALES != GEMM_ROW_ROW) release(stage, c);
    promote(c, total, sum, f);
    if (GEMM_SCALES == GEMM_ROW_ROW) release(stage, c);
}

/* Queues a stage into `sum`, then promotes the one before it. */
static __device__ __forceinline__ factors multiply_stage(consumer *c, float *total, float *sum,
                                                         float *sum_before, factors before,
                                                         progress *now, uint32_t stage) {
    wait_full(&c->r, stage, now->tested);
    if (now->k % 32 == 0) load_block_scales(c);
    factors f = start(c, sum, stage, 0, now->k, 0);
    PTX_WGMMA_WAIT(1);
    now->left--;
    now->k++;
    now->tested = now->left > 0 ? is_full(&c->r, stage_after(stage)) : 0;
    promote_stage(c, total, sum_before, now->last, before);
    now->last = stage;
    return f;
}

/* Two stages, an odd and an even one, so that the loop is left with one and the same sum under way.
 */
static __device__ __forceinline__ int multiply_pair(consumer *c, float *total, float *even,
                                                    float *odd, factors *f, progress *now,
                                                    uint32_t stage) {
    if (now->left < 2) return 0;
    now->last = stage_before(stage);
    factors g = multiply_stage(c, total, odd, even, *f, now, stage);
    *f = multiply_stage(c, total, even, odd, g, now, stage_after(stage));
    return 1;
}

static __device__ __forceinline__ void multiply(consumer *c, float (*total)[ACCUMULATORS],
                                                gemm_piece piece) {
    float even[ACCUMULATORS], odd[ACCUMULATORS];
    progress now;
    now.left = piece.k_end - piece.k_begin - 1;
    now.last = now.tested = 0;
    now.k = 1;
    wait_full(&c->r, 0, 0);
    load_block_scales(c);
    factors f = start(c, even, 0, 0, 0, 0);
#    define STEP(i)                                                                                \
        (2 * (i) >= STAGES || multiply_pair(c, total[0], even, odd, &f, &now, 2 * (i) + 1))
    FOR_STAGES(STEP)
#    undef STEP
    if (now.left) {
        factors g = multiply_stage(c, total[0], odd, even, f, &now, stage_after(now.last));
        PTX_WGMMA_WAIT(0);
        promote_stage(c, total[0], odd, now.last, g);
    } else {
        PTX_WGMMA_WAIT(0);
        promote_stage(c, total[0], even, now.last, f);
    }
}
#endif

/* ---- accumulators from block to block ---- */

/* One float at a time: wider accesses would tie accumulators to aligned registers, and promote's
 * operands then meet in the same register banks. */
static __device__ __forceinline__ float *handed_to(const bsmm_wgmma_params *p, int32_t block,
                                                   const consumer *c) {
    int64_t at = (int64_t)(block * CONSUMERS + c->warpgroup) * (SUBTILES * ACCUMULATORS * 128);
    return p->handed + at + threadIdx.x % 128;
}

static __device__ __forceinline__ void hand_over(const consumer *c, float (*total)[ACCUMULATORS]) {
    float *to = handed_to(c->p, (int32_t)blockIdx.x, c);
#pragma unroll
    for (int i = 0; i < SUBTILES * ACCUMULATORS; i++)
        __stcg(to + 128 * i, total[i / ACCUMULATORS][i % ACCUMULATORS]);
    /* The barrier orders all threads' stores before the one that follows it, whose release is
     * cumulative. */
    ptx_barrier_sync(1 + c->warpgroup, 128);
    if (threadIdx.x % 128 == 0)
        ptx_store_release(c->p->handed_flag + blockIdx.x * CONSUMERS + c->warpgroup, c->p->ticket);
}

/* Takes what the block of the cluster before left, and clears its flag for the next launch. */
static __device__ __forceinline__ void take_over(const consumer *c, float (*total)[ACCUMULATORS]) {
    int32_t block = (int32_t)blockIdx.x - CLUSTER;
    uint64_t *flag = c->p->handed_flag + block * CONSUMERS + c->warpgroup;
    if (threadIdx.x % 128 == 0) {
        while (ptx_load_acquire(flag) != c->p->ticket)
            __nanosleep(64);
        *flag = 0;
    }
    ptx_barrier_sync(1 + c->warpgroup, 128);
    const float *from = handed_to(c->p, block, c);
#pragma unroll
    for (int i = 0; i < SUBTILES * ACCUMULATORS; i++)
        total[i / ACCUMULATORS][i % ACCUMULATORS] = __ldcg(from + 128 * i);
}

/* ---- store ---- */

/* alpha and the operands' global scales, where the simple stores are used: no C, no bias. */
static __device__ __forceinline__ void scale_total(double factor, float *total) {
    if (factor == 1) return;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] = (float)(factor * (double)total[i]);
}

static __device__ __forceinline__ uint32_t pack_pair(uint32_t kind, float low, float high) {
    return kind == BSMM_WGMMA_STORE_BF16 ? ptx_pack_bf16(low, high) : ptx_pack_f16(low, high);
}

/* A warp's 16 rows of a subtile by the copy engine: 32 columns at a time through its own staging,
 * which is swizzled by 64 bytes (16-byte unit u of row r at u ^ (r / 2 % 4)). Clips at D's edges.
 */
static __device__ __forceinline__ void store_by_map(const consumer *c, const float *total,
                                                    uint32_t staging, int32_t row, int32_t col) {
    const uint32_t lane = (uint32_t)c->lane, kind = c->p->store;
    const uint32_t line = lane % 16, swizzle = line / 2 % 4;
#pragma unroll
    for (int chunk = 0; chunk < TILE_N / CHUNK_COLS; chunk++) {
        uint32_t to = staging + (chunk % CHUNKS) * CHUNK_BYTES;
        if (lane == 0) PTX_TMA_WAIT_READ(CHUNKS - 1);
        __syncwarp();
#pragma unroll
        for (int j = 0; j < CHUNK_COLS / 8; j += 2) {
            const float *t = total + 4 * (chunk * (CHUNK_COLS / 8) + j);
            uint32_t unit = ((uint32_t)j + lane / 16) ^ swizzle;
            ptx_stmatrix_x4(to + line * (2 * CHUNK_COLS) + unit * 16, pack_pair(kind, t[0], t[1]),
                            pack_pair(kind, t[2], t[3]), pack_pair(kind, t[4], t[5]),
                            pack_pair(kind, t[6], t[7]));
        }
        ptx_fence_proxy_async();
        __syncwarp();
        if (lane == 0) {
            ptx_tma_store(&c->p->d, to, col + chunk * CHUNK_COLS, row);
            ptx_tma_commit();
        }
    }
}

static __device__ __forceinline__ void store_floats(const bsmm_wgmma_params *p, const float *total,
                                                    int32_t row, int32_t col) {
    float *d = (float *)p->epilogue.d;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++) {
        int32_t r = row + i % 4 / 2 * 8, c = col + i / 4 * 8 + i % 2;
        if (r < p->m && c < p->n) d[r * p->epilogue.d_row + c] = total[i];
    }
}

static __device__ __noinline__ void store_any(const bsmm_wgmma_params *p,
                                              const bsmm_epilogue_factors *f, int32_t row,
                                              int32_t col, float value) {
    if (row < p->m && col < p->n) bsmm_epilogue_store(&p->epilogue, f, row, col, (double)value);
}

static __device__ __forceinline__ void watch(uint32_t *overflowed, const float *total) {
    if (!overflowed) return;
    bool finite = true;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        finite = finite && fabsf(total[i]) <= 3.402823466e38f;
    if (!finite) *overflowed = 1;
}

static __device__ __forceinline__ void store(const consumer *c, float (*total)[ACCUMULATORS],
                                             uint32_t staging, corner at) {
    const bsmm_wgmma_params *p = c->p;
    bsmm_epilogue_factors f = bsmm_epilogue_begin(&p->epilogue);
#pragma unroll
    for (int s = 0; s < SUBTILES; s++) {
        int32_t row = at.row + (c->warpgroup * SUBTILES + s) * 64 + c->warp * 16;
        int32_t my_row = row + c->lane / 4, my_col = at.col + 2 * (c->lane % 4);
        if (GEMM_WIDE) watch(p->overflowed, total[s]);
        if (p->store == BSMM_WGMMA_STORE_ANY) {
#pragma unroll
            for (int i = 0; i < ACCUMULATORS; i++)
                store_any(p, &f, my_row + i % 4 / 2 * 8, my_col + i / 4 * 8 + i % 2, total[s][i]);
            continue;
        }
        scale_total(f.factor, total[s]);
        if (p->store == BSMM_WGMMA_STORE_F32)
            store_floats(p, total[s], my_row, my_col);
        else
            store_by_map(c, total[s], staging, row, at.col);
    }
}

/* ---- consumers ---- */

static __device__ __forceinline__ void consume(const bsmm_wgmma_params *p, ring r, place here,
                                               gemm_schedule s, uint32_t staging) {
    consumer c;
    c.p = p;
    c.r = r;
    c.warpgroup = __shfl_sync(0xffffffff, (int32_t)threadIdx.x / 128, 0) - 1;
    c.warp = (int32_t)threadIdx.x % 128 / 32;
    c.lane = (int32_t)threadIdx.x % 32;
    c.a = ptx_wgmma_descriptor(r.tiles + c.warpgroup * (SUBTILES * 64 * K_BYTES));
    c.b = ptx_wgmma_descriptor(r.tiles + A_BYTES);
    c.row_scales = 4 * (c.warpgroup * (SUBTILES * 64) + c.warp * 16 + c.lane / 4);
    staging += (uint32_t)(4 * c.warpgroup + c.warp) * (CHUNKS * CHUNK_BYTES);
    gemm_piece piece;
    while (gemm_schedule_next(&s, &piece)) {
        float total[SUBTILES][ACCUMULATORS];
        corner at = corner_of(p, piece.tile, here);
        find_block_scales(&c, at, piece.k_begin);
        if (piece.k_begin > 0) {
            take_over(&c, total);
        } else {
#pragma unroll
            for (int i = 0; i < SUBTILES * ACCUMULATORS; i++)
                total[i / ACCUMULATORS][i % ACCUMULATORS] = 0;
        }
        multiply(&c, total, piece);
        if (piece.k_end < p->k_blocks)
            hand_over(&c, total);
        else
            store(&c, total, staging, at);
    }
}

/* ---- the kernel ---- */

static __device__ __forceinline__ void set_up(const bsmm_wgmma_params *p, uint32_t barriers) {
    if (threadIdx.x != 0) return;
    ptx_tma_prefetch_map(&p->a);
    ptx_tma_prefetch_map(&p->b);
    if (p->store >= BSMM_WGMMA_STORE_BF16) ptx_tma_prefetch_map(&p->d);
    for (int i = 0; i < STAGES; i++) {
        ptx_mbarrier_init(barriers + 16 * i, 1);
        ptx_mbarrier_init(barriers + 16 * i + 8, CONSUMER_WARPS * (CLUSTER_M + CLUSTER_N - 1));
    }
    ptx_fence_mbarrier_init();
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    GEMM_NAME(const __grid_constant__ bsmm_wgmma_params params) {
    if (!bsmm_cuda_gate_pass(&params.gate)) return;
    extern __shared__ uint8_t memory[];
    const bsmm_wgmma_params *p = &params;
    /* The same in all lanes, and shuffled so that the compiler knows it: addresses then stay in
     * uniform registers, where wgmma wants its descriptors. */
    uint32_t base = __shfl_sync(0xffffffff, (ptx_shared_address(memory) + 1023) & ~1023u, 0);
    ring r = {base, base + SCALES_AT, base + BARRIERS_AT, 0};
    set_up(p, r.barriers);
    if (CLUSTER > 1) {
        ptx_cluster_arrive();
        ptx_cluster_wait();
    } else {
        __syncthreads();
    }
    place here = place_make();
    gemm_schedule s =
        gemm_schedule_make(p, (int32_t)blockIdx.x / CLUSTER, (int32_t)gridDim.x / CLUSTER);
    if (threadIdx.x < 128) {
        PTX_REGISTERS_LESS(FEED_REGISTERS);
        if (threadIdx.x < 32 && ptx_elect()) feed_tiles(p, r, here, s);
    } else {
        PTX_REGISTERS_MORE(MATH_REGISTERS);
        consume(p, r, here, s, base + STAGING_AT);
        if (threadIdx.x % 32 == 0) PTX_TMA_WAIT_READ(0);
    }
    /* A block whose shared memory others still write or signal must not end. */
    if (CLUSTER > 1) {
        ptx_cluster_arrive();
        ptx_cluster_wait();
    }
}
