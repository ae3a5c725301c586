/* This is the kernel for block-scaled products on sm_120 and sm_121 (RTX 50, DGX Spark), i.e. for
 * D = alpha * (A . scales) (B . scales)^T + beta * C + bias. The instruction mma.sync applies the
 * block scales to elements as they are stored. Each entry of tiles.def becomes a file that defines
 * these macros and includes this body:
 *
 *     SCALED_NAME    the kernel's name
 *     SCALED_BLOCK   the elements of K with the same scale, 16 or 32
 *     SCALED_PACKED  1: elements have 4 bits, and shared memory holds them without gaps. 0: an
 *                    element takes a byte of shared memory, and its type may be any of
 *                    bsmm_sm120_type.
 *     SCALED_SIGNED  1: scales are e4m3. mma.sync ignores their sign, so the kernel looks for
 *                    negative scales.
 *     SCALED_FORM    the form of mma.sync as a string, if SCALED_PACKED is 1
 *
 * A thread block computes a tile of 128 x 128 results. It has 8 warps in a 2 x 4 grid, and a warp
 * computes 64 x 32 of them. A k block is the part of K that one stage holds, i.e. 128 bytes of each
 * row. There are two stages:
 *
 *     load block 0 -> stage 0 | load 1, multiply 0, store 1 -> stage 1 | load 2, multiply 1, ...
 *                          barrier                                 barrier
 *
 * "load" reads elements and scales of the next k block from global memory to registers, while the
 * tensor cores multiply. "store" writes these registers to the other stage. One barrier for each k
 * block is enough: a stage is written again only after the barrier that follows its last read.
 *
 * In shared memory, a stage has 128 rows of A and 128 rows of B of 128 bytes each. The 16-byte unit
 * u of row r is at index u ^ (r % 8) of the row, so that ldmatrix has no bank conflicts. The
 * words of scales follow as [row][scale tile]. At the end, the accumulators overwrite the stages.
 */
#include "cuda/ptx/address.h"
#include "cuda/ptx/grid.h"
#include "cuda/ptx/mma_scaled.h"
#include "cuda/sm120f/scaled_params.h"
#include "gpu/bands.h"

/* The definitions from here on are the kernel's constants. */

enum {
    TILE = BSMM_SM120_TILE,
    ROWS = 2 * TILE, /* ROWS is the number of rows of A and of B in a tile. */
    ROW_BYTES = BSMM_SM120_ROW_BYTES,
    THREADS = BSMM_SM120_THREADS,
    /* STEPS is the number of steps in a k block. Each step multiplies 32 bytes of each row. */
    STEPS = 4,
#if SCALED_PACKED
    BLOCK_K = 2 * ROW_BYTES,
#else
    BLOCK_K = ROW_BYTES,
#endif
    STEP_SCALES = BLOCK_K / STEPS / SCALED_BLOCK,
    /* SCALE_TILES is the number of scale tiles (of 4 scales) along K in a k block. */
    SCALE_TILES = BSMM_SM120_SCALE_TILES(SCALED_BLOCK, SCALED_PACKED),
    STAGE_BYTES = BSMM_SM120_SHARED(SCALED_BLOCK, SCALED_PACKED) / BSMM_SM120_STAGES,
    WARP_ROWS = 64, /* WARP_ROWS is the number of rows and columns of D per warp. */
    WARP_COLS = 32,
    /* ROW_TILES and COL_TILES count the instructions mma.sync down and across a warp's results. One
     * instruction computes 16 x 8 results. */
    ROW_TILES = WARP_ROWS / 16,
    COL_TILES = WARP_COLS / 8
};
static_assert(4 * SCALE_TILES == STEPS * STEP_SCALES, "scales of a k block");
static_assert(ROWS == THREADS, "a thread loads the scales of one row");
static_assert(TILE * TILE * 4 <= 2 * STAGE_BYTES, "accumulators");

/* Holds what the threads of a block find out about the operands of a tile while they load it. The
 * struct lies in shared memory. */
typedef struct findings {
    /* `nonzero` has one entry for each row of A and B. An entry is nonzero if its row has a nonzero
     * element. */
    uint32_t nonzero[ROWS];
    uint32_t negative; /* `negative` is nonzero if a scale is negative. */
} findings;

#include "cuda/sm120f/scaled_stage.h"

/* The functions from here on multiply the operands of a stage. */

/* Holds the fragments of A and B for one step, in the register layout of mma.sync. */
typedef struct fragments {
    uint32_t a[ROW_TILES][4], b[COL_TILES][2];
    uint32_t a_scales[ROW_TILES], b_scales[COL_TILES];
} fragments;

static __device__ __forceinline__ void multiply_step(uint32_t pair, const fragments *f,
                                                     float (*sums)[COL_TILES][4]) {
#define MULTIPLY(FORM)                                                                             \
    _Pragma("unroll") for (int m = 0; m < ROW_TILES; m++)                                          \
        _Pragma("unroll") for (int n = 0; n < COL_TILES; n++)                                      \
            PTX_MMA_SCALED(FORM, sums[m][n], f->a[m], f->b[n], f->a_scales[m], f->b_scales[n])
#if SCALED_PACKED
    (void)pair;
    MULTIPLY(SCALED_FORM);
#else
#    define CASE(A, B, a, b)                                                                       \
    case 4 * BSMM_SM120_##A + BSMM_SM120_##B:                                                      \
        MULTIPLY("m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32." a "." b          \
                 ".f32.ue8m0");                                                                    \
        break;
#    define CASES(A, a)                                                                            \
        CASE(A, E4M3, a, "e4m3")                                                                   \
        CASE(A, E5M2, a, "e5m2")                                                                   \
        CASE(A, E2M3, a, "e2m3")                                                                   \
        CASE(A, E3M2, a, "e3m2")
    switch (pair) {
        CASES(E4M3, "e4m3")
        CASES(E5M2, "e5m2")
        CASES(E2M3, "e2m3")
        CASES(E3M2, "e3m2")
    }
#endif
}

/* Loads the fragments of one step (32 bytes of each row) from a stage. The warp's rows of A begin
 * at `row`, and its rows of B begin at `col`. */
static __device__ __forceinline__ void load_fragments(const uint8_t *stage, uint32_t step,
                                                      uint32_t row, uint32_t col, fragments *f) {
    const uint32_t lane = threadIdx.x % 32, matrix = lane / 8, r = lane % 8,
                   base = ptx_shared_address(stage);
#pragma unroll
    for (uint32_t m = 0; m < ROW_TILES; m++) {
        const uint32_t at = row + 16 * m + matrix % 2 * 8 + r, unit = 2 * step + matrix / 2;
        ptx_ldmatrix_x4(base + at * ROW_BYTES + (unit ^ r) * 16, f->a[m]);
    }
#pragma unroll
    for (uint32_t n = 0; n < COL_TILES; n += 2) {
        const uint32_t at = TILE + col + 8 * n + matrix / 2 * 8 + r, unit = 2 * step + matrix % 2;
        uint32_t two[4];
        ptx_ldmatrix_x4(base + at * ROW_BYTES + (unit ^ r) * 16, two);
        f->b[n][0] = two[0], f->b[n][1] = two[1], f->b[n + 1][0] = two[2], f->b[n + 1][1] = two[3];
    }
    const uint32_t *words = (const uint32_t *)(stage + ROWS * ROW_BYTES) + step * STEP_SCALES / 4;
    const uint32_t shift = step * STEP_SCALES % 4 * 8, g = lane / 4;
#pragma unroll
    for (uint32_t m = 0; m < ROW_TILES; m++)
        f->a_scales[m] = words[(row + 16 * m + g + lane % 2 * 8) * SCALE_TILES] >> shift;
#pragma unroll
    for (uint32_t n = 0; n < COL_TILES; n++)
        f->b_scales[n] = words[(TILE + col + 8 * n + g) * SCALE_TILES] >> shift;
}

static __device__ __forceinline__ void multiply(const bsmm_sm120_params *p, const uint8_t *stage,
                                                uint32_t row, uint32_t col,
                                                float (*sums)[COL_TILES][4]) {
#pragma unroll 1
    for (uint32_t step = 0; step < STEPS; step++) {
        fragments f;
        load_fragments(stage, step, row, col, &f);
        multiply_step(p->pair, &f, sums);
    }
}

/* The functions from here on are the epilogue. */

#include "cuda/sm120f/scaled_finish.h"

/* The kernel itself follows. */

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    SCALED_NAME(const __grid_constant__ bsmm_sm120_params params) {
    extern __shared__ __align__(128) uint8_t memory[];
    __shared__ findings found;
    const bsmm_sm120_params *p = &params;
    const bsmm_gpu_tile tile = bsmm_gpu_tile_at(blockIdx.x, p->group_m, p->tiles_m, p->tiles_n);
    const corner at = {tile.m * TILE, tile.n * TILE};
    const uint32_t warp = threadIdx.x / 32, row = warp / 4 * WARP_ROWS, col = warp % 4 * WARP_COLS;
    float sums[ROW_TILES][COL_TILES][4];
    block_part part;
#pragma unroll
    for (int i = 0; i < ROW_TILES * COL_TILES * 4; i++)
        sums[i / 4 / COL_TILES][i / 4 % COL_TILES][i % 4] = 0;
    found.nonzero[threadIdx.x] = 0;
    if (threadIdx.x == 0) found.negative = 0;
    ptx_grid_wait();
    ptx_grid_release_next();
    load_part(p, at, 0, &part);
    __syncthreads();
    store_part(p, &part, memory, &found);
    __syncthreads();
    for (uint32_t block = 0; block < p->k_blocks; block++) {
        const bool more = block + 1 < p->k_blocks;
        if (more) load_part(p, at, block + 1, &part);
        multiply(p, memory + block % 2 * STAGE_BYTES, row, col, sums);
        if (more) store_part(p, &part, memory + (block + 1) % 2 * STAGE_BYTES, &found);
        __syncthreads();
    }
    float *const strip = (float *)memory + warp * (WARP_ROWS * WARP_COLS);
    keep_sums(sums, strip);
    finish(p, at, row, col, strip, &found);
}
