/* Implements step 7 of 7 of this series of GEMM kernels for Blackwell, in which pairs of thread
 * blocks compute many tiles each. The two SMs of a pair multiply 256 rows of A by 256 rows of B
 * with one instruction (cta_group::2). Each block loads its 128 rows of A and half of the rows of
 * B, which halves the loads of B. Each block also loads the scales of its rows of A and of all rows
 * of B. The blocks are persistent, so that a pair loads its next tile while it stores D. */
#ifdef __CUDACC__
#    define STAGES 5
#    define CTAS   2
#    include "cuda/ptx/cluster.h"
#    include "device.h"

enum { LOAD_WARP = EPILOGUE_WARPS, MULTIPLY_WARP, LEADER = 0, BOTH = 3 };

/* Visits the tiles of this pair of thread blocks. The first tile has the number blockIdx.x / 2,
 * and the stride is gridDim.x / 2. */
#    define FOR_TILES(p, tile)                                                                     \
        for (uint32_t tile = blockIdx.x / 2; tile < (p)->tiles; tile += gridDim.x / 2)

static __device__ uint32_t row_of(const ladder_params *p, uint32_t tile, uint32_t rank) {
    return (tile / p->tiles_n * 2 + rank) * TILE_M;
}

static __device__ void begin_pair(shared *s) {
    make_barriers(s);
    if (threadIdx.x < 32) {
        ptx_tcgen05_pair_alloc(ptx_shared_address(&s->columns), COLUMNS);
        ptx_tcgen05_pair_relinquish();
    }
    ptx_tcgen05_fence_before();
    ptx_cluster_arrive();
    ptx_cluster_wait();
    ptx_tcgen05_fence_after();
}

/* Waits until both thread blocks of the pair have finished, because no block may end while the
 * other one can still signal its barriers. */
static __device__ void end_pair(const shared *s) {
    __syncwarp();
    ptx_tcgen05_fence_before();
    ptx_cluster_arrive();
    ptx_cluster_wait();
    ptx_tcgen05_fence_after();
    if (threadIdx.x < 32) ptx_tcgen05_pair_dealloc(s->columns, COLUMNS);
}

/* Loads this thread block's part of a k block. The two thread blocks of a pair load different
 * parts, but only one of them, the leader, issues the multiplications. An mbarrier of the leader
 * therefore counts the bytes that both thread blocks load. */
static __device__ void load_pair(const ladder_params *p, uint32_t stage, uint32_t tile,
                                 uint32_t block, uint32_t rank, const uint64_t *full) {
    const uint32_t own = ptx_shared_address(full), barrier = ptx_mapa(own, LEADER),
                   row = row_of(p, tile, rank), col = tile % p->tiles_n * TILE_N;
    const int32_t x = (int32_t)(block * ROW_BYTES);
    if (rank == LEADER)
        ptx_mbarrier_arrive_expect(own, 2 * (p->element_bytes + 3 * p->scale_tiles * SCALE_TILE));
    ptx_tma_load_pair(stage_at(stage), &p->elements[0], x, (int32_t)row, barrier);
    ptx_tma_load_pair(stage_at(stage) + A_BYTES, &p->elements[1], x,
                      (int32_t)(col + rank * (TILE_N / 2)), barrier);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t rows = i == 0 ? row / SCALE_ROWS : col / SCALE_ROWS + i - 1;
        ptx_tma_load_pair(scales_at(stage) + i * MOST_SCALE_TILES * SCALE_TILE, &p->scales[i > 0],
                          0, (int32_t)(2 * p->scale_tiles * (rows * p->k_blocks + block)), barrier);
    }
}

static __device__ void load_tiles(const ladder_params *p, shared *s, uint32_t rank) {
    uint32_t count = 0;
    FOR_TILES(p, tile)
    for (uint32_t block = 0; block < p->k_blocks; block++, count++) {
        const uint32_t stage = count % STAGES;
        wait_for(&s->empty[stage], ~(count / STAGES) & 1);
        load_pair(p, stage, tile, block, rank, &s->full[stage]);
    }
}

/* Copies the scales of both thread blocks to tensor memory. Each block's scales come from the same
 * offsets of its own shared memory. */
static __device__ void copy_scales(const ladder_params *p, uint32_t to, uint32_t stage) {
    for (uint32_t t = 0; t < p->scale_tiles; t++)
        for (uint32_t i = 0; i < 3; i++)
            ptx_tcgen05_pair_copy_32x128b(
                i == 0 ? to + 4 * t : to + B_SCALES_AT + 8 * t + 4 * (i - 1),
                ptx_tcgen05_rows_16(scales_at(stage) + (i * MOST_SCALE_TILES + t) * SCALE_TILE));
}

/* Issues the products of both thread blocks. Only one thread of the pair's leader calls this
 * function. */
static __device__ void multiply_tiles(const ladder_params *p, shared *s) {
    uint32_t count = 0, number = 0;
    FOR_TILES(p, tile) {
        wait_for(&s->available, ~number++ & 1);
        ptx_tcgen05_fence_after();
        for (uint32_t block = 0; block < p->k_blocks; block++, count++) {
            const uint32_t stage = count % STAGES,
                           scales = s->columns + SCALES_AT + count % 2 * SCALE_COLUMNS;
            if (count >= 2) wait_for(&s->empty[(count - 2) % STAGES], (count - 2) / STAGES & 1);
            wait_for(&s->full[stage], count / STAGES & 1);
            copy_scales(p, scales, stage);
            multiply(p, s->columns, scales, stage, block);
            ptx_tcgen05_pair_commit(ptx_shared_address(&s->empty[stage]), BOTH);
        }
        ptx_tcgen05_pair_commit(ptx_shared_address(&s->done), BOTH);
    }
}

static __device__ void store_tiles(const ladder_params *p, shared *s, uint32_t rank) {
    const uint32_t available = ptx_mapa(ptx_shared_address(&s->available), LEADER);
    uint32_t number = 0;
    FOR_TILES(p, tile) {
        uint32_t words[TILE_N / 2];
        wait_for(&s->done, number++ & 1);
        ptx_tcgen05_fence_after();
        read_row(s->columns, words);
        ptx_tcgen05_fence_before();
        __syncwarp();
        if (threadIdx.x % 32 == 0) ptx_mbarrier_arrive_cluster(available);
        store_rows(p, words, row_of(p, tile, rank), tile % p->tiles_n * TILE_N);
    }
    if (threadIdx.x % 32 == 0) PTX_TMA_WAIT(0);
}

extern "C" __global__ void __launch_bounds__(192, 1)
    ladder(const __grid_constant__ ladder_params params) {
    const ladder_params *p = &params;
    const uint32_t warp = threadIdx.x / 32, rank = ptx_cluster_rank();
    shared *s = shared_part();
    begin_pair(s);
    if (warp == LOAD_WARP && ptx_elect())
        load_tiles(p, s, rank);
    else if (warp == MULTIPLY_WARP && rank == LEADER && ptx_elect())
        multiply_tiles(p, s);
    else if (warp < EPILOGUE_WARPS)
        store_tiles(p, s, rank);
    end_pair(s);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {
        .layout = BSMM_LAYOUT_NV_128X4, .stages = 5, .threads = 192, .ctas = 2, .persistent = true};
    return ladder_run(&step, count, arguments);
}
#endif
