/* Defines device code that the seven example kernels (the steps of the ladder) share. A kernel
 * defines STAGES, the number of k blocks that shared memory holds, and CTAS, the number of thread
 * blocks that compute a tile together. */
#ifndef DEVICE_H
#define DEVICE_H

#include "cuda/ptx/address.h"
#include "cuda/ptx/convert.h"
#include "cuda/ptx/mbarrier.h"
#include "cuda/ptx/tcgen05.h"
#include "cuda/ptx/tma.h"
#include "ladder.h"
#if CTAS == 2
#    include "cuda/ptx/tcgen05_pair.h"
#    define MMA_SCALED PTX_TCGEN05_PAIR_MMA_SCALED
#else
#    define MMA_SCALED PTX_TCGEN05_MMA_SCALED
#endif

/* These constants divide the columns of tensor memory. The accumulator takes the first columns, one
 * for each column of the tile. Two sets of block scales follow. The scales of 128 rows by 4 blocks
 * take 4 columns. */
enum {
    COLUMNS = 512,
    SCALES_AT = TILE_N,
    B_SCALES_AT = 4 * MOST_SCALE_TILES,
    SCALE_COLUMNS = B_SCALES_AT + TILE_N / SCALE_ROWS * B_SCALES_AT,
    /* STEPS is the number of tcgen05.mma for a k block. Each of them multiplies 32 bytes of a row.
     */
    STEPS = 4,
    EPILOGUE_WARPS = 4
};

/* Holds the barriers in shared memory. The barrier `full` signals that the elements and scales of
 * a stage have arrived. `empty` signals that the products have read a stage. `done` signals that
 * all products of a tile are complete. `available` signals that the accumulator was read. Only step
 * 4 uses `scaled`, which signals that the scales of a k block have arrived. */
typedef struct shared {
    uint64_t full[STAGES], empty[STAGES], done, available, scaled;
    uint32_t columns; /* `columns` is the address of the allocated tensor memory. */
} shared;
static_assert(sizeof(shared) <= 256, "SHARED_BYTES");

extern __shared__ __align__(1024) uint8_t memory[];

static __device__ __forceinline__ shared *shared_part(void) {
    return (shared *)(memory + STAGES * STAGE_BYTES(CTAS) + STAGING_BYTES);
}
static __device__ __forceinline__ uint32_t stage_at(uint32_t stage) {
    return ptx_shared_address(memory) + stage * STAGE_BYTES(CTAS);
}
static __device__ __forceinline__ uint32_t scales_at(uint32_t stage) {
    return stage_at(stage) + A_BYTES + B_BYTES(CTAS);
}

static __device__ __forceinline__ void wait_for(const uint64_t *barrier, uint32_t parity) {
    while (!ptx_mbarrier_try_wait(ptx_shared_address(barrier), parity)) {
    }
}
static __device__ __forceinline__ void commit_to(const uint64_t *barrier) {
    ptx_tcgen05_commit(ptx_shared_address(barrier));
}

static __device__ __forceinline__ void make_barriers(shared *s) {
    if (threadIdx.x != 0) return;
    for (uint32_t i = 0; i < STAGES; i++) {
        ptx_mbarrier_init(ptx_shared_address(&s->full[i]), 1);
        ptx_mbarrier_init(ptx_shared_address(&s->empty[i]), 1);
    }
    ptx_mbarrier_init(ptx_shared_address(&s->done), 1);
    ptx_mbarrier_init(ptx_shared_address(&s->scaled), 1);
    ptx_mbarrier_init(ptx_shared_address(&s->available), CTAS * EPILOGUE_WARPS);
    ptx_fence_mbarrier_init();
}

#if CTAS == 1
/* Initializes the barriers, and allocates tensor memory. */
static __device__ __forceinline__ void begin(shared *s) {
    make_barriers(s);
    if (threadIdx.x < 32) {
        ptx_tcgen05_alloc(ptx_shared_address(&s->columns), COLUMNS);
        ptx_tcgen05_relinquish();
    }
    ptx_tcgen05_fence_before();
    __syncthreads();
    ptx_tcgen05_fence_after();
}

static __device__ __forceinline__ void end(const shared *s) {
    __syncwarp();
    ptx_tcgen05_fence_before();
    __syncthreads();
    ptx_tcgen05_fence_after();
    if (threadIdx.x < 32) ptx_tcgen05_dealloc(s->columns, COLUMNS);
}

/* Loads the elements of a k block of A (`side` is 0) or B (`side` is 1) by TMA, from row `row` on.
 */
static __device__ __forceinline__ void load_side(const ladder_params *p, uint32_t stage, int side,
                                                 uint32_t row, uint32_t block,
                                                 const uint64_t *full) {
    ptx_tma_load(stage_at(stage) + (side ? A_BYTES : 0), &p->elements[side],
                 (int32_t)(block * ROW_BYTES), (int32_t)row, ptx_shared_address(full));
}

/* Loads the elements of a k block of A and B by TMA. The barrier `full` waits for these bytes and
 * for `more` bytes that the caller loads, such as the scales. */
static __device__ __forceinline__ void load_elements(const ladder_params *p, uint32_t stage,
                                                     uint32_t row, uint32_t col, uint32_t block,
                                                     const uint64_t *full, uint32_t more) {
    ptx_mbarrier_arrive_expect(ptx_shared_address(full), p->element_bytes + more);
    load_side(p, stage, 0, row, block, full);
    load_side(p, stage, 1, col, block, full);
}

/* Loads the scales of a k block, which have the layout nv_128x4, by TMA. One box has the scales of
 * A's 128 rows, and two boxes have those of B's 256 rows. A barrier that waits for these bytes is
 * at the address `barrier`. */
static __device__ __forceinline__ void load_scales(const ladder_params *p, uint32_t stage,
                                                   uint32_t row, uint32_t col, uint32_t block,
                                                   uint32_t barrier) {
#    pragma unroll
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t rows = i == 0 ? row / SCALE_ROWS : col / SCALE_ROWS + i - 1;
        ptx_tma_load(scales_at(stage) + i * MOST_SCALE_TILES * SCALE_TILE, &p->scales[i > 0], 0,
                     (int32_t)(2 * p->scale_tiles * (rows * p->k_blocks + block)), barrier);
    }
}

/* Loads the elements and the scales of a k block by TMA. The barrier `full` completes when they
 * have arrived. */
static __device__ __forceinline__ void load_block(const ladder_params *p, uint32_t stage,
                                                  uint32_t row, uint32_t col, uint32_t block,
                                                  const uint64_t *full) {
    load_elements(p, stage, row, col, block, full, 3 * p->scale_tiles * SCALE_TILE);
    load_scales(p, stage, row, col, block, ptx_shared_address(full));
}

/* Copies the scales of a stage from shared memory to tensor memory. For each scale tile (4 scales
 * along K), A's scales take 4 columns and B's scales take 8 columns. */
static __device__ __forceinline__ void copy_scales(const ladder_params *p, uint32_t to,
                                                   uint32_t stage) {
    for (uint32_t t = 0; t < p->scale_tiles; t++)
#    pragma unroll
        for (uint32_t i = 0; i < 3; i++)
            ptx_tcgen05_copy_32x128b(
                i == 0 ? to + 4 * t : to + B_SCALES_AT + 8 * t + 4 * (i - 1),
                ptx_tcgen05_rows_16(scales_at(stage) + (i * MOST_SCALE_TILES + t) * SCALE_TILE));
}
#endif

/* Issues the tcgen05.mma instructions of a k block, STEPS in all. Each of them reads block scales
 * of A and B from tensor memory, beginning with scale number `first` of the k block. A scale tile
 * holds four scales of each row, as the four bytes of a 32-bit cell. Scale number `first` is
 * therefore in scale tile number first / 4, and in byte first % 4 of the cells. */
static __device__ __forceinline__ void multiply(const ladder_params *p, uint32_t d, uint32_t scales,
                                                uint32_t stage, uint32_t block) {
    const uint64_t a = ptx_tcgen05_rows_128(stage_at(stage)),
                   b = ptx_tcgen05_rows_128(stage_at(stage) + A_BYTES);
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t first = step * p->step_scales, number = first % 4,
                       form = p->form | number << 4 | number << 29,
                       a_scales = scales + first / 4 * 4,
                       b_scales = scales + B_SCALES_AT + first / 4 * 8;
        if (p->kind == KIND_MXF8F6F4)
            MMA_SCALED("mxf8f6f4.block_scale.block32", d, a + 2 * step, b + 2 * step, form,
                       a_scales, b_scales, block | step);
        else if (p->kind == KIND_MXF4)
            MMA_SCALED("mxf4.block_scale.block32", d, a + 2 * step, b + 2 * step, form, a_scales,
                       b_scales, block | step);
        else
            MMA_SCALED("mxf4nvf4.block_scale.block16", d, a + 2 * step, b + 2 * step, form,
                       a_scales, b_scales, block | step);
    }
}

/* Reads a row of the accumulator from tensor memory, and rounds its elements to f16. */
static __device__ __forceinline__ void read_row(uint32_t from, uint32_t *words) {
#pragma unroll
    for (uint32_t col = 0; col < TILE_N; col += 32) {
        uint32_t bits[32];
        ptx_tcgen05_load_x32(from + (threadIdx.x / 32 * 32 << 16) + col, bits);
        ptx_tcgen05_wait_loads();
#pragma unroll
        for (uint32_t i = 0; i < 16; i++)
            words[col / 2 + i] =
                bsmm_ptx_cvt_f16x2(__uint_as_float(bits[2 * i + 1]), __uint_as_float(bits[2 * i]));
    }
}

/* Stores 32 rows of D through shared memory, 64 columns at a time. Each lane holds one row. With
 * the 128-byte swizzle of TMA, chunk u of 16 bytes of row r is stored at chunk u ^ (r % 8). */
static __device__ __forceinline__ void store_rows(const ladder_params *p, const uint32_t *words,
                                                  uint32_t row, uint32_t col) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint8_t *const staging =
        memory + STAGES * STAGE_BYTES(CTAS) + warp * (STAGING_BYTES / EPILOGUE_WARPS);
#pragma unroll
    for (uint32_t part = 0; part < TILE_N / 64; part++) {
        const uint32_t *from = words + 32 * part;
        if (lane == 0) PTX_TMA_WAIT_READ(0);
        __syncwarp();
#pragma unroll
        for (uint32_t u = 0; u < 8; u++)
            *(uint4 *)(staging + lane * 128 + (u ^ lane % 8) * 16) =
                make_uint4(from[4 * u], from[4 * u + 1], from[4 * u + 2], from[4 * u + 3]);
        ptx_fence_proxy_async();
        __syncwarp();
        if (lane == 0) {
            ptx_tma_store(&p->d, ptx_shared_address(staging), (int32_t)(col + 64 * part),
                          (int32_t)(row + 32 * warp));
            ptx_tma_commit();
        }
    }
}

/* Stores the tile of D at (row, col). The shared memory for D must not change until TMA has read
 * it. */
static __device__ __forceinline__ void store_tile(const ladder_params *p, const shared *s,
                                                  uint32_t row, uint32_t col) {
    uint32_t words[TILE_N / 2];
    ptx_tcgen05_fence_after();
    read_row(s->columns, words);
    store_rows(p, words, row, col);
    if (threadIdx.x % 32 == 0) PTX_TMA_WAIT(0);
}

#endif
