/* Implements step 4 of 7 of this series of GEMM kernels for Blackwell. TMA loads the block scales
 * to shared memory, and tcgen05.cp copies them to tensor memory. The hardware runs tcgen05.cp and
 * tcgen05.mma in the order in which one thread issues them. This step therefore needs no barrier
 * of all threads for each k block, and one thread does all the work of the main loop. As in step 3,
 * the scales of a k block are loaded while the products of the k block before still run. Shared
 * memory therefore holds the scales of two k blocks, and the scales have a barrier of their own. */
#ifdef __CUDACC__
#    define STAGES 2
#    define CTAS   1
#    include "device.h"

/* Loads the scales of a k block. Scales of even and odd k blocks are in different stages. */
static __device__ void begin_scales(const ladder_params *p, const shared *s, uint32_t row,
                                    uint32_t col, uint32_t block) {
    const uint32_t scaled = ptx_shared_address(&s->scaled);
    ptx_mbarrier_arrive_expect(scaled, 3 * p->scale_tiles * SCALE_TILE);
    load_scales(p, block & 1, row, col, block, scaled);
}

/* Computes the sums of the tile at (row, col). The elements of all k blocks are in stage 0. */
static __device__ void multiply_tile(const ladder_params *p, shared *s, uint32_t row,
                                     uint32_t col) {
    const uint32_t scales = s->columns + SCALES_AT;
    begin_scales(p, s, row, col, 0);
    for (uint32_t block = 0; block < p->k_blocks; block++) {
        if (block > 0) wait_for(s->empty, (block - 1) & 1);
        load_elements(p, 0, row, col, block, s->full, 0);
        wait_for(&s->scaled, block & 1);
        if (block + 1 < p->k_blocks) begin_scales(p, s, row, col, block + 1);
        copy_scales(p, scales, block & 1);
        wait_for(s->full, block & 1);
        multiply(p, s->columns, scales, 0, block);
        commit_to(s->empty);
    }
    commit_to(&s->done);
}

extern "C" __global__ void __launch_bounds__(128, 1)
    ladder(const __grid_constant__ ladder_params params) {
    const ladder_params *p = &params;
    const uint32_t row = blockIdx.x / p->tiles_n * TILE_M, col = blockIdx.x % p->tiles_n * TILE_N;
    shared *s = shared_part();
    begin(s);
    if (threadIdx.x == 0) multiply_tile(p, s, row, col);
    wait_for(&s->done, 0);
    __syncwarp();
    store_tile(p, s, row, col);
    end(s);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {.layout = BSMM_LAYOUT_NV_128X4, .stages = 2, .threads = 128};
    return ladder_run(&step, count, arguments);
}
#endif
