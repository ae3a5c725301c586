/* Implements step 5 of 7 of this series of GEMM kernels for Blackwell, a ring buffer of three
 * stages in shared memory. One thread loads two k blocks ahead of the products. Before the thread
 * loads a stage again, it must wait for the products that read the stage. The products of the
 * current k block are already queued then, so the tensor cores stay busy. This step avoids the wait
 * for memory before each k block. */
#ifdef __CUDACC__
#    define STAGES 3
#    define CTAS   1
#    include "device.h"

enum { AHEAD = STAGES - 1 };

/* A later tcgen05.cp may overtake an earlier tcgen05.mma. Adjacent k blocks therefore have
 * different columns of tensor memory for their scales, and columns are overwritten only after the
 * products that read them. */
static __device__ void multiply_tile(const ladder_params *p, shared *s, uint32_t row,
                                     uint32_t col) {
    for (uint32_t block = 0; block < min((uint32_t)AHEAD, p->k_blocks); block++)
        load_block(p, block, row, col, block, &s->full[block]);
    for (uint32_t block = 0; block < p->k_blocks; block++) {
        const uint32_t stage = block % STAGES, next = block + AHEAD,
                       scales = s->columns + SCALES_AT + block % 2 * SCALE_COLUMNS;
        wait_for(&s->full[stage], block / STAGES & 1);
        copy_scales(p, scales, stage);
        multiply(p, s->columns, scales, stage, block);
        commit_to(&s->empty[stage]);
        if (block > 0) wait_for(&s->empty[(block - 1) % STAGES], (block - 1) / STAGES & 1);
        if (next < p->k_blocks)
            load_block(p, next % STAGES, row, col, next, &s->full[next % STAGES]);
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
    const ladder_step step = {.layout = BSMM_LAYOUT_NV_128X4, .stages = 3, .threads = 128};
    return ladder_run(&step, count, arguments);
}
#endif
