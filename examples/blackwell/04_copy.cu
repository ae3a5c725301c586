/* Implements step 4 of 7 of this series of GEMM kernels for Blackwell. TMA loads the block scales
 * to shared memory, and tcgen05.cp copies them to tensor memory. The hardware runs tcgen05.cp and
 * tcgen05.mma in the order in which one thread issues them. This step therefore needs no barrier
 * of all threads for each k block, and one thread does all the work of the main loop. The scales
 * have a barrier of their own, so that the thread copies them while TMA still loads the elements.
 */
#ifdef __CUDACC__
#    define STAGES 1
#    define CTAS   1
#    include "device.h"

static __device__ void multiply_tile(const ladder_params *p, shared *s, uint32_t row,
                                     uint32_t col) {
    const uint32_t scales = s->columns + SCALES_AT, scaled = ptx_shared_address(&s->scaled);
    for (uint32_t block = 0; block < p->k_blocks; block++) {
        ptx_mbarrier_arrive_expect(ptx_shared_address(s->full), p->element_bytes);
        load_side(p, 0, 0, row, block, s->full);
        ptx_mbarrier_arrive_expect(scaled, 3 * p->scale_tiles * SCALE_TILE);
        load_scales(p, 0, row, col, block, scaled);
        load_side(p, 0, 1, col, block, s->full);
        wait_for(&s->scaled, block & 1);
        copy_scales(p, scales, 0);
        wait_for(s->full, block & 1);
        multiply(p, s->columns, scales, 0, block);
        commit_to(s->empty);
        wait_for(s->empty, block & 1);
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
    finish_tile(p, s, row, col);
    end(s);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {.layout = BSMM_LAYOUT_NV_128X4, .stages = 1, .threads = 128};
    return ladder_run(&step, count, arguments);
}
#endif
