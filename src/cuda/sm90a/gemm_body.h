/* This is the GEMM kernel for sm_90a, which multiplies by wgmma. It computes
 * D = alpha * (A . scales) (B . scales)^T + beta * C + bias. This body serves every element type,
 * kind of scales and tile. An entry of tiles.def provides the macros that the body uses.
 *
 * Both operands are K-major. A k block is 128 bytes of K. FP8 tensor cores keep about 14 bits of an
 * accumulator. Each k block (128 products) therefore starts from accumulators of zero. CUDA cores
 * then multiply the sums of the k block by the block scales and add them to totals in fp32. This
 * step is called promotion. bf16 with fp32 scales is also promoted after each k block (64
 * products). bf16 without scales keeps its accumulators in the tensor cores over all of K. If each
 * element is stored as a sum of several bf16 numbers (parts), a k block multiplies one part of A by
 * one part of B.
 *
 * A work unit is a tile of D and a range of its k blocks (gemm_schedule.h). gemm_tile.h has the
 * layout of shared memory. TMA writes operand tiles with its 128-byte swizzle: rows have 128 bytes,
 * and the 16-byte unit u of row r lies at u ^ (r % 8).
 *
 * Roles of a thread block's threads:
 *
 *     warpgroup 0, warp 0     producer: one thread issues the TMA loads of operands and scales
 *     warpgroup 0, warps 1..  writers: one thread for each consumer issues the TMA stores to D
 *     warpgroup 0, warp 3     if it is no writer, it loads B's block scales
 *     CONSUMERS warpgroups    consumers: multiply, promote and write results to staging buffers
 *     the rest, up to 512     work only if 8-bit floats cannot hold the operands
 *
 * Barriers, shown for two consumers and a ring of four stages. "load s" means that the producer
 * issues the loads of stage s, "mul s" means that wgmma multiplies it, and "pro s" means that its
 * sums are promoted:
 *
 *     time ---------------------------------------------------------------------------------->
 *     producer    load 0, 1, 2, 3 | wait E0        | load 0 | wait E1     | load 1 | ...
 *     copies      ~~~~~~~~ F0 ~~~~~ F1 ~~~~~ F2 ~~~~~ F3         ~~~~~~~~~~~ F0
 *     consumer 0  wait F0 | mul 0        | pro 0 | mul 1      | pro 1 | mul 2 ... | stage | mul 0
 *     consumer 1  wait F0         | mul 0        | pro 0 | mul 1      | pro 1 ...         | stage
 *     empty 0                                E0: both have read stage 0
 *     writer 0                                                      wait S | copy to D | W | ...
 *
 *     F  "full" barrier of a stage: the stage's tiles and scales have arrived in this thread
 *        block, also those that another block of the cluster multicasts. The producer announces
 *        the bytes, TMA counts them, and the consumers wait.
 *     E  "empty" barrier of a stage: every consumer warp has read the stage, in every thread block
 *        to which this block multicasts. The producer waits before it loads the stage again.
 *     S  "staged" barrier of a staging buffer: the four warps of a consumer have written the
 *        buffer. The writer waits.
 *     W  "written" barrier of a staging buffer: the store to D has read the buffer. The consumer
 *        waits before it writes the buffer again.
 *     `ready`: the epilogue's factors are in shared memory. Consumers wait once.
 *
 * While one consumer promotes, the wgmma instructions of another consumer keep the tensor cores
 * busy. A single consumer overlaps its own wgmma instructions with other work only if GEMM_EARLY is
 * set or PARTIALS is 2 (tiles.def).
 *
 * This file and the files that it includes follow a k block through the kernel: constants,
 * barriers, load, multiply, promote, factors, store. The consumers' loops and the kernel come last.
 */
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

#include "cuda/sm90a/gemm_constants.h"

#define PTX_BF16    "bf16"
#define PTX_F16     "f16"
#define PTX_E4M3    "e4m3"
#define PTX_E5M2    "e5m2"
#define WGMMA_NAME  wgmma_step
#define WGMMA_HOLD  hold
#define WGMMA_N     SUM_COLS
#define WGMMA_TYPES "f32." JOINED(PTX_, GEMM_A) "." JOINED(PTX_, GEMM_B)
#if GEMM_WIDE
#    define WGMMA_SHAPE "m64n" TEXT(SUM_COLS) "k16"
#    define WGMMA_TAIL  ", 1, 1, 0, 0"
#else
#    define WGMMA_SHAPE "m64n" TEXT(SUM_COLS) "k32"
#    define WGMMA_TAIL  ", 1, 1"
#endif
#include "cuda/ptx/wgmma_one.h"

/* Describes the ring of stages. A stage is a slot in shared memory for the operand tiles of one k
 * block. The main loop is unrolled over the stages, so the addresses in the loop are constants if
 * every work unit (a tile of D and a range of its k blocks) begins with stage 0. All kernels
 * without GEMM_SHORT do so. GEMM_SHORT is for short K. There, a work unit begins with the stage
 * after the previous work unit's last stage, so that work units with fewer k blocks than stages use
 * all stages too. Bit s of `phases` is the parity of the current phase of stage s. */
typedef struct ring {
    /* `tiles`, `scales` and `barriers` are the shared memory addresses of the first stage's operand
     * tiles, of its scales and of its barriers. */
    uint32_t tiles, scales, barriers;
    uint32_t phases;
    /* `next` is the stage with which the next work unit (a range of k blocks of a tile) begins.
     * Only kernels with GEMM_SHORT use it. */
    uint32_t next;
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
/* Returns the address of the "staged" mbarrier of a warpgroup's staging buffer. The buffer's
 * "written" mbarrier follows in memory. "staged" completes when the warpgroup's four warps have
 * written the buffer. "written" completes when TMA has read the buffer, so that the warps may write
 * it again. */
static __device__ __forceinline__ uint32_t staged_of(const ring *r, uint32_t warpgroup,
                                                     uint32_t buffer) {
    return r->barriers + 16 * (STAGES + warpgroup * STAGING_BUFFERS + buffer);
}
static __device__ __forceinline__ uint32_t staging_of(uint32_t staging, uint32_t warpgroup) {
    return staging + (GEMM_PING_PONG ? 0 : warpgroup * (CHUNKS * CHUNK_BYTES));
}
/* Returns the warpgroup that writes a staging buffer next, after results of the warpgroup
 * `warpgroup` in this buffer have been stored to D. With GEMM_PING_PONG, two warpgroups share a
 * staging buffer and use it alternately. Otherwise each warpgroup has a staging buffer of its own.
 */
static __device__ __forceinline__ uint32_t next_writer(uint32_t warpgroup) {
    return GEMM_PING_PONG ? 1 - warpgroup : warpgroup;
}
static __device__ __forceinline__ uint32_t written_of(const ring *r, uint32_t warpgroup,
                                                      uint32_t buffer) {
    return staged_of(r, warpgroup, buffer) + 8;
}
static __device__ __forceinline__ void wait_empty(const ring *r, uint32_t stage) {
    wait_for(empty_of(r, stage), ~(r->phases >> stage) & 1);
}
/* Returns nonzero if a stage is full. A consumer tests the next stage while it still multiplies the
 * current stage, because that hides the latency of the test. */
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

typedef struct cluster_rank {
    /* `rank_m` and `rank_n` are the coordinates of a thread block in its cluster along M and N. */
    int32_t rank_m, rank_n;
} cluster_rank;

static __device__ __forceinline__ cluster_rank cluster_rank_of(uint32_t rank) {
    cluster_rank there = {(int32_t)(rank % CLUSTER_M), (int32_t)(rank / CLUSTER_M)};
    return there;
}
static __device__ __forceinline__ cluster_rank cluster_rank_here(void) {
    return cluster_rank_of(CLUSTER > 1 ? ptx_cluster_rank() : 0);
}

/* Returns true if thread block `from` loads data for thread block `to` of the same cluster. A block
 * loads its own tiles. The first block of a row or column of the cluster also multicasts to the
 * whole row or column. */
static __device__ __forceinline__ bool loads_for(cluster_rank from, cluster_rank to) {
    const bool in_row = from.rank_m == to.rank_m && (from.rank_n == 0 || from.rank_n == to.rank_n);
    const bool in_col = from.rank_n == to.rank_n && (from.rank_m == 0 || from.rank_m == to.rank_m);
    return in_row || in_col;
}
/* Returns the number of thread blocks of the cluster that receive data from thread block `from`. */
static __device__ __forceinline__ uint32_t receivers_of(cluster_rank from) {
    return 1 + (from.rank_n == 0 ? CLUSTER_N - 1 : 0) + (from.rank_m == 0 ? CLUSTER_M - 1 : 0);
}

typedef struct corner {
    int32_t row, col; /* `row` and `col` are the first row and column of the tile in D. */
} corner;

typedef struct work {
    corner at;
    /* The thread block multiplies k blocks k_begin to k_end - 1 of the tile. A k block is the part
     * of K that one stage holds. If k_begin equals k_end, the thread block has no more work. */
    int32_t k_begin, k_end;
} work;

/* A consumer warpgroup fills staging buffers, and its writer thread copies them to memory. With
 * each staging buffer, the warpgroup sends one of these messages:
 * - CHUNK_NOTHING: do nothing.
 * - CHUNK_STORE: store the buffer to D.
 * - CHUNK_HANDED: set the flag that the accumulators for the next cluster are complete.
 * - CHUNK_END: end. */
enum { CHUNK_NOTHING, CHUNK_STORE, CHUNK_HANDED, CHUNK_END };
typedef struct chunk {
    uint32_t what;
    /* `at` is the row and column of D of the staging buffer's first element. It is used only for
     * CHUNK_STORE. */
    corner at;
    /* `to_memory` is nonzero if the writer thread must wait until the buffer's data has arrived in
     * global memory. If it is 0, the writer thread waits only until TMA has read the buffer. */
    uint32_t to_memory;
} chunk;

/* Holds the static shared memory of a thread block. The producer warp announces each work unit (a
 * tile of D and a range of its k blocks) to the consumers in `units`, before the work unit's first
 * stage is full. A consumer reads the entry before it releases a stage of the work unit.
 *
 * An entry must not be overwritten while a consumer may still read it. Work unit i uses units[i %
 * 2]. When the producer overwrites the entry of work unit i - 2, all consumers have already
 * released a stage of work unit i - 1, so they have read the old entry. With GEMM_SHORT a work unit
 * may begin with any stage s, and uses units[s]. The producer overwrites this entry only after all
 * consumers have released stage s, which they do after they have read the old entry. */
typedef struct shared {
    /* `ready` is an mbarrier that completes when the members after `units` are set. */
    uint64_t ready;
    work units[GEMM_SHORT ? STAGES : 2];
    /* `factors` holds the factors of D's epilogue, such as alpha. */
    bsmm_gpu_epilogue_factors factors;
    /* `plain` is nonzero if the epilogue's factor is 1, so that the kernel can omit the
     * multiplication. */
    uint32_t plain;
    /* `even` is nonzero if each row of A and of B has the same scale along all of K. The kernels
     * that packed A and B found this out. */
    uint32_t even;
    chunk chunks[CONSUMERS][STAGING_BUFFERS];
    /* `power` is the factor by which the epilogue multiplies accumulators, if this is a power of
     * two from 2^-32 to 1. Otherwise it is 0. Packing to f16 multiplies the values of B by a power
     * of two, and the factor undoes this. Only kernels with HALVES (16-bit elements without block
     * scales) use `power`. They multiply by it in fp32, which is exact, and so need no double. */
    float power;
} shared;

/* The fast epilogue multiplies sums in fp32 instead of double. This is exact if the factor is a
 * power of two and the product is not subnormal. Returns `factor` if it is a power of two from
 * 2^-32 to 1, else 0. */
static __device__ __forceinline__ float power_of(double factor) {
    const float power = (float)factor;
    const bool exact = (double)power == factor && !(__float_as_uint(power) & 0x7fffff);
    return exact && power >= 0x1p-32f && power <= 1 ? power : 0;
}

/* Returns true if each row of A and of B has one scale for all of K, so that the kernel can use the
 * faster loop, which multiplies only complete sums by scales. For a packed operand, the header's
 * flag UNEVEN tells it. In kernels of the kind ROW, A may be read as it is stored. Then a_rows_step
 * is 0 if each row of A has one scale. */
static __device__ __forceinline__ bool is_even(const bsmm_wgmma_params *p) {
    if (!EVENS) return false;
    if (FALLS_BACK) return bsmm_cuda_gate_is_even(&p->gate);
    const bool packed = p->gate.when == BSMM_WHEN_FITS && p->gate.b;
    return packed && p->a_rows_step == 0 && !(p->gate.b->flags & BSMM_PACK_UNEVEN);
}

static __device__ __forceinline__ void told_factors(const bsmm_wgmma_params *p, shared *told) {
    told->factors = bsmm_gpu_epilogue_begin(&p->whole.epilogue);
    told->plain = told->factors.factor == 1;
    if (HALVES) told->power = power_of(told->factors.factor);
    told->even = is_even(p);
    for (int i = 0; i < CONSUMERS * STAGING_BUFFERS; i++)
        told->chunks[i / STAGING_BUFFERS][i % STAGING_BUFFERS].to_memory = 0;
    ptx_mbarrier_arrive(ptx_shared_address(&told->ready));
}

/* Returns the row and column of D at which this thread block's part of cluster tile number `tile`
 * begins. D is divided into bands of group_m cluster tiles along M. Tiles are numbered band by
 * band, and in a band column by column from top to bottom. Clusters that run at the same time have
 * adjacent numbers. They therefore read few different rows of A and B, and most of these reads hit
 * in L2. */
static __device__ __forceinline__ corner corner_of(const bsmm_wgmma_params *p, int32_t tile,
                                                   cluster_rank here) {
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

#include "cuda/sm90a/gemm_load.h"

#include "cuda/sm90a/gemm_multiply.h"

#include "cuda/sm90a/gemm_promote.h"

#include "cuda/sm90a/gemm_factors.h"

#include "cuda/sm90a/gemm_store.h"

#include "cuda/sm90a/gemm_pieces.h"

static __device__ __forceinline__ void consume(const bsmm_wgmma_params *p, ring r, uint32_t staging,
                                               shared *told) {
    consumer c;
    c.p = p;
    c.r = r;
    c.warpgroup = __shfl_sync(0xffffffff, (int32_t)threadIdx.x / 128, 0) - 1;
    c.warp = (int32_t)threadIdx.x % 128 / 32;
    c.lane = (int32_t)threadIdx.x % 32;
    c.a = ptx_wgmma_descriptor(r.tiles + c.warpgroup * (64 * K_BYTES));
    c.b = ptx_wgmma_descriptor(r.tiles + A_BYTES);
    c.row_scales = 4 * (c.warpgroup * 64 + c.warp * 16 + c.lane / 4);
    c.empty = empty_to_tell(&r, c.lane);
    c.staging = staging_of(staging, (uint32_t)c.warpgroup);
    /* A warpgroup waits until its previous results in staging buffer i have been stored, before it
     * writes the buffer again. It waits for the phase of the buffer's mbarrier whose parity is the
     * complement of bit i of `chunks`. At the beginning the bits are 0, and the wait for parity 1
     * ends at once. With GEMM_PING_PONG, two warpgroups use one staging buffer alternately. The
     * bits of the second warpgroup begin as 1, so that it waits until the results of the first
     * warpgroup have been stored. */
    c.chunks = GEMM_PING_PONG && c.warpgroup ? ~0u : 0;
    wait_for(ptx_shared_address(&told->ready), 0);
    c.even = EVENS && __shfl_sync(0xffffffff, told->even, 0);
    if (GEMM_EARLY)
        consume_early(&c, told);
    else
        consume_each(&c, told);
    give_word(&c, told, CHUNK_END);
}

#if FALLS_BACK
#    include "cuda/sm90a/gemm_otherwise.h"
#elif HALVES
#    include "cuda/sm80/pack_again.h"
#    include "cuda/sm80/pack_parts.h"

/* Prepares the fallback of this f16 kernel. It is called if f16 does not hold the values of B. The
 * kernel that is queued next then computes the product from bf16 operands. For this kernel, the
 * function splits each element of A into two bf16 parts, and packs B to bf16. If B was packed in
 * advance and is bf16 already, it is left as it is. */
static __device__ __forceinline__ void prepare_parts(const bsmm_wgmma_params *p) {
    split_halves(&p->plain[0].job);
    if (p->plain[1].job.elements) pack_again(&p->plain[1]);
}

/* Returns true if f16 holds the packed values of B (the condition BSMM_WHEN_HALF). Also resets
 * *gate->closed to 0 for the kernels that are queued next, so that no other kernel has to clear it.
 */
static __device__ __forceinline__ bool holds_half(const bsmm_cuda_gate *gate) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *gate->closed = 0;
    return bsmm_pack_is_half(gate->b, gate->shift);
}
#endif

/* Returns true if this kernel must compute the product. If it returns false, it has already run the
 * fallback of this kernel, if there is one. `shared` is the address of shared memory for the
 * fallback. */
static __device__ __forceinline__ bool is_mine(const bsmm_wgmma_params *p, uint8_t *shared) {
#if HALVES
    if (p->gate.when == BSMM_WHEN_HALF) {
        const bool holds = holds_half(&p->gate);
        if (!holds) prepare_parts(p);
        return holds;
    }
#endif
    /* The kernel has already waited for the previous kernel, so the gate need not wait again. */
    if (p->gate.when == BSMM_WHEN_ALWAYS && !p->gate.only) return true;
    const bool open = bsmm_cuda_gate_pass(&p->gate);
#if FALLS_BACK
    if (!open) work_otherwise(p, shared);
#endif
    return open;
}

/* Initializes the thread block's mbarriers and prefetches the tensor maps. One thread does this,
 * and its loops are not unrolled, because the start of a kernel waits for its instructions. With
 * unrolled loops (128, 3072, 1536) takes 1% longer on an H200, and 7% longer if each lane of a warp
 * initializes the mbarriers of one stage. */
static __device__ __forceinline__ void set_up(const bsmm_wgmma_params *p, uint32_t barriers,
                                              const shared *told) {
#pragma unroll 1
    for (int i = 0; i < STAGES; i++) {
        ptx_mbarrier_init(barriers + 16 * i, FULL_ARRIVALS);
        ptx_mbarrier_init(barriers + 16 * i + 8,
                          EMPTY_ARRIVALS * CONSUMER_WARPS * receivers_of(cluster_rank_here()));
    }
#pragma unroll 1
    for (int i = 0; i < CONSUMERS * STAGING_BUFFERS; i++) {
        ptx_mbarrier_init(barriers + 16 * (STAGES + i), 4);
        ptx_mbarrier_init(barriers + 16 * (STAGES + i) + 8, 1);
    }
    ptx_mbarrier_init(ptx_shared_address(&told->ready), 1);
    ptx_fence_mbarrier_init();
    ptx_tma_prefetch_map(&p->a);
    ptx_tma_prefetch_map(&p->b);
    if (p->store >= BSMM_WGMMA_STORE_E4M3) ptx_tma_prefetch_map(&p->d);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCK_THREADS == 256 ? 2 : 1)
    GEMM_NAME(const __grid_constant__ bsmm_wgmma_params params) {
    extern __shared__ uint8_t memory[];
    __shared__ shared told;
    const bsmm_wgmma_params *p = &params;
    if (GEMM_SCALES == GEMM_UNSCALED && bsmm_cuda_gate_skips(&p->gate)) return;
    /* wgmma requires its descriptors in uniform registers, which hold one value for all lanes of a
     * warp. The address is the same in all lanes, but the compiler does not know this. The shuffle
     * makes it known, so that the compiler keeps addresses in uniform registers. */
    uint32_t base = __shfl_sync(0xffffffff, (ptx_shared_address(memory) + 1023) & ~1023u, 0);
    ring r = {base, base + SCALES_AT, base + BARRIERS_AT, 0, 0};
    /* The code from here to ptx_grid_wait reads no memory that earlier kernels write, so it
     * overlaps with the end of the previous kernel. */
    if (threadIdx.x == 32) set_up(p, r.barriers, &told);
    gemm_schedule s;
    work first;
    if (threadIdx.x < 32 || (SCALES_WARP && threadIdx.x / 32 == 3)) {
        s = gemm_schedule_make(p, (int32_t)blockIdx.x / CLUSTER, (int32_t)gridDim.x / CLUSTER);
        first = next_work(p, cluster_rank_here(), &s);
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
    if (!is_mine(p, memory + (base - ptx_shared_address(memory)))) return;
    if (threadIdx.x < 128) {
        PTX_REGISTERS_LESS(PRODUCER_REGISTERS);
        if (threadIdx.x < 32 && ptx_elect())
            produce_tiles(p, r, cluster_rank_here(), s, first, &told);
        if (SCALES_WARP && threadIdx.x / 32 == 3)
            produce_scales(p, r, cluster_rank_here(), s, first);
        /* The loads of told_factors come after PTX_REGISTERS_LESS, for which the producer would
         * otherwise have to wait for them. */
        if (threadIdx.x == 64) told_factors(p, &told);
        if (threadIdx.x % 32 == 0 && threadIdx.x / 32 - 1 < CONSUMERS)
            write_chunks(p, &r, base + STAGING_AT, &told, threadIdx.x / 32 - 1);
    } else if (threadIdx.x < 128 * (1 + CONSUMERS)) {
        PTX_REGISTERS_MORE(MATH_REGISTERS);
        consume(p, r, base + STAGING_AT, &told);
    } else {
        PTX_REGISTERS_LESS(SPARE_REGISTERS);
    }
    /* A thread block must not exit while other blocks of its cluster still write to its shared
     * memory or signal its barriers. */
    __syncwarp();
    if (CLUSTER > 1) {
        ptx_cluster_arrive();
        ptx_cluster_wait();
    }
}
