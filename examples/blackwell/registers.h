/* Defines the kernel of steps 1 to 3 of the ladder (a sequence of seven kernels), in which block
 * scales reach tensor memory through registers. Each step defines the struct held_scales and the
 * functions begin_scales and move_scales. */
#ifndef REGISTERS_H
#define REGISTERS_H

#include "device.h"

/* Stores four words of each lane to four columns of tensor memory, in the 32 lanes that this warp
 * can access. */
static __device__ void store_words(uint32_t to, const uint32_t words[4]) {
    ptx_tcgen05_store_x4(to + (threadIdx.x / 32 * 32 << 16), words);
}

/* Begins the loads of the scales of a k block of the tile at (row, col). All threads call this
 * function while the products of the previous k block still run. */
static __device__ void begin_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                    uint32_t block, held_scales *held);

/* Copies the scales of the k block to columns of tensor memory, beginning with column `to`. All
 * threads call this function. */
static __device__ void move_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                   uint32_t block, const held_scales *held, uint32_t to);

extern "C" __global__ void __launch_bounds__(128, 1)
    ladder(const __grid_constant__ ladder_params params) {
    const ladder_params *p = &params;
    const uint32_t row = blockIdx.x / p->tiles_n * TILE_M, col = blockIdx.x % p->tiles_n * TILE_N;
    shared *s = shared_part();
    begin(s);
    const uint32_t scales = s->columns + SCALES_AT;
    held_scales held;
    for (uint32_t block = 0; block < p->k_blocks; block++) {
        if (threadIdx.x == 0) load_elements(p, 0, row, col, block, s->full, 0);
        __syncwarp();
        if (block == 0) begin_scales(p, row, col, 0, &held);
        move_scales(p, row, col, block, &held, scales);
        if (block + 1 < p->k_blocks) begin_scales(p, row, col, block + 1, &held);
        ptx_tcgen05_wait_stores();
        ptx_tcgen05_fence_before();
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx_tcgen05_fence_after();
            wait_for(s->full, block & 1);
            multiply(p, s->columns, scales, 0, block);
            commit_to(&s->done);
        }
        wait_for(&s->done, block & 1);
        ptx_tcgen05_fence_after();
        __syncwarp();
    }
    store_tile(p, s, row, col);
    end(s);
}

#endif
