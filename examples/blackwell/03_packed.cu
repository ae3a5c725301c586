/* Implements step 3 of 7 of this series of GEMM kernels for Blackwell. The block scales have the
 * layout nv_128x4. A scale tile of 128 rows by 4 blocks holds the rows in the order of tensor
 * memory, with 16 bytes for each lane. A thread loads 16 bytes, which are the four registers that
 * it stores by tcgen05.st. This step avoids the copy through shared memory of step 2. */
#ifdef __CUDACC__
#    define STAGES 1
#    define CTAS   1
#    include "registers.h"

/* Copies the scales of 128 rows, beginning with row `row`, to tensor memory. `step` is the
 * distance in columns of two scale tiles along K. */
static __device__ void move_rows(const ladder_params *p, int side, uint32_t row, uint32_t block,
                                 uint32_t to, uint32_t step) {
    const uint32_t first = (row / SCALE_ROWS * p->k_blocks + block) * p->scale_tiles;
    for (uint32_t t = 0; t < p->scale_tiles; t++) {
        const uint4 four = *(const uint4 *)(p->plain_scales[side] + (first + t) * SCALE_TILE +
                                            threadIdx.x % 32 * 16);
        const uint32_t words[4] = {four.x, four.y, four.z, four.w};
        store_words(to + step * t, words);
    }
}

static __device__ void move_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                   uint32_t block, uint32_t to) {
    move_rows(p, 0, row, block, to, 4);
    move_rows(p, 1, col, block, to + B_SCALES_AT, 8);
    move_rows(p, 1, col + SCALE_ROWS, block, to + B_SCALES_AT + 4, 8);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {.layout = BSMM_LAYOUT_NV_128X4, .stages = 1, .threads = 128};
    return ladder_run(&step, count, arguments);
}
#endif
