/* Implements step 6 of 7 of this series of GEMM kernels for Blackwell. In this step, each warp has
 * one role: one thread loads, another thread issues products, and four warps store D. A load waits
 * only until a stage of the ring buffer is free, and a product only until its k block has arrived.
 * Loads therefore no longer wait for the products of the current k block. */
#ifdef __CUDACC__
#    define STAGES 3
#    define CTAS   1
#    include "device.h"

enum { LOAD_WARP = EPILOGUE_WARPS, MULTIPLY_WARP };

static __device__ void load_tile(const ladder_params *p, shared *s, uint32_t row, uint32_t col) {
    for (uint32_t block = 0; block < p->k_blocks; block++) {
        const uint32_t stage = block % STAGES;
        wait_for(&s->empty[stage], ~(block / STAGES) & 1);
        load_block(p, stage, row, col, block, &s->full[stage]);
    }
}

/* The scales alternate between two sets of columns of tensor memory, because a later tcgen05.cp
 * may overtake an earlier tcgen05.mma. */
static __device__ void multiply_tile(const ladder_params *p, shared *s) {
    for (uint32_t block = 0; block < p->k_blocks; block++) {
        const uint32_t stage = block % STAGES,
                       scales = s->columns + SCALES_AT + block % 2 * SCALE_COLUMNS;
        if (block >= 2) wait_for(&s->empty[(block - 2) % STAGES], (block - 2) / STAGES & 1);
        wait_for(&s->full[stage], block / STAGES & 1);
        copy_scales(p, scales, stage);
        multiply(p, s->columns, scales, stage, block);
        commit_to(&s->empty[stage]);
    }
    commit_to(&s->done);
}

extern "C" __global__ void __launch_bounds__(192, 1)
    ladder(const __grid_constant__ ladder_params params) {
    const ladder_params *p = &params;
    const uint32_t warp = threadIdx.x / 32, row = blockIdx.x / p->tiles_n * TILE_M,
                   col = blockIdx.x % p->tiles_n * TILE_N;
    shared *s = shared_part();
    begin(s);
    if (warp == LOAD_WARP && ptx_elect())
        load_tile(p, s, row, col);
    else if (warp == MULTIPLY_WARP && ptx_elect())
        multiply_tile(p, s);
    else if (warp < EPILOGUE_WARPS) {
        wait_for(&s->done, 0);
        store_tile(p, s, row, col);
    }
    end(s);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {.layout = BSMM_LAYOUT_NV_128X4, .stages = 3, .threads = 192};
    return ladder_run(&step, count, arguments);
}
#endif
