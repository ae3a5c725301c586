/* The kernel for block-scaled GEMMs on Blackwell (sm_100f): D = alpha * (A . scales) (B . scales)^T
 * + beta * C + bias. The instruction tcgen05.mma multiplies elements and block scales in their
 * stored formats. A file that includes this body defines these macros:
 *
 *     SCALED_NAME    the kernel's name
 *     SCALED_KIND    the kind of tcgen05.mma, as a string
 *     SCALED_BLOCK   the elements of K with the same scale, 16 or 32
 *     SCALED_PACKED  1: elements have 4 bits, and shared memory holds them without gaps.
 *                    0: an element takes a byte of shared memory; elements of 4 and 6 bits are
 *                    spread by TMA.
 *     SCALED_SIGNED  1: scales are e4m3. tcgen05 ignores their sign, so a warp looks for signs.
 *
 * Thread blocks are persistent: each computes the tiles blockIdx.x, blockIdx.x + gridDim.x, and so
 * on. A tile of D has 128 x 192 results. A k block is the 128 bytes of a row's elements that one
 * stage holds, i.e. four tcgen05.mma.
 *
 * Roles of a thread block's warps:
 *
 *     warps 0 to 3   finish: read accumulators from tensor memory, and store D
 *     warp 4         load: one thread issues TMA copies of elements and bulk copies of scales
 *     warp 5         multiply: one thread copies scales to tensor memory and issues the products
 *     warp 6         only if SCALED_SIGNED: looks for scales with a sign
 *
 * Barriers, shown for a ring of four stages and two k blocks per tile. "load s" means that a thread
 * issues the copies to stage s. "mul s" means that a thread issues the copies of the stage's scales
 * to tensor memory and its tcgen05.mma. The barriers are explained below:
 *
 *     time -------------------------------------------------------------------------------->
 *     load      load 0, 1, 2, 3 | wait E0   | load 0 | wait E1 | load 1 | ...
 *     copies    ~~~~~~ F0 ~~~~~ F1 ~~~~~ F2 ~~~~~ F3      ~~~~~~~~~~ F0
 *     multiply  wait F0 | mul 0 | wait F1 | mul 1 | wait F2 | mul 2 | wait F3 | mul 3 | wait A0
 *     products          ~~~~~~~~~ E0 ~~~~~~~~ E1, D0 ~~~~~~~~~~ E2 ~~~~~~~~~ E3, D1
 *     finish    wait D0                           | read D0, A0, store  | wait D1 | read D1, A1
 *
 *     F  "full" barrier of a stage: its elements and scales have arrived. The loading thread
 *        announces the bytes, the copies count them, and the multiplying thread waits.
 *     E  "empty" barrier of a stage: the products have read the stage (tcgen05.commit), and if
 *        SCALED_SIGNED, warp 6 has. The loading thread waits before it loads the stage again.
 *     D  "done" barrier of an accumulator: all products of the tile have completed. Warps 0 to 3
 *        wait.
 *     A  "available" barrier of an accumulator: warps 0 to 3 have read it. The multiplying thread
 *        waits before it overwrites the accumulator. It meanwhile fills the other one.
 *
 * tcgen05.cp and the tcgen05.mma after it run in the order of issue, but a later tcgen05.cp may
 * overtake an earlier tcgen05.mma. The scales therefore alternate between two sets of columns, and
 * the multiplying thread waits for E of the k block before the last before it overwrites a set.
 *
 * The order of this file is the path of a k block: constants, barriers, load, multiply, store. The
 * kernel comes last. */
#include "cuda/ptx/address.h"
#include "cuda/ptx/bulk.h"
#include "cuda/ptx/grid.h"
#include "cuda/ptx/mbarrier.h"
#include "cuda/ptx/tcgen05.h"
#include "cuda/ptx/tma.h"
#include "cuda/sm100f/scaled_params.h"
#include "gpu/bands.h"

enum {
    TILE_M = BSMM_SCALED_TILE_M,
    TILE_N = BSMM_SCALED_TILE_N,
    ROW_BYTES = BSMM_SCALED_ROW_BYTES,
    /* the number of tcgen05.mma instructions for a k block; each multiplies 32 bytes of each row */
    STEPS = 4,
    /* The numbers of elements along K that a k block has, and that one tcgen05.mma multiplies. */
    BLOCK_K = SCALED_PACKED ? 2 * ROW_BYTES : ROW_BYTES,
    STEP_K = BLOCK_K / STEPS,
    STEP_SCALES = STEP_K / SCALED_BLOCK,
    SCALE_TILE = BSMM_SCALED_SCALE_TILE,
    SCALE_ROWS = BSMM_SCALED_SCALE_ROWS,
    /* the tiles of 4 scales along K that a stage holds for each 128 rows */
    SCALE_TILES = STEPS * STEP_SCALES / 4,
    STAGES = SCALE_TILES == 1 ? 5 : 4,
    A_BYTES = TILE_M * ROW_BYTES,
    B_BYTES = TILE_N * ROW_BYTES,
    /* A tile of D has 192 columns, i.e. rows of B, which begin at a multiple of 64. They lie in two
     * blocks of 128 rows of B. */
    B_ROW_BLOCKS = 2,
    SCALE_BYTES = (1 + B_ROW_BLOCKS) * SCALE_TILES * SCALE_TILE,
    CHUNK = BSMM_SCALED_CHUNK,
    THREADS = SCALED_SIGNED ? BSMM_SCALED_THREADS_SIGNED : BSMM_SCALED_THREADS,
    FINISH_WARPS = 4,
    LOAD_WARP = 4,
    MULTIPLY_WARP = 5,
    SIGN_WARP = 6,
    /* The use of the columns of tensor memory: two accumulators come first, then two sets of
     * scales. The scales of 128 rows by 4 scale blocks along K take four columns. */
    COLUMNS = 512,
    SCALES_AT = 2 * TILE_N,
    A_SCALE_COLUMNS = 4 * SCALE_TILES,
    SCALE_COLUMNS = A_SCALE_COLUMNS * (1 + B_ROW_BLOCKS),
};
static_assert(SCALES_AT + 2 * SCALE_COLUMNS <= COLUMNS, "tensor memory");
static_assert(BSMM_SCALED_SHARED(STAGES, SCALE_TILES) <= 227 * 1024, "shared memory");

typedef struct shared {
    uint64_t full[STAGES], empty[STAGES], done[2], available[2];
    uint32_t columns; /* the address of the allocated columns of tensor memory */
    /* for each of the two accumulators: nonzero if a scale of its tile is negative */
    uint32_t negative[2];
    /* For each row of B in the tile: whether all of its elements are 0, as far as a warp knows it
     * (ZERO_UNKNOWN, ZERO_YES or ZERO_NO). */
    uint8_t zero_columns[FINISH_WARPS][TILE_N];
    /* whether the elements of each row of A in the tile are 0 (ZERO_*) */
    uint8_t zero_rows[TILE_M];
    bsmm_gpu_epilogue_factors factors[FINISH_WARPS];
} shared;

/* These functions return the addresses of the parts of dynamic shared memory. The parts that TMA
 * reads or writes with a swizzle begin at multiples of 1024 bytes, as the swizzle requires. */
static __device__ __forceinline__ uint32_t a_of(uint32_t base, uint32_t stage) {
    return base + stage * A_BYTES;
}
static __device__ __forceinline__ uint32_t b_of(uint32_t base, uint32_t stage) {
    return base + STAGES * A_BYTES + stage * B_BYTES;
}
static __device__ __forceinline__ uint32_t staging_of(uint32_t base) {
    return base + STAGES * (A_BYTES + B_BYTES);
}
/* A stage holds the scales of A, then those of B's first 128 rows, then those of B's next 128
 * rows. */
static __device__ __forceinline__ uint32_t scales_of(uint32_t base, uint32_t stage) {
    return base + STAGES * (A_BYTES + B_BYTES) + BSMM_SCALED_STAGING + stage * SCALE_BYTES;
}

static __device__ __forceinline__ void wait_for(const uint64_t *barrier, uint32_t parity) {
    while (!ptx_mbarrier_try_wait(ptx_shared_address(barrier), parity)) {
    }
}

/* These functions return the parity for which a thread waits at a barrier. `count` is the number of
 * k blocks, or of tiles, that the thread block has begun before. A wait for the phase before a
 * barrier's first one returns at once. */
static __device__ __forceinline__ uint32_t filled_parity(uint32_t count) {
    return count / STAGES & 1;
}
static __device__ __forceinline__ uint32_t emptied_parity(uint32_t count) {
    return ~(count / STAGES) & 1;
}

static __device__ __forceinline__ void set_up(shared *told) {
    for (int i = 0; i < STAGES; i++) {
        ptx_mbarrier_init(ptx_shared_address(&told->full[i]), 1);
        ptx_mbarrier_init(ptx_shared_address(&told->empty[i]), 1 + SCALED_SIGNED);
    }
    for (int i = 0; i < 2; i++) {
        ptx_mbarrier_init(ptx_shared_address(&told->done[i]), 1 + SCALED_SIGNED);
        ptx_mbarrier_init(ptx_shared_address(&told->available[i]), FINISH_WARPS);
    }
    ptx_fence_mbarrier_init();
}

/* The first row and column of a tile of D. */
typedef struct corner {
    uint32_t row, col;
} corner;

static __device__ __forceinline__ corner tile_at(const bsmm_scaled_params *p, uint32_t tile) {
    const bsmm_gpu_tile at = bsmm_gpu_tile_at(tile, p->group_m, p->tiles_m, p->tiles_n);
    return (corner){at.m * TILE_M, at.n * TILE_N};
}

/* Returns the number of tiles of 4 scales along K that k block `block` has. The last k block may
 * have fewer than the others. */
static __device__ __forceinline__ uint32_t scale_tiles_of(const bsmm_scaled_params *p,
                                                          uint32_t block) {
    return min((uint32_t)SCALE_TILES, p->scale_tiles - block * SCALE_TILES);
}

/* Returns the block of 128 rows to which part `i` of a stage's scales belongs. Part 0 belongs to A,
 * and parts 1 and 2 belong to B. If B has no second block of rows there, the function returns the
 * first one again, because that is cheaper than a branch. The results of these rows are not
 * stored. */
static __device__ __forceinline__ uint32_t scale_rows_of(const bsmm_scaled_params *p, corner at,
                                                         uint32_t i) {
    return i == 0 ? at.row / SCALE_ROWS : min(at.col / SCALE_ROWS + i - 1, p->b_row_blocks - 1);
}

static __device__ __forceinline__ void load_scales(const bsmm_scaled_params *p, uint32_t to,
                                                   corner at, uint32_t block, uint32_t barrier) {
    const uint32_t bytes = scale_tiles_of(p, block) * SCALE_TILE;
    const uint64_t along = (uint64_t)block * SCALE_TILES;
#pragma unroll
    for (uint32_t i = 0; i < 1 + B_ROW_BLOCKS; i++) {
        const uint64_t first = scale_rows_of(p, at, i) * (uint64_t)p->scale_tiles + along;
        ptx_bulk_copy(to + i * SCALE_TILES * SCALE_TILE, p->scales[i > 0] + first * SCALE_TILE,
                      bytes, barrier);
    }
}

static __device__ __forceinline__ void load_tiles(const bsmm_scaled_params *p, uint32_t base,
                                                  shared *told) {
    uint32_t count = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x) {
        const corner at = tile_at(p, tile);
        for (uint32_t block = 0; block < p->k_blocks; block++, count++) {
            const uint32_t stage = count % STAGES, full = ptx_shared_address(&told->full[stage]);
            wait_for(&told->empty[stage], emptied_parity(count));
            ptx_mbarrier_arrive_expect(full, p->element_bytes + (1 + B_ROW_BLOCKS) * SCALE_TILE *
                                                                    scale_tiles_of(p, block));
            ptx_tma_load(a_of(base, stage), &p->a, (int32_t)(block * ROW_BYTES), (int32_t)at.row,
                         full);
            ptx_tma_load(b_of(base, stage), &p->b, (int32_t)(block * ROW_BYTES), (int32_t)at.col,
                         full);
            load_scales(p, scales_of(base, stage), at, block, full);
        }
    }
}

/* Copies the scales of a stage from shared memory to columns of tensor memory. For each tile of 4
 * scales along K, A's scales take 4 columns, and B's scales take 8 columns. */
static __device__ __forceinline__ void copy_scales(uint32_t to, uint32_t from, uint32_t tiles) {
    for (uint32_t t = 0; t < tiles; t++) {
        ptx_tcgen05_copy_32x128b(to + 4 * t, ptx_tcgen05_rows_16(from + t * SCALE_TILE));
#pragma unroll
        for (uint32_t i = 0; i < B_ROW_BLOCKS; i++)
            ptx_tcgen05_copy_32x128b(
                to + A_SCALE_COLUMNS + 4 * (t * B_ROW_BLOCKS + i),
                ptx_tcgen05_rows_16(from + ((1 + i) * SCALE_TILES + t) * SCALE_TILE));
    }
}

/* Issues the tcgen05.mma instructions of a k block. Instruction `step` needs the scales that begin
 * at scale number `first` of the k block. These scales are byte first % 4 of the columns of scale
 * tile first / 4. `shift` is 2 if B's rows begin in the middle of a block of 128 rows, whose scales
 * lie two columns later, else 0. */
static __device__ __forceinline__ void multiply(const bsmm_scaled_params *p, uint32_t d,
                                                uint32_t scales, uint32_t a, uint32_t b,
                                                uint32_t shift, uint32_t left, uint32_t adds) {
    const uint64_t a_rows = ptx_tcgen05_rows_128(a), b_rows = ptx_tcgen05_rows_128(b);
#pragma unroll
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t first = step * STEP_SCALES, tile = first / 4, number = first % 4;
        if (step * STEP_K >= left) break;
        PTX_TCGEN05_MMA_SCALED(SCALED_KIND, d, a_rows + 2 * step, b_rows + 2 * step,
                               p->form | number << 4 | number << 29, scales + 4 * tile,
                               scales + A_SCALE_COLUMNS + 4 * B_ROW_BLOCKS * tile + shift,
                               adds | step);
    }
}

static __device__ __forceinline__ void multiply_tiles(const bsmm_scaled_params *p, uint32_t base,
                                                      shared *told) {
    uint32_t count = 0, number = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x, number++) {
        const uint32_t which = number & 1, d = told->columns + which * TILE_N,
                       shift = tile_at(p, tile).col % SCALE_ROWS / 32;
        wait_for(&told->available[which], ~(number / 2) & 1);
        for (uint32_t block = 0; block < p->k_blocks; block++, count++) {
            const uint32_t stage = count % STAGES,
                           scales = told->columns + SCALES_AT + (count & 1) * SCALE_COLUMNS;
            if (count >= 2) wait_for(&told->empty[(count - 2) % STAGES], filled_parity(count - 2));
            wait_for(&told->full[stage], filled_parity(count));
            ptx_tcgen05_fence_after();
            copy_scales(scales, scales_of(base, stage), scale_tiles_of(p, block));
            multiply(p, d, scales, a_of(base, stage), b_of(base, stage), shift,
                     p->k - block * BLOCK_K, block);
            ptx_tcgen05_commit(ptx_shared_address(&told->empty[stage]));
        }
        ptx_tcgen05_commit(ptx_shared_address(&told->done[which]));
    }
}

/* Looks for negative e4m3 scales in one block of 128 rows. In each scale tile, a lane tests the 16
 * bytes that hold the scales of the four rows r, r + 32, r + 64 and r + 96. The result is nonzero
 * if the lane has found a negative scale. The scales of rows from `rows` on are padding and are
 * ignored. */
static __device__ __forceinline__ uint32_t signs_of(const uint8_t *scales, uint32_t tiles,
                                                    uint32_t rows) {
    const uint32_t lane = threadIdx.x % 32;
    uint32_t found = 0;
    for (uint32_t t = 0; t < tiles; t++) {
        const uint4 w = *(const uint4 *)(scales + t * SCALE_TILE + lane * 16);
        found |= (lane < rows ? w.x : 0) | (lane + 32 < rows ? w.y : 0) |
                 (lane + 64 < rows ? w.z : 0) | (lane + 96 < rows ? w.w : 0);
    }
    return found & 0x80808080u;
}

static __device__ __forceinline__ void find_signs(const bsmm_scaled_params *p,
                                                  const uint8_t *scales, shared *told) {
    uint32_t count = 0, number = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x, number++) {
        const uint32_t which = number & 1;
        const corner at = tile_at(p, tile);
        uint32_t found = 0;
        wait_for(&told->available[which], ~(number / 2) & 1);
        for (uint32_t block = 0; block < p->k_blocks; block++, count++) {
            const uint32_t stage = count % STAGES;
            wait_for(&told->full[stage], filled_parity(count));
#pragma unroll
            for (uint32_t i = 0; i < 1 + B_ROW_BLOCKS; i++)
                found |= signs_of(scales + stage * SCALE_BYTES + i * SCALE_TILES * SCALE_TILE,
                                  scale_tiles_of(p, block),
                                  (i ? p->n : p->m) - scale_rows_of(p, at, i) * SCALE_ROWS);
            __syncwarp();
            if (threadIdx.x % 32 == 0) ptx_mbarrier_arrive(ptx_shared_address(&told->empty[stage]));
        }
        found = __any_sync(0xffffffffu, found != 0);
        if (threadIdx.x % 32 == 0) {
            told->negative[which] = found;
            ptx_mbarrier_arrive(ptx_shared_address(&told->done[which]));
        }
    }
}

#include "cuda/sm100f/scaled_finish.h"

static __device__ __forceinline__ void finish_tiles(const bsmm_scaled_params *p, uint8_t *staging,
                                                    shared *told) {
    finish f = finish_make(p, staging, told);
    uint32_t number = 0;
    for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x, number++) {
        const uint32_t which = number & 1, from = told->columns + which * TILE_N;
        const corner at = tile_at(p, tile);
        wait_for(&told->done[which], number / 2 & 1);
        ptx_tcgen05_fence_after();
        finish_begin(&f, at, SCALED_SIGNED && told->negative[which]);
        for (uint32_t col = 0; col < TILE_N; col += CHUNK) {
            uint32_t bits[CHUNK];
            ptx_tcgen05_load_x32(from + (f.warp * 32 << 16) + col, bits);
            ptx_tcgen05_wait_loads();
            if (col == TILE_N - CHUNK) {
                ptx_tcgen05_fence_before();
                __syncwarp();
                if (f.lane == 0) ptx_mbarrier_arrive(ptx_shared_address(&told->available[which]));
            }
            if (at.col + col < p->n) finish_chunk(&f, bits, at.col + col);
        }
    }
    if (f.lane == 0) PTX_TMA_WAIT(0);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    SCALED_NAME(const __grid_constant__ bsmm_scaled_params params) {
    extern __shared__ uint8_t memory[];
    __shared__ shared told;
    const bsmm_scaled_params *p = &params;
    const uint32_t warp = threadIdx.x / 32, base = (ptx_shared_address(memory) + 1023) & ~1023u;
    uint8_t *const aligned = memory + (base - ptx_shared_address(memory));
    if (threadIdx.x == 0) set_up(&told);
    if (warp == MULTIPLY_WARP) {
        ptx_tcgen05_alloc(ptx_shared_address(&told.columns), COLUMNS);
        ptx_tcgen05_relinquish();
    }
    ptx_tcgen05_fence_before();
    __syncthreads();
    ptx_tcgen05_fence_after();
    /* The code above reads no memory that earlier kernels write, so it overlaps with the end of the
     * previous kernel. */
    ptx_grid_wait();
    ptx_grid_release_next();
    if (warp < FINISH_WARPS)
        finish_tiles(p, aligned + (staging_of(base) - base), &told);
    else if (warp == LOAD_WARP && ptx_elect())
        load_tiles(p, base, &told);
    else if (warp == MULTIPLY_WARP && ptx_elect())
        multiply_tiles(p, base, &told);
    else if (warp == SIGN_WARP)
        find_signs(p, aligned + (scales_of(base, 0) - base), &told);
    __syncwarp();
    ptx_tcgen05_fence_before();
    __syncthreads();
    ptx_tcgen05_fence_after();
    if (warp == MULTIPLY_WARP) ptx_tcgen05_dealloc(told.columns, COLUMNS);
}
