/* The sm_90a engine: D = alpha * (A . scales) (B . scales)^T + beta * C + bias on wgmma. One body
 * for every operand type, kind of scales and tile: the columns of a row of tiles.def come as
 * macros.
 *
 * Both operands are K-major; a k block is 128 bytes of K. FP8 tensor cores keep about 14 bits of a
 * running sum, so each k block (128 products) is summed from zero there, and then scaled and added
 * in fp32: promoted. bf16 has no scales, and its sums stay in the tensor cores' accumulators.
 *
 * A product is cut into pieces of work, a tile and a range of its k blocks (gemm_schedule.h). The
 * map of shared memory is in gemm_tile.h. Operand tiles lie there as the copy engine writes them
 * with a 128-byte swizzle: rows of 128 bytes, the 16-byte unit u of row r at u ^ (r % 8).
 *
 * Roles of a block's threads:
 *   warpgroup 0, warp 0     the feed, one thread: asks for copies of operands and scales
 *   warpgroup 0, warps 1..  writers, one thread for each consumer: ask for copies to D
 *   warpgroup 0, warp 3     where it is no writer: brings B's block scales
 *   CONSUMERS warpgroups    multiply, promote and stage results
 *   the rest, up to 512     help with other work, if 8 bits do not hold the operands
 *
 * Who waits for whom, with two consumers and a ring of four stages (load s: the feed asks for the
 * copies to stage s; mul s: the tensor cores' products of it; pro s: their promotion):
 *
 *   time ---------------------------------------------------------------------------------->
 *   feed        load 0, 1, 2, 3 | wait E0        | load 0 | wait E1     | load 1 | ...
 *   copies      ~~~~~~~~ F0 ~~~~~ F1 ~~~~~ F2 ~~~~~ F3         ~~~~~~~~~~~ F0
 *   consumer 0  wait F0 | mul 0        | pro 0 | mul 1      | pro 1 | mul 2 ... | stage | mul 0
 *   consumer 1  wait F0         | mul 0        | pro 0 | mul 1      | pro 1 ...         | stage
 *   empty 0                                E0: both have read stage 0
 *   writer 0                                                      wait S | copy to D | W | ...
 *
 *   F  full, of a stage: this block's tiles and scales have arrived, whichever block of the
 *      cluster sent them. The feed promises the bytes and the copy engine counts them; the
 *      consumers wait.
 *   E  empty, of a stage: every consumer warp of every block that this one's copies go to has read
 *      it. The feed waits before it loads again.
 *   S  staged, of a place for results: the four warps of a consumer have written it. Its writer
 *      waits.
 *   W  written, of a place: the copy to D has read it. Its consumer waits before it stages again.
 *   `ready`: the factors of D are told. Consumers wait once.
 *
 * While one consumer promotes, the other's products keep the tensor cores at work. Within one, only
 * GEMM_EARLY and PARTIALS 2 (tiles.def) have products under way beside other work.
 *
 * Below, in the order of a k block's way: constants, barriers, load, multiply, promote, store; then
 * the consumers' loops and the kernel. */
#include "cuda/ptx/address.h"
#include "cuda/ptx/cluster.h"
#include "cuda/ptx/convert.h"
#include "cuda/ptx/grid.h"
#include "cuda/ptx/mbarrier.h"
#include "cuda/ptx/memory.h"
#include "cuda/ptx/stream.h"
#include "cuda/ptx/tma.h"
#include "cuda/ptx/wgmma.h"
#include "cuda/sm90a/gemm_params.h"
#include "cuda/sm90a/gemm_schedule.h"
#include "cuda/sm90a/gemm_tile.h"

#include <assert.h>

#define TEXT_OF(x)      #x
#define TEXT(x)         TEXT_OF(x)
#define JOINED_OF(a, b) a##b
#define JOINED(a, b)    JOINED_OF(a, b)

/* ---- constants ---- */

/* Macros where the preprocessor asks. */
#define GEMM_SCALES JOINED(GEMM_SCALES_OF_, GEMM_KIND)
#define GEMM_WIDE   (GEMM_SCALES == GEMM_UNSCALED) /* operands of 16 bits, else of 8 */
/* Kind POW2: sums of rows that have one scale for all of K are added as they are. Without that an
 * FP8 k block of 192 x 128 takes 1000 cycles in place of 855. */
#define EVENS          JOINED(EVENS_OF_, GEMM_KIND)
#define EVENS_OF_BF16  0
#define EVENS_OF_BLOCK 0
#define EVENS_OF_ROW   0
#define EVENS_OF_POW2  1

enum {
    /* Kind ROW: products of scales may be no normal fp32 numbers. */
    CAREFUL = GEMM_SCALES == GEMM_ROW_ROW && !EVENS,
    /* Whether results may have to be made again. */
    AGAIN = GEMM_SCALES == GEMM_ROW_BLOCK || CAREFUL,

    TILE_M = GEMM_TILE_M(SUBTILES, CONSUMERS),
    CLUSTER = CLUSTER_M * CLUSTER_N,
    CONSUMER_WARPS = 4 * CONSUMERS,
    ACCUMULATORS = TILE_N / 2, /* per thread and subtile */
    /* Where the blocks may have other work to do, warps that have no role here help with that. */
    BLOCK_THREADS = EVENS ? 512 : 128 * (1 + CONSUMERS),

    K_BYTES = GEMM_K_BYTES,
    K_ELEMENTS = K_BYTES / (GEMM_WIDE ? 2 : 1),
    A_BYTES = TILE_M * K_BYTES,
    STAGE_BYTES = GEMM_STAGE_BYTES(TILE_M, TILE_N),
    /* A stage's scales: of each row of A and, with GEMM_ROW_ROW, of B. */
    SCALE_BYTES = GEMM_SCALE_BYTES(GEMM_SCALES, TILE_M, TILE_N),
    CHUNK_COLS = GEMM_CHUNK_COLS(TILE_N),
    CHUNK_BYTES = GEMM_CHUNK_BYTES(TILE_N),
    /* Of a warpgroup's places; the chunks in one are handed to its writer together. */
    PLACES = GEMM_TURNS ? 1 : CHUNKS,
    PLACE_CHUNKS = GEMM_TURNS ? CONSUMERS * CHUNKS : 1,

    STAGING_AT = GEMM_STAGING_AT(TILE_M, TILE_N, STAGES),
    SCALES_AT = GEMM_SCALES_AT(TILE_M, TILE_N, STAGES, CONSUMERS *CHUNKS),
    COLS_AT = GEMM_COLS_AT(GEMM_SCALES, TILE_M, TILE_N, STAGES, CONSUMERS *CHUNKS),
    BARRIERS_AT = GEMM_BARRIERS_AT(GEMM_SCALES, TILE_M, TILE_N, STAGES, CONSUMERS *CHUNKS),
    SHARED_BYTES = GEMM_SHARED_BYTES(GEMM_SCALES, TILE_M, TILE_N, STAGES, CONSUMERS *CHUNKS),

    /* GEMM_ROW_BLOCK: a tile's columns lie in one block of B or, where its width does not divide
     * 128, in two, each of which has whole groups of COL_GROUP columns. */
    COL_BLOCKS = GEMM_SCALES == GEMM_ROW_BLOCK && 128 % TILE_N ? 2 : 1,
    COL_GROUP = COL_BLOCKS == 1 ? TILE_N
                : TILE_N % 64   ? 32
                                : 64,
    /* Whether the warp that has no writer's part brings B's block scales. The feed would wait for
     * its loads: (1024, 1536, 7168) then takes 37.9 us in place of 35.3. */
    SCALES_WARP = GEMM_SCALES == GEMM_ROW_BLOCK && CONSUMERS < 3,
    /* Of B's scales that complete at a stage's barrier by st.async, which is for clusters; where
     * there is none, the warp that brings them arrives there too. */
    COL_BYTES = GEMM_SCALES == GEMM_ROW_BLOCK && CLUSTER > 1 ? 4 * COL_BLOCKS : 0,
    FULL_ARRIVALS = CLUSTER == 1 && SCALES_WARP ? 2 : 1,
    /* Of each warp that has read a stage. Where B's scales are stored, not copied, each lane speaks
     * for its own reads: of one lane's word for all racecheck knows nothing, and these take as
     * long. */
    EMPTY_ARRIVALS = CLUSTER == 1 && GEMM_SCALES == GEMM_ROW_BLOCK ? 32 : 1,
    /* Scales are read before the products, not behind the first one: there they would let the other
     * warpgroup's products come between this one's, and both would end, and promote, together. A k
     * block of 256 x 128 then takes 1134 cycles in place of 1120. */
    FACTORS_FIRST = GEMM_SCALES == GEMM_ROW_BLOCK && SUBTILES == 2,

    /* A thread begins with 168 registers of 384 threads', else with 128; what the feed and
     * warpgroups without a role give back the consumers share. */
    FEED_REGISTERS = BLOCK_THREADS == 512 ? 32 : 40,
    SPARE_REGISTERS = 24,
    MATH_REGISTERS = CONSUMERS == 3         ? 160
                     : CONSUMERS == 1       ? 216
                     : BLOCK_THREADS == 512 ? 224
                                            : 232,
};

static_assert(CONSUMERS >= 1 && CONSUMERS <= 3, "register shares are known for these");
static_assert(128 * FEED_REGISTERS + 128 * CONSUMERS * MATH_REGISTERS +
                      (BLOCK_THREADS - 128 * (1 + CONSUMERS)) * SPARE_REGISTERS <=
                  BLOCK_THREADS * (BLOCK_THREADS == 384 ? 168 : 128),
              "a block waits forever for registers that it does not have");
static_assert(COL_BLOCKS == 1 || (TILE_N % COL_GROUP == 0 && TILE_N <= 128 + COL_GROUP),
              "a tile's columns lie in two blocks of B");
static_assert(!GEMM_SHORT || (GEMM_SCALES == GEMM_ROW_BLOCK && PARTIALS == 1),
              "other loops know a stage's addresses");
static_assert(TILE_N / CHUNK_COLS % CHUNKS == 0, "each subtile begins with the oldest chunk");
static_assert(!GEMM_TURNS || (CONSUMERS == 2 && SUBTILES * TILE_N == PLACE_CHUNKS * CHUNK_COLS),
              "a turn is a warpgroup's part of a tile");
static_assert(!GEMM_TURNS || !AGAIN, "rows that are made again wait for places out of turn");
static_assert(SHARED_BYTES <= 232448, "a multiprocessor lends 227 KiB to a block");

#define PTX_BF16    "bf16"
#define PTX_E4M3    "e4m3"
#define PTX_E5M2    "e5m2"
#define WGMMA_NAME  wgmma_step
#define WGMMA_HOLD  hold
#define WGMMA_N     TILE_N
#define WGMMA_TYPES "f32." JOINED(PTX_, GEMM_A) "." JOINED(PTX_, GEMM_B)
#if GEMM_WIDE
#    define WGMMA_SHAPE "m64n" TEXT(TILE_N) "k16"
#    define WGMMA_TAIL  ", 1, 1, 0, 0"
#else
#    define WGMMA_SHAPE "m64n" TEXT(TILE_N) "k32"
#    define WGMMA_TAIL  ", 1, 1"
#endif
#include "cuda/ptx/wgmma_one.h"

/* ---- barriers: the ring of stages, places for results ---- */

/* Every piece of work begins with stage 0, so that the main loop, unrolled over the stages, knows
 * all addresses; but see GEMM_SHORT. Bit s of `phases` is the parity of the phase that stage s is
 * in. */
typedef struct ring {
    uint32_t tiles, scales, barriers; /* shared-window addresses */
    uint32_t phases;
    uint32_t next; /* GEMM_SHORT: the stage that the next piece begins with */
} ring;

static __device__ __forceinline__ uint32_t first_stage(const ring *r) {
    return GEMM_SHORT ? r->next : 0;
}

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
/* Of a warpgroup's place: `staged` completes when its four warps have written it, `written` when
 * they may write it (again). */
static __device__ __forceinline__ uint32_t staged_of(const ring *r, uint32_t warpgroup,
                                                     uint32_t place) {
    return r->barriers + 16 * (STAGES + warpgroup * PLACES + place);
}
/* Where a warpgroup's places begin. */
static __device__ __forceinline__ uint32_t staging_of(uint32_t staging, uint32_t warpgroup) {
    return staging + (GEMM_TURNS ? 0 : warpgroup * (CHUNKS * CHUNK_BYTES));
}
/* Who may write a place that this warpgroup has filled, once that is in D. */
static __device__ __forceinline__ uint32_t next_in_turn(uint32_t warpgroup) {
    return GEMM_TURNS ? 1 - warpgroup : warpgroup;
}
static __device__ __forceinline__ uint32_t written_of(const ring *r, uint32_t warpgroup,
                                                      uint32_t place) {
    return staged_of(r, warpgroup, place) + 8;
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

static __device__ __forceinline__ uint32_t stage_before(uint32_t stage) {
    return stage ? stage - 1 : STAGES - 1;
}
static __device__ __forceinline__ uint32_t stage_after(uint32_t stage) {
    return stage + 1 < STAGES ? stage + 1 : 0;
}

/* ---- where things are ---- */

typedef struct place {
    int32_t rank_m, rank_n; /* of this block in its cluster */
} place;

static __device__ __forceinline__ place place_of(uint32_t rank) {
    place there = {(int32_t)(rank % CLUSTER_M), (int32_t)(rank / CLUSTER_M)};
    return there;
}
static __device__ __forceinline__ place place_make(void) {
    return place_of(CLUSTER > 1 ? ptx_cluster_rank() : 0);
}

/* Whether copies of the block at `from` come to the one at `to`: its own, and what the first block
 * of a row or a column brings for all. */
static __device__ __forceinline__ bool feeds(place from, place to) {
    const bool in_row = from.rank_m == to.rank_m && (from.rank_n == 0 || from.rank_n == to.rank_n);
    const bool in_col = from.rank_n == to.rank_n && (from.rank_m == 0 || from.rank_m == to.rank_m);
    return in_row || in_col;
}
/* Of how many blocks. */
static __device__ __forceinline__ uint32_t blocks_fed(place from) {
    return 1 + (from.rank_n == 0 ? CLUSTER_N - 1 : 0) + (from.rank_m == 0 ? CLUSTER_M - 1 : 0);
}

typedef struct corner {
    int32_t row, col; /* of D: where a block's tile begins */
} corner;

/* A piece of work of this block, as the feed tells it to the consumers. */
typedef struct work {
    corner at;
    int32_t k_begin, k_end; /* equal: there is no more */
} work;

/* What a warpgroup tells its writer. */
enum { CHUNK_NOTHING, CHUNK_STORE, CHUNK_HANDED, CHUNK_END };
typedef struct chunk {
    uint32_t what;
    corner at;          /* CHUNK_STORE: of the 64 rows of D in its place */
    uint32_t to_memory; /* not 0: the place is given back when they are in memory */
} chunk;

/* Piece number i is in pieces[i % 2] before its first stage is full: nobody still reads piece i -
 * 2, for all have given back a stage of piece i - 1. With GEMM_SHORT it is in pieces[its first
 * stage], and all have given that stage back since they read the one before. */
typedef struct shared {
    uint64_t ready; /* a barrier: what follows `pieces` has been told */
    work pieces[GEMM_SHORT ? STAGES : 2];
    bsmm_gpu_epilogue_factors factors; /* of D */
    uint32_t plain;                    /* factors.factor is 1 */
    uint32_t even;                     /* as packing has told of both operands */
    chunk chunks[CONSUMERS][PLACES];
} shared;

static __device__ __forceinline__ void told_factors(const bsmm_wgmma_params *p, shared *told) {
    told->factors = bsmm_gpu_epilogue_begin(&p->whole.epilogue);
    told->plain = told->factors.factor == 1;
    told->even = bsmm_cuda_gate_is_even(&p->gate);
    for (int i = 0; i < CONSUMERS * PLACES; i++)
        told->chunks[i / PLACES][i % PLACES].to_memory = 0;
    ptx_mbarrier_arrive(ptx_shared_address(&told->ready));
}

/* Tiles are walked in bands of group_m cluster tiles of M, down each column of the band, so that
 * the blocks that run at one time read few different rows of A and B. */
static __device__ __forceinline__ corner corner_of(const bsmm_wgmma_params *p, int32_t tile,
                                                   place here) {
    int32_t band = gemm_divide(tile, &p->by_band);
    int32_t first = band * p->group_m;
    int32_t height = min(p->group_m, p->tiles_m - first);
    int32_t inside = tile - first * p->tiles_n;
    int32_t column = height == p->group_m ? gemm_divide(inside, &p->by_group) : inside / height;
    corner at;
    at.row = ((first + inside - column * height) * CLUSTER_M + here.rank_m) * TILE_M;
    at.col = (column * CLUSTER_N + here.rank_n) * TILE_N;
    return at;
}

/* ---- load ---- */

#include "cuda/sm90a/gemm_load.h"

/* ---- multiply ---- */

#include "cuda/sm90a/gemm_multiply.h"

/* ---- promote ---- */

#include "cuda/sm90a/gemm_promote.h"

/* ---- store ---- */

#include "cuda/sm90a/gemm_store.h"

/* ---- the consumers ---- */

#include "cuda/sm90a/gemm_pieces.h"

static __device__ __forceinline__ void consume(const bsmm_wgmma_params *p, ring r, uint32_t staging,
                                               shared *told) {
    consumer c;
    c.p = p;
    c.r = r;
    c.warpgroup = __shfl_sync(0xffffffff, (int32_t)threadIdx.x / 128, 0) - 1;
    c.warp = (int32_t)threadIdx.x % 128 / 32;
    c.lane = (int32_t)threadIdx.x % 32;
    c.a = ptx_wgmma_descriptor(r.tiles + c.warpgroup * (SUBTILES * 64 * K_BYTES));
    c.b = ptx_wgmma_descriptor(r.tiles + A_BYTES);
    c.row_scales = 4 * (c.warpgroup * (SUBTILES * 64) + c.warp * 16 + c.lane / 4);
    c.empty = empty_to_tell(&r, c.lane);
    c.staging = staging_of(staging, (uint32_t)c.warpgroup);
    /* The first one in turn finds its place free, the second waits for the first. */
    c.chunks = GEMM_TURNS && c.warpgroup ? ~0u : 0;
    wait_for(ptx_shared_address(&told->ready), 0);
    c.even = EVENS && __shfl_sync(0xffffffff, told->even, 0);
    if (GEMM_EARLY)
        consume_early(&c, told);
    else
        consume_each(&c, told);
    give_word(&c, told, CHUNK_END);
}

/* ---- the kernel ---- */

#if EVENS
#    include "cuda/sm90a/gemm_otherwise.h"
#endif

static __device__ __forceinline__ void set_up(const bsmm_wgmma_params *p, uint32_t barriers,
                                              const shared *told) {
    for (int i = 0; i < STAGES; i++) {
        ptx_mbarrier_init(barriers + 16 * i, FULL_ARRIVALS);
        ptx_mbarrier_init(barriers + 16 * i + 8,
                          EMPTY_ARRIVALS * CONSUMER_WARPS * blocks_fed(place_make()));
    }
    for (int i = 0; i < CONSUMERS * PLACES; i++) {
        ptx_mbarrier_init(barriers + 16 * (STAGES + i), 4);
        ptx_mbarrier_init(barriers + 16 * (STAGES + i) + 8, 1);
    }
    ptx_mbarrier_init(ptx_shared_address(&told->ready), 1);
    ptx_fence_mbarrier_init();
    ptx_tma_prefetch_map(&p->a);
    ptx_tma_prefetch_map(&p->b);
    if (p->store >= BSMM_WGMMA_STORE_BF16) ptx_tma_prefetch_map(&p->d);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCK_THREADS == 256 ? 2 : 1)
    GEMM_NAME(const __grid_constant__ bsmm_wgmma_params params) {
    extern __shared__ uint8_t memory[];
    __shared__ shared told;
    const bsmm_wgmma_params *p = &params;
    if (GEMM_SCALES == GEMM_UNSCALED && bsmm_cuda_gate_skips(&p->gate)) return;
    /* The same in all lanes, and shuffled so that the compiler knows it: addresses then stay in
     * uniform registers, where wgmma wants its descriptors. */
    uint32_t base = __shfl_sync(0xffffffff, (ptx_shared_address(memory) + 1023) & ~1023u, 0);
    ring r = {base, base + SCALES_AT, base + BARRIERS_AT, 0, 0};
    /* What needs no memory is done while the kernel before this one ends. */
    if (threadIdx.x == 32) set_up(p, r.barriers, &told);
    gemm_schedule s;
    work first;
    if (threadIdx.x < 32 || (SCALES_WARP && threadIdx.x / 32 == 3)) {
        s = gemm_schedule_make(p, (int32_t)blockIdx.x / CLUSTER, (int32_t)gridDim.x / CLUSTER);
        first = next_work(p, place_make(), &s);
    }
    __syncwarp();
    if (CLUSTER > 1) {
        ptx_cluster_arrive();
        ptx_cluster_wait();
    } else {
        __syncthreads();
    }
    ptx_grid_wait();
    ptx_grid_release_next();
    if (!bsmm_cuda_gate_pass(&params.gate)) {
#if EVENS
        work_otherwise(p, memory + (base - ptx_shared_address(memory)));
#endif
        return;
    }
    if (threadIdx.x == 64) told_factors(p, &told);
    if (threadIdx.x < 128) {
        PTX_REGISTERS_LESS(FEED_REGISTERS);
        if (threadIdx.x < 32 && ptx_elect()) feed_tiles(p, r, place_make(), s, first, &told);
        if (SCALES_WARP && threadIdx.x / 32 == 3) feed_scales(p, r, place_make(), s, first);
        if (threadIdx.x % 32 == 0 && threadIdx.x / 32 - 1 < CONSUMERS)
            write_chunks(p, &r, base + STAGING_AT, &told, threadIdx.x / 32 - 1);
    } else if (threadIdx.x < 128 * (1 + CONSUMERS)) {
        PTX_REGISTERS_MORE(MATH_REGISTERS);
        consume(p, r, base + STAGING_AT, &told);
    } else {
        PTX_REGISTERS_LESS(SPARE_REGISTERS);
    }
    /* A block whose shared memory others still write or signal must not end. */
    __syncwarp();
    if (CLUSTER > 1) {
        ptx_cluster_arrive();
        ptx_cluster_wait();
    }
}
